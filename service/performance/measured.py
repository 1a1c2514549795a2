"""Step times from kernels that aiconfigurator-core measured."""

import hashlib
import json
import logging
import re
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any, Final

import yaml
from cachetools import LRUCache

from service.engine.engines.registry import engine_named
from service.engine.inputs import EngineName, Layout
from service.engine.time.records import ATTENDED, CONTEXTS, REQUESTS, TOKENS
from service.freed import give_back_freed
from service.performance.stored import Kernels, Refusal
from service.performance.systems import whole_nodes
from service.performance.tables import StepTables

# What the library says where a matrix format was never measured on a GPU, whatever the model.
NO_MATRICES: Final = "GEMM perf data missing for quant"
UNKNOWN_CLASS: Final = "is not supported. Supported architectures"  # what it says of a class that it has no model of
# What it says of a part of a model that was never measured on a GPU, at all or in such matrices.
NO_PART: Final = ("rows loaded from", "module data missing")
PATH: Final = re.compile(r"/\S*/")  # where the library's tables lie on this machine is nobody's business
SHORT_PROMPT_TOKENS: Final = 128.0  # whose attention is negligible
MILLISECONDS_PER_S: Final = 1e3
# Engines of the systems asked for last stay, 20 to 40 MB each.
MOST_SYSTEMS: Final = 6
MOST_SETTINGS: Final = 64  # files of the library's own, a few kB each
# Far more than there are systems, engines and formats of matrices; of models the last ones stay.
MOST_PROBED: Final = 1024


class KernelLibrary:
    """Asks the library, and keeps what it reads: it drops a system's tables with the last engine compiled from them.

    For the next one it would read them again, up to a second each time.
    """

    def __init__(self) -> None:
        """Start with nothing read."""
        self._held: LRUCache[tuple[str, EngineName, bool], Any] = LRUCache(MOST_SYSTEMS)
        # What the library says of it, where no matrices were measured, or nothing of a part of a model: each refusal
        # costs as much as an answer.
        self._probed: LRUCache[tuple[str, EngineName, str], Refusal | None] = LRUCache(MOST_PROBED)
        self._probed_models: LRUCache[str, Refusal | None] = LRUCache(MOST_PROBED)

    def build(self, kernels: Kernels) -> StepTables | Refusal:
        """Return tables for the first quantization mode that has data, or what the library says of the best one.

        Where experts were measured dealt out whole but not split, or the other way, those stand in: a rank
        holds the same bytes either way.
        """
        found = self._best(json.loads(kernels.config_json), kernels)
        if isinstance(found, Refusal) and UNKNOWN_CLASS in found.reason and kernels.restated_json:
            return self._best(json.loads(kernels.restated_json), kernels)
        return found

    def _best(self, config: Mapping[str, Any], kernels: Kernels) -> StepTables | Refusal:
        """Return the same of a model under one class's name."""
        first: Refusal | None = None
        for place, modes in enumerate(kernels.modes):
            for expert_parallel in dict.fromkeys((kernels.layout.expert_parallel, not kernels.layout.expert_parallel)):
                found = self._compiled(config, kernels, replace(kernels.layout, expert_parallel=expert_parallel), modes)
                if not isinstance(found, Refusal):
                    return replace(found, place=place)
                first = first or found
                if NO_MATRICES in found.reason or UNKNOWN_CLASS in found.reason:
                    break
        return first or Refusal("no kernels match the weight format")

    def _compiled(
        self, config: Mapping[str, Any], kernels: Kernels, layout: Layout, modes: Mapping[str, str]
    ) -> StepTables | Refusal:
        """Return tables, or why there are none: the format's reason, then the model's, then that of the layout.

        Each is told whatever was asked before.
        """
        asked = (kernels.system, kernels.engine, modes.get("gemm_quant_mode", ""))
        known = self._probed.get(asked) or self._probed_models.get(_of_any_layout(config, kernels, modes))
        if known is not None:
            return known
        found = self._tried(config, kernels, layout, modes)
        if not isinstance(found, Refusal):
            return found
        return self._without_matrices(kernels, modes) or self._without_part(config, kernels, modes) or found

    def _without_part(self, config: Mapping[str, Any], kernels: Kernels, modes: Mapping[str, str]) -> Refusal | None:
        """Return the refusal of a model whose class is unknown, or of which a part was not measured; else None."""
        asked = _of_any_layout(config, kernels, modes)
        if asked not in self._probed_models:
            found = self._tried(config, kernels, Layout(), modes)
            is_of_all = isinstance(found, Refusal) and any(said in found.reason for said in (*NO_PART, UNKNOWN_CLASS))
            self._probed_models[asked] = found if isinstance(found, Refusal) and is_of_all else None
        return self._probed_models[asked]

    def _without_matrices(self, kernels: Kernels, modes: Mapping[str, str]) -> Refusal | None:
        """Return the refusal of a format whose matrices were never measured on a GPU; None where they were."""
        mode = modes.get("gemm_quant_mode", "")
        asked = (kernels.system, kernels.engine, mode)
        if asked not in self._probed:
            found = self._tried(_probe(), kernels, Layout(), {"gemm_quant_mode": mode} if mode else {})
            self._probed[asked] = found if isinstance(found, Refusal) and NO_MATRICES in found.reason else None
        return self._probed[asked]

    def _tried(
        self, config: Mapping[str, Any], kernels: Kernels, layout: Layout, modes: Mapping[str, str]
    ) -> StepTables | Refusal:
        experts = layout.tensor_parallel_size * layout.data_parallel_size
        try:
            with tempfile.TemporaryDirectory() as folder:
                Path(folder, "config.json").write_text(json.dumps(config), encoding="utf-8")
                handle = _engine_handle().compile(
                    folder,
                    kernels.system,
                    engine_named(kernels.engine).kernel_library,
                    tp_size=layout.tensor_parallel_size,
                    pp_size=layout.pipeline_parallel_size,
                    attention_dp_size=layout.data_parallel_size,
                    moe_tp_size=1 if layout.expert_parallel else experts,
                    moe_ep_size=experts if layout.expert_parallel else 1,
                    systems_path=whole_nodes().path if kernels.crosses_nodes else None,
                    **modes,
                )
                self._hold(kernels, handle)  # before it may refuse: what it read serves the next one
                tables = _tables(handle)
        except Exception as error:  # noqa: BLE001 - the library documents no closed set: each means "no data"
            return Refusal(f"{type(error).__name__}: {PATH.sub('', str(error))[:200]}")
        return tables

    def _hold(self, kernels: Kernels, handle: Any) -> None:
        """Keep the tables of a system in memory, in place of those not asked for the longest."""
        system = (kernels.system, kernels.engine, kernels.crosses_nodes)
        self._held[system] = self._held.get(system, handle)
        give_back_freed()


