"""Weights: what one rank loads.

loaded = matrices of the fullest stage, as the GPU's kernels hold them + rotary tables + the allocator's rests
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from service.engine.derived import derived
from service.engine.engines.device import REFERENCE, Device
from service.engine.engines.expert_kernels import ExpertKernels
from service.engine.formats.elements import SINGLE_BYTES
from service.engine.formats.matrix import Matrix
from service.engine.formats.quantization import UNQUANTIZED, Quantization
from service.engine.formats.stored import matrix_bytes, values_and_biases
from service.engine.inputs import Layout, StageRule
from service.engine.layers import Architecture, DraftHead
from service.engine.memory.allocator import rests
from service.engine.memory.draft_weights import draft_matrices, own_ends
from service.engine.memory.indexers import as_indexed
from service.engine.memory.kinds import stored_alike
from service.engine.memory.matrices import (
    EMBEDDINGS,
    HEAD,
    TOWER,
    Spread,
    beside_attention,
    embedding_matrices,
    layer_matrices,
    projecting_all,
)
from service.engine.memory.own_parts import as_held, kernels_as_run
from service.engine.memory.repacked import repacked_bytes
from service.engine.memory.stages import pipeline_stages

MOST_LAYOUTS: Final = 1024  # a mixture has two hundred on a GPU, each in four formats


@dataclass(frozen=True, slots=True, kw_only=True)
class RankWeights:
    """The fullest rank's weights. [bytes]."""

    param_bytes: int  # as instantiated, before anything is repacked
    loaded_bytes: int  # resident once loaded, as the start-up log prints it
    by_component: Mapping[str, int]  # of what is loaded


@derived(MOST_LAYOUTS)
def rank_weights(
    architecture: Architecture,
    *,
    layout: Layout,
    quantization: Quantization,
    draft: DraftHead | None = None,
    device: Device = REFERENCE,
) -> RankWeights:
    """Return the bytes that the fullest rank loads.

        loaded = parameters, as the kernels hold them + tables of rotary positions + what the allocator rounds up

    vLLM's log says of Llama 3.1 8B "Loading model weights took 14.9888 GB" (its issue 10517), which are GiB:

    >>> from service.engine.families import parse_architecture
    >>> config = {"architectures": ["LlamaForCausalLM"], "hidden_size": 4_096, "intermediate_size": 14_336,
    ...           "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128_256,
    ...           "max_position_embeddings": 131_072}
    >>> loaded = rank_weights(parse_architecture(config), layout=Layout(), quantization=UNQUANTIZED).loaded_bytes
    >>> round(loaded / 2**30, 4)
    14.9888

    Args:
        architecture: the model.
        layout: tensor parallelism splits matrices, pipeline parallelism splits layers, expert
            parallelism deals experts out whole.
        quantization: how the checkpoint stores weights.
        draft: layers that draft tokens, on the last pipeline stage.
        device: the GPU's generation and the engine's version, by which kernels are picked.
    """
    shared = replace(layout, decode_context_parallel_size=1)
    if not architecture.has_experts and not layout.expert_parallel and draft is None:
        shared = replace(shared, data_parallel_size=1)  # copies share experts alone
    interleaves = device.plan.interleaves_rotary
    spread = Spread(shared, beside_attention(shared, joins_copies=device.plan.joins_copies))
    if device.plan.projects_shared_caches:
        architecture = projecting_all(architecture)
    architecture = as_held(as_indexed(architecture, device.plan), device.plan)
    kernels, plan = kernels_as_run(architecture, quantization, device), device.plan
    return _rank_weights(
        architecture, spread, quantization, draft, kernels, interleaves, plan.shares_draft_ends, plan.stage_rule
    )


@derived(MOST_LAYOUTS)
def _rank_weights(
    architecture: Architecture,
    spread: Spread,
    quantization: Quantization,
    draft: DraftHead | None,
    kernels: ExpertKernels,
    interleaves_rotary: bool,  # noqa: FBT001 - part of a key
    shares_draft_ends: bool,  # noqa: FBT001 - part of a key
    stage_rule: StageRule,
) -> RankWeights:
    """Return the same under the kernels of a GPU, which are those of many."""
    drafted = _Sum()
    if draft is not None:
        stored = quantization if draft.is_quantized else UNQUANTIZED
        matrices = draft_matrices(draft, spread.attention)
        matrices += [] if shares_draft_ends else own_ends(draft, *spread)
        drafted = _summed(matrices, stored, architecture.element_bytes, kernels, component="draft")
    fullest = _fullest_stage(architecture, quantization, spread, kernels, drafted, stage_rule)
    tables = sum(table.bytes_kept(interleaves=interleaves_rotary) for table in architecture.rotary_tables)
    return RankWeights(
        param_bytes=fullest.instantiated,
        loaded_bytes=fullest.loaded + fullest.rests + tables,
        by_component={**fullest.by_component, "rotary_tables": tables, "allocator_rests": fullest.rests},
    )


