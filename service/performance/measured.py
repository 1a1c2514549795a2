"""Step times from kernels that aiconfigurator-core measured."""

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from threading import Lock
from typing import Any, Final

from cachetools import LRUCache

from service.engine.engines.registry import engine_named
from service.engine.inputs import EngineName, Layout
from service.freed import give_back_freed
from service.performance.library import Config, library, probe, tables_of
from service.performance.stored import Kernels, Refusal
from service.performance.systems import whole_nodes
from service.performance.tables import StepTables

# What the library says where a matrix format was never measured on a GPU, whatever the model.
NO_MATRICES: Final = "GEMM perf data missing for quant"
UNKNOWN_CLASS: Final = "is not supported. Supported architectures"  # what it says of a class that it has no model of
# What it says of a part of a model that was never measured on a GPU, at all or in such matrices.
NO_PART: Final = ("rows loaded from", "module data missing", "missing system flops")
NO_EXPERTS: Final = "MoE data missing for MoeKey"  # of experts cut or dealt out over so many ranks
NO_ATTENTION: Final = "attention data missing"  # of as many heads as a rank has
PATH: Final = re.compile(r"/\S*/")  # where the library's tables lie on this machine is nobody's business
# Engines of the systems asked for last stay, 10 to 40 MB each: a recommendation asks for twenty in turn, and each that
# went takes half a second to be read again.
MOST_SYSTEMS: Final = 24
# Far more than there are systems, engines and formats of matrices; of models the last ones stay.
MOST_PROBED: Final = 1024
MOST_TRIED: Final = 4096  # layouts, up to 4 kB each


Combination = tuple[str, str, EngineName, bool, tuple[tuple[str, str], ...]]  # all that a table is of but its layout


