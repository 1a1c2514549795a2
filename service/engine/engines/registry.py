"""The serving engines, by name."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from service.engine.engines.base import Engine
from service.engine.engines.sglang import Sglang
from service.engine.engines.tensorrt_llm import TensorRtLlm
from service.engine.engines.vllm import Vllm
from service.engine.inputs import EngineName

ENGINES: Final[Mapping[EngineName, Engine]] = MappingProxyType(
    {engine.name: engine for engine in (Vllm(), Sglang(), TensorRtLlm())}
)
DEFAULT_ENGINE: Final[EngineName] = "vllm"  # of a question that names none


def engine_named(name: EngineName) -> Engine:
    """Return the engine of a name.

    >>> engine_named("tensorrt-llm").title
    'TensorRT-LLM'
    """
    return ENGINES[name]