def _of_any_layout(config: Mapping[str, Any], kernels: Kernels, modes: Mapping[str, str]) -> str:
    """Return what a refusal depends on that is the same of every layout."""
    parts = (config, kernels.system, kernels.engine, kernels.crosses_nodes, modes)
    return hashlib.sha256(json.dumps(parts, default=dict).encode()).hexdigest()


def _keeping_loader() -> type[yaml.CSafeLoader]:
    """Return a loader that reads a text once, and copies what it says each time it is asked to read it again."""
    said = lru_cache(MOST_SETTINGS)(lambda text: yaml.load(text, yaml.CSafeLoader))

    class Keeping(yaml.CSafeLoader):
        def __init__(self, stream: Any) -> None:
            self._text = stream.read() if hasattr(stream, "read") else stream
            super().__init__(self._text)

        def get_single_data(self) -> Any:
            return _copied(said(self._text))

    return Keeping


def _copied(said: Any) -> Any:
    """Return mappings and lists of one's own, down to what nobody can change."""
    if isinstance(said, dict):
        return {name: _copied(value) for name, value in said.items()}
    return [_copied(value) for value in said] if isinstance(said, list) else said


@lru_cache(maxsize=1)
def _engine_handle() -> Any:
    """Return the library's engine, loaded the first time: 0.2 s that start-up need not wait for."""
    # It reads ten files of its own settings anew for each table, which takes longer than the table.
    vars(yaml).update(SafeLoader=_keeping_loader())
    # It prints which tables it falls back to, at every load.
    logging.getLogger("aiconfigurator_core").setLevel(logging.CRITICAL)
    from aiconfigurator_core.sdk import engine, perf_database  # noqa: PLC0415

    # For each table it also walks through its folders three times, to tell which version of a system is asked for.
    for module, name in ((engine, "_literal_backend_version"), (perf_database, "get_database")):
        vars(module)[name] = lru_cache(MOST_SETTINGS)(vars(module)[name])
    return engine.EngineHandle


@lru_cache(maxsize=1)
def _probe() -> Mapping[str, Any]:
    """Return the config of a small model that the library knows."""
    file = resources.files("service.performance").joinpath("data", "probe.yaml")
    config: Mapping[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
    return config


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