class KernelLibrary:
    """Asks the library, and keeps what it reads; safe to share between threads.

    The library drops a system's tables with the last engine compiled from them, and would read them again for the next
    one, up to a second each time.
    """

    def __init__(self) -> None:
        """Start with nothing read."""
        self._held: LRUCache[tuple[str, EngineName, bool], Any] = LRUCache(MOST_SYSTEMS)
        # What the library says of it, where no matrices were measured, or nothing of a part of a model: each refusal
        # costs as much as an answer.
        self._probed: LRUCache[tuple[str, EngineName, str], Refusal | None] = LRUCache(MOST_PROBED)
        self._probed_models: LRUCache[Combination, Refusal | None] = LRUCache(MOST_PROBED)
        self._tries: LRUCache[tuple[Combination, Layout], StepTables | Refusal] = LRUCache(MOST_TRIED)
        self._lock = Lock()

    def build(self, kernels: Kernels) -> StepTables | Refusal:
        """Return tables for the first quantization mode that has data, or what the library says of the best one.

        Where experts were measured dealt out whole but not split, or the other way, those stand in: a rank
        holds the same bytes either way.
        """
        with self._lock:  # what it keeps is told by what was asked before, one after the other
            found = self._best(Config.of(kernels.config_json), kernels)
            if isinstance(found, Refusal) and UNKNOWN_CLASS in found.reason and kernels.restated_json:
                return self._best(Config.of(kernels.restated_json), kernels)
            return found

    def _best(self, config: Config, kernels: Kernels) -> StepTables | Refusal:
        """Return the same of a model under one class's name."""
        first: Refusal | None = None
        for place, modes in enumerate(kernels.modes):
            dealt = kernels.layout.expert_parallel
            ways = (dealt, not dealt) if kernels.layout.all2all_backend is None else (dealt,)
            for expert_parallel in ways:
                found = self._compiled(config, kernels, replace(kernels.layout, expert_parallel=expert_parallel), modes)
                if not isinstance(found, Refusal):
                    return replace(found, place=place)
                first = first or found
                if NO_MATRICES in found.reason or UNKNOWN_CLASS in found.reason:
                    break
        return first or Refusal("no kernels match the weight format")

    def _compiled(
        self, config: Config, kernels: Kernels, layout: Layout, modes: Mapping[str, str]
    ) -> StepTables | Refusal:
        """Return tables, or why there are none: the format's reason, then the model's, its parts', the layout's.

        Each is told whatever was asked before. Exchanges by a backend were measured for few, which have no parts apart.
        """
        if layout.all2all_backend is not None:
            return self._once(config, kernels, layout, modes)
        asked = (kernels.system, kernels.engine, modes.get("gemm_quant_mode", ""))
        combination = _of_any_layout(config, kernels, modes)
        known = self._probed.get(asked) or self._probed_models.get(combination) or self._known_part(combination, layout)
        if known is not None:
            return known
        found = self._once(config, kernels, layout, modes)
        if not isinstance(found, Refusal):
            return found
        return (
            self._without_matrices(kernels, modes)
            or self._without_part(config, kernels, modes)
            or self._without_ranks_part(config, kernels, layout, modes)
            or found
        )

    def _known_part(self, combination: Combination, layout: Layout) -> Refusal | None:
        """Return the refusal of the first part that a rank has of a layout, as far as parts were tried; else None."""
        for part, said in _parts(layout):
            found = self._tries.get((combination, part))
            if found is None or (isinstance(found, Refusal) and said in found.reason):
                return found
        return None

    def _without_ranks_part(
        self, config: Config, kernels: Kernels, layout: Layout, modes: Mapping[str, str]
    ) -> Refusal | None:
        """Return the refusal of the first part that a rank has of a layout; None where each was measured."""
        for part, said in _parts(layout):
            found = self._once(config, kernels, part, modes)
            if isinstance(found, Refusal) and said in found.reason:
                return found
        return None

    def _without_part(self, config: Config, kernels: Kernels, modes: Mapping[str, str]) -> Refusal | None:
        """Return the refusal of a model whose class is unknown, or of which a part was not measured; else None."""
        asked = _of_any_layout(config, kernels, modes)
        if asked not in self._probed_models:
            found = self._once(config, kernels, Layout(), modes)
            is_of_all = isinstance(found, Refusal) and any(said in found.reason for said in (*NO_PART, UNKNOWN_CLASS))
            self._probed_models[asked] = found if isinstance(found, Refusal) and is_of_all else None
        return self._probed_models[asked]

    def _without_matrices(self, kernels: Kernels, modes: Mapping[str, str]) -> Refusal | None:
        """Return the refusal of a format whose matrices were never measured on a GPU; None where they were."""
        mode = modes.get("gemm_quant_mode", "")
        asked = (kernels.system, kernels.engine, mode)
        if asked not in self._probed:
            found = self._once(probe(), kernels, Layout(), {"gemm_quant_mode": mode} if mode else {})
            self._probed[asked] = found if isinstance(found, Refusal) and NO_MATRICES in found.reason else None
        return self._probed[asked]

    def _once(self, config: Config, kernels: Kernels, layout: Layout, modes: Mapping[str, str]) -> StepTables | Refusal:
        """Return what the library says, asked once: a search looks at each layout for several others."""
        asked = (_of_any_layout(config, kernels, modes), layout)
        if asked not in self._tries:
            self._tries[asked] = self._tried(config, kernels, layout, modes)
        return self._tries[asked]

    def _tried(
        self, config: Config, kernels: Kernels, layout: Layout, modes: Mapping[str, str]
    ) -> StepTables | Refusal:
        experts = layout.tensor_parallel_size * layout.data_parallel_size
        try:
            handle = library().compiled(
                layout.all2all_backend,
                library().path_of(config),
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
            heads = partial(self._with_heads, config, kernels, layout, modes)
            tables = tables_of(handle, heads, overlaps=layout.enable_two_batch_overlap)
        except Exception as error:  # noqa: BLE001 - the library documents no closed set: each means "no data"
            return Refusal(f"{type(error).__name__}: {PATH.sub('', str(error))[:200]}")
        return tables

    def _with_heads(
        self, config: Config, kernels: Kernels, layout: Layout, modes: Mapping[str, str]
    ) -> StepTables | None:
        """Return tables of the layout that stands for all whose ranks have as many heads; None of that one itself."""
        if layout.all2all_backend is not None:
            return None  # with attention as it was measured beside the exchange
        for expert_parallel in (False, True):
            part = _with_same_heads(layout, expert_parallel=expert_parallel)
            if part == layout:
                return None
            found = self._once(config, kernels, part, modes)
            if not isinstance(found, Refusal):
                return found
        return None

    def _hold(self, kernels: Kernels, handle: Any) -> None:
        """Keep the tables of a system in memory, in place of those not asked for the longest."""
        system = (kernels.system, kernels.engine, kernels.crosses_nodes)
        self._held[system] = self._held.get(system, handle)
        give_back_freed()


def _of_any_layout(config: Config, kernels: Kernels, modes: Mapping[str, str]) -> Combination:
    """Return what a refusal depends on that is the same of every layout."""
    return config.digest, kernels.system, kernels.engine, kernels.crosses_nodes, tuple(sorted(modes.items()))


def _parts(layout: Layout) -> tuple[tuple[Layout, str], ...]:
    """Return layouts whose ranks have the same experts, and the same heads, and what is said where none were measured.

    Each stands for all that have these, as far as nothing else of it is refused before.
    """
    ranks = layout.tensor_parallel_size * layout.data_parallel_size
    experts = Layout(data_parallel_size=ranks, expert_parallel=layout.expert_parallel)
    heads = _with_same_heads(layout, expert_parallel=layout.expert_parallel)
    return (experts, NO_EXPERTS), (heads, NO_ATTENTION)


def _with_same_heads(layout: Layout, *, expert_parallel: bool) -> Layout:
    """Return the least layout whose ranks have as many heads."""
    return Layout(tensor_parallel_size=layout.tensor_parallel_size, expert_parallel=expert_parallel)
