"""The engines whose logs are read, by name."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from service.calibration.logs import sglang, tensorrt_llm, vllm
from service.calibration.logs.rows import EngineLog
from service.engine import EngineName

LOGS: Final[Mapping[EngineName, EngineLog]] = MappingProxyType(
    {log.engine: log for log in (vllm.LOG, sglang.LOG, tensorrt_llm.LOG)}
)


def logs_of(words: str) -> EngineLog | None:
    """Return what is known of the logs of an engine, as a row names it; None where nothing is."""
    return next((log for log in LOGS.values() if log.engine == words.lower()), None)
