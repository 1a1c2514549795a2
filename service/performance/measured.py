"""Step times from kernels that aiconfigurator-core measured."""

import ctypes
import json
import logging
import re
import sys
import tempfile
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from service.engine.families import EXAMPLE_CLASS
from service.engine.inputs import EngineName, Layout
from service.performance.tables import ATTENDED, CONTEXTS, REQUESTS, TOKENS, StepTables

BACKENDS: Final[Mapping[EngineName, str]] = {"vllm": "vllm", "sglang": "sglang", "tensorrt-llm": "trtllm"}
# What the library says where a matrix format was never measured on a GPU, whatever the model.
NO_MATRICES: Final = "GEMM perf data missing for quant"
PATH: Final = re.compile(r"/\S*/")  # where the library's tables lie on this machine is nobody's business
SHORT_PROMPT_TOKENS: Final = 128.0  # whose attention is negligible
MILLISECONDS_PER_S: Final = 1e3
# Through the smallest model there is, a system's tables are read ahead of the first question.
SMALL_CONFIG: Final[Mapping[str, Any]] = {
    "architectures": [EXAMPLE_CLASS],
    "model_type": "llama",
    "hidden_size": 2048,
    "intermediate_size": 8192,
    "max_position_embeddings": 8192,
    "num_attention_heads": 32,
    "num_hidden_layers": 2,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
}


# The library drops a system's tables with the last engine that was compiled from them, and reads them again
# for the next one, up to a second each time. Engines of the systems asked for last stay, 20 to 40 MB each.
MOST_SYSTEMS: Final = 12
_held: "OrderedDict[tuple[str, EngineName], Any]" = OrderedDict()

# Each refusal costs as much as an answer; there are as many as GPUs x engines x formats.
_known_missing: dict[tuple[str, EngineName, str], str] = {}


class NotMeasuredError(Exception):
    """No kernels were measured for this combination; the message says which."""


def read_system(system: str) -> None:
    """Read a system's tables ahead of the first question."""
    try:
        measured_tables(SMALL_CONFIG, system=system, layout=Layout(), engine="vllm", modes={})
    except NotMeasuredError:
        logging.getLogger(__name__).info("no kernels were read for %s", system)


def measured_tables(
    config: Mapping[str, Any],
    *,
    system: str,
    layout: Layout,
    engine: EngineName,
    modes: Mapping[str, str],
) -> StepTables:
    """Return the tables of one model on one layout.

    Args:
        config: the published config, without its quantization.
        system: what aiconfigurator-core calls the GPU; `measured_as` of the catalog.
        layout: how one replica is spread; batches are those of one attention rank. Where experts were
            measured dealt out whole but not split, or the other way, those stand in: a rank holds the
            same bytes either way.
        engine: whose kernels.
        modes: aiconfigurator-core's quantization modes.

    Raises:
        NotMeasuredError: aiconfigurator-core has no data for the combination.
    """
    asked = (system, engine, modes.get("gemm_quant_mode", ""))
    if asked in _known_missing:
        raise NotMeasuredError(_known_missing[asked])
    first: NotMeasuredError | None = None
    for expert_parallel in dict.fromkeys((layout.expert_parallel, not layout.expert_parallel)):
        try:
            return _compiled(
                config,
                system=system,
                layout=replace(layout, expert_parallel=expert_parallel),
                engine=engine,
                modes=modes,
            )
        except NotMeasuredError as refusal:
            if NO_MATRICES in str(refusal):
                _known_missing[asked] = str(refusal)
                raise
            first = first or refusal
    raise first or NotMeasuredError("no layout was tried")


def _compiled(
    config: Mapping[str, Any], *, system: str, layout: Layout, engine: EngineName, modes: Mapping[str, str]
) -> StepTables:
    # The library prints which tables it falls back to, at every load.
    logging.getLogger("aiconfigurator_core").setLevel(logging.CRITICAL)
    from aiconfigurator_core.sdk.engine import EngineHandle  # noqa: PLC0415 - 0.2 s that start-up need not wait for

    experts = layout.tensor_parallel_size * layout.data_parallel_size
    try:
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "config.json").write_text(json.dumps(config), encoding="utf-8")
            handle = EngineHandle.compile(
                folder,
                system,
                BACKENDS[engine],
                tp_size=layout.tensor_parallel_size,
                pp_size=layout.pipeline_parallel_size,
                attention_dp_size=layout.data_parallel_size,
                moe_tp_size=1 if layout.expert_parallel else experts,
                moe_ep_size=experts if layout.expert_parallel else 1,
                **modes,
            )
            tables = _tables(handle)
    except Exception as error:
        # The library documents no closed set of refusals: ValueError, KeyError and its own all mean "no data".
        raise NotMeasuredError(f"{type(error).__name__}: {PATH.sub('', str(error))[:200]}") from error
    _hold(system, engine, handle)
    return tables


def _hold(system: str, engine: EngineName, handle: Any) -> None:
    """Keep the tables of a system in memory, in place of those not asked for the longest."""
    _held.setdefault((system, engine), handle)
    _held.move_to_end((system, engine))
    if len(_held) > MOST_SYSTEMS:
        _held.popitem(last=False)
    _return_freed_memory()


def _return_freed_memory() -> None:
    """Give back to the system what reading tables took and freed: glibc keeps it, some 10 MB for each of them."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # other C libraries do so on their own
        if trim is not None:
            trim(0)


def _tables(handle: Any) -> StepTables:
    def prefill_s(tokens: float, prompt_tokens: float) -> float:
        prompts = max(int(tokens / prompt_tokens), 1)
        return float(handle.predict_prefill_latency(prompts, int(min(prompt_tokens, tokens)))) / MILLISECONDS_PER_S

    def attention_s(attended: float) -> float:
        length = 2 * attended  # causal: a token attends to half of its prompt on average
        return max(prefill_s(length, length) - prefill_s(length, SHORT_PROMPT_TOKENS), 0.0) / length

    return StepTables(
        decode=tuple(
            tuple(
                float(handle.decode_step_latency(int(requests), int(context), 2)) / MILLISECONDS_PER_S
                for context in CONTEXTS
            )
            for requests in REQUESTS
        ),
        tokens=tuple(prefill_s(tokens, SHORT_PROMPT_TOKENS) for tokens in TOKENS),
        attention=tuple(attention_s(attended) for attended in ATTENDED),
    )