def _fullest_stage(
    architecture: Architecture,
    quantization: Quantization,
    spread: Spread,
    kernels: ExpertKernels,
    drafted: "_Sum",
    stage_rule: StageRule,
) -> "_Sum":
    """Return what one rank of the fullest pipeline stage holds; drafts stand on the last one."""
    first, table, last = _ends(architecture, quantization, spread, kernels)
    unstaged = Spread(*(replace(each, pipeline_parallel_size=1) for each in spread))
    of_kind = {
        kind: _layer_sum(architecture, kind, quantization, unstaged, kernels)
        for kind in set(stored_alike(architecture, quantization))
    }
    stages = _layers_of_stages(architecture, quantization, spread.attention.pipeline_parallel_size, stage_rule)
    ties = architecture.ties_embeddings  # the head is the table then, which the last stage holds for it
    ends = architecture.ends
    rank_parts = []
    for number, kinds in enumerate(stages):
        parts = [(of_kind[kind], layers) for kind, layers in kinds]
        if number == 0:
            parts.insert(0, (first, 1))
        elif ends.repeats_table and not (ties and (ends.repeats_head or number == len(stages) - 1)):
            parts.insert(0, (table, 1))
        if number == len(stages) - 1 or (ends.repeats_head and (number or not ties)):
            parts.append((last, 1))
        rank_parts.append(parts)
    rank_parts[-1].append((drafted, 1))
    return _together(max(rank_parts, key=lambda parts: sum(part.loaded * times for part, times in parts)))


@derived(8)
def _layers_of_stages(
    architecture: Architecture, quantization: Quantization, stages: int, stage_rule: StageRule
) -> tuple[tuple[tuple[int, int], ...], ...]:
    """Return for each pipeline stage its kinds of layers with their number."""
    alike = stored_alike(architecture, quantization)
    cuts = pipeline_stages(len(alike), stages, stage_rule)
    return tuple(tuple(Counter(alike[start:end]).items()) for start, end in cuts)


def _ends(
    architecture: Architecture, quantization: Quantization, spread: Spread, kernels: ExpertKernels
) -> tuple["_Sum", "_Sum", "_Sum"]:
    """Return what stands before the layers, the table of embeddings alone, and what stands behind them."""
    # Of how many stages there are, only whether there are several counts.
    cut = (replace(each, pipeline_parallel_size=min(each.pipeline_parallel_size, 2)) for each in spread)
    return _cut_ends(architecture, quantization, Spread(*cut), kernels)


@derived(128)
def _cut_ends(
    architecture: Architecture, quantization: Quantization, spread: Spread, kernels: ExpertKernels
) -> tuple["_Sum", "_Sum", "_Sum"]:
    before, after = embedding_matrices(architecture, *spread)
    element_bytes = architecture.element_bytes
    first, table, last = (
        _summed(matrices, quantization, element_bytes, kernels) for matrices in (before, before[:1], after)
    )
    return first, table, last


@derived(512)
def _layer_sum(
    architecture: Architecture, index: int, quantization: Quantization, spread: Spread, kernels: ExpertKernels
) -> "_Sum":
    """Return what one rank holds of one layer, whatever stage it stands in."""
    matrices = layer_matrices(architecture, architecture.layers[index], *spread)
    return _summed(matrices, quantization, architecture.element_bytes, kernels)


@dataclass(slots=True)
class _Sum:
    """What is added up of matrices on one rank. [bytes]."""

    instantiated: int = 0
    rests: int = 0  # of the allocator's blocks
    loaded: int = 0  # as the kernels hold them
    by_component: dict[str, int] = field(default_factory=dict)

    def add(self, name: str, loaded: int) -> None:
        """Add what is loaded of one component."""
        self.loaded += loaded
        self.by_component[name] = self.by_component.get(name, 0) + loaded


def _together(parts: Iterable[tuple[_Sum, int]]) -> _Sum:
    """Return sums added up, each so many times."""
    total = _Sum()
    for part, times in parts:
        total.instantiated += times * part.instantiated
        total.rests += times * part.rests
        for name, loaded in part.by_component.items():
            total.add(name, times * loaded)
    return total


def _summed(
    matrices: Iterable[Matrix],
    stored: Quantization,
    element_bytes: int,
    kernels: ExpertKernels,
    *,
    component: str = "",
) -> _Sum:
    """Return what matrices take, of one component where it is named."""
    made_of = UNQUANTIZED if stored.is_made_at_load else stored
    total, storage = _Sum(), kernels.storage
    for matrix in matrices:
        as_stored = matrix_bytes(matrix, stored, element_bytes, storage)
        bias_bytes = SINGLE_BYTES if kernels.widens_biases and matrix.inner_side else element_bytes
        values, biases = values_and_biases(matrix, stored, element_bytes, bias_bytes, storage)
        loaded = as_stored + repacked_bytes(matrix, stored, element_bytes, kernels)
        total.add(component or _component(matrix), loaded)
        is_same = made_of is stored
        total.instantiated += as_stored if is_same else matrix_bytes(matrix, made_of, element_bytes, storage)
        if matrix.module != TOWER:  # many small tensors that stand here as one
            total.rests += rests(loaded, values, biases, splits_large=kernels.splits_blocks)
    return total


def _component(matrix: Matrix) -> str:
    """Return the part of the model a reader would name."""
    if matrix.is_routed:
        return "experts"
    if matrix.module == TOWER:
        return "encoder"
    if matrix.module in (EMBEDDINGS, HEAD):
        return "embeddings"
    if ".mlp." in matrix.module:
        return "feed_forward"
    return "attention" if ".layers." in matrix.module else "other"
