"""Weights: what one rank loads, and how many parameters a model has.

loaded = matrices of the fullest stage, as the GPU's kernels hold them + rotary tables + the allocator's rests
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from service.engine.arithmetic import ceil_div, round_up
from service.engine.derived import derived
from service.engine.engines.device import REFERENCE, Device
from service.engine.engines.expert_kernels import ExpertKernels, expert_kernels
from service.engine.formats.elements import HALF_BYTES
from service.engine.formats.matrix import CACHE_SCALES, Matrix
from service.engine.formats.quantization import UNQUANTIZED, Quantization
from service.engine.formats.stored import matrix_bytes
from service.engine.inputs import Layout
from service.engine.layers import Architecture, DecoderLayer, DraftHead
from service.engine.memory.allocator import allocated_bytes
from service.engine.memory.draft_weights import draft_matrices
from service.engine.memory.matrices import EMBEDDINGS, HEAD, TOWER, Spread, embedding_matrices, joined, layer_matrices
from service.engine.memory.stages import pipeline_stages


@dataclass(frozen=True, slots=True, kw_only=True)
class RankWeights:
    """The fullest rank's weights. [bytes]."""

    param_bytes: int  # as instantiated, before anything is repacked
    loaded_bytes: int  # resident once loaded, as the start-up log prints it
    by_component: Mapping[str, int]  # of what is loaded


@derived(256)
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
    spread = Spread(shared, joined(shared) if device.plan.joins_copies else shared)
    return _rank_weights(architecture, spread, quantization, draft, expert_kernels(device), interleaves)


@derived(256)
def _rank_weights(
    architecture: Architecture,
    spread: Spread,
    quantization: Quantization,
    draft: DraftHead | None,
    kernels: ExpertKernels,
    interleaves_rotary: bool,  # noqa: FBT001 - part of a key
) -> RankWeights:
    """Return the same under the kernels of a GPU, which are those of many."""
    stages = _stages(architecture, quantization, spread, kernels)
    if draft is not None:
        stored = quantization if draft.is_quantized else UNQUANTIZED
        stages[-1].add(
            _summed(
                draft_matrices(draft, spread.attention), stored, architecture.element_bytes, kernels, component="draft"
            )
        )
    fullest = max(stages, key=lambda rank: rank.loaded)
    tables = sum(table.bytes_kept(interleaves=interleaves_rotary) for table in architecture.rotary_tables)
    return RankWeights(
        param_bytes=fullest.instantiated,
        loaded_bytes=fullest.loaded + fullest.rests + tables,
        by_component={**fullest.by_component, "rotary_tables": tables, "allocator_rests": fullest.rests},
    )


def _stages(
    architecture: Architecture, quantization: Quantization, spread: Spread, kernels: ExpertKernels
) -> list["_Sum"]:
    """Return what one rank of each pipeline stage holds; layers that are alike are added up once."""
    alike = _alike(architecture, quantization)
    layout, rest = spread
    unstaged = Spread(*(replace(each, pipeline_parallel_size=1) for each in spread))
    before, after = embedding_matrices(architecture, layout, rest)
    first, table, last = (
        _summed(matrices, quantization, architecture.element_bytes, kernels) for matrices in (before, before[:1], after)
    )
    repeats_both = architecture.repeats_ends and not architecture.ties_embeddings
    of_layer = {index: _layer_sum(architecture, index, quantization, unstaged, kernels) for index in set(alike)}
    stages = []
    for start, end in pipeline_stages(len(architecture.layers), layout.pipeline_parallel_size):
        stage = _Sum()
        if start == 0:
            stage.add(first)
        elif architecture.repeats_embeddings and not architecture.ties_embeddings:
            stage.add(table)
        for index, layers in Counter(alike[start:end]).items():
            stage.add(of_layer[index], layers)
        if end == len(architecture.layers) or (architecture.repeats_ends and (start or repeats_both)):
            stage.add(last)
        stages.append(stage)
    return stages


@derived(16)
def _alike(architecture: Architecture, quantization: Quantization) -> tuple[int, ...]:
    """Return for each layer the first one of equal parts whose matrices are stored alike."""
    firsts: dict[object, int] = {}
    return tuple(
        firsts.setdefault((layer.parts, _storing(architecture, layer, quantization)), index)
        for index, layer in enumerate(architecture.layers)
    )


def _storing(architecture: Architecture, layer: DecoderLayer, quantization: Quantization) -> tuple[object, ...]:
    """Return how each matrix of a layer is stored: the same names below the layer's on any layout."""
    modules = [matrix.module for matrix in layer_matrices(architecture, layer, Layout())]
    return tuple((scheme, scheme.keeps(module)) for module in modules for scheme in (quantization.of(module),))


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
    by_component: dict[str, int] = field(default_factory=dict)

    @property
    def loaded(self) -> int:
        """Return the bytes of all matrices as the kernels hold them."""
        return sum(self.by_component.values())

    def add(self, other: "_Sum", times: int = 1) -> None:
        """Add another sum so many times."""
        self.instantiated += times * other.instantiated
        self.rests += times * other.rests
        for name, loaded in other.by_component.items():
            self.by_component[name] = self.by_component.get(name, 0) + times * loaded


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
        loaded = as_stored + _repacked(matrix, stored, element_bytes, kernels)
        name = component or _component(matrix)
        total.by_component[name] = total.by_component.get(name, 0) + loaded
        is_same = made_of is stored
        total.instantiated += as_stored if is_same else matrix_bytes(matrix, made_of, element_bytes, storage)
        if matrix.module != TOWER:  # many small tensors that stand here as one
            total.rests += allocated_bytes(loaded) - loaded
    return total


def _repacked(matrix: Matrix, quantization: Quantization, element_bytes: int, kernels: ExpertKernels) -> int:
    """Return what loading adds to one matrix. [bytes].

    Latent attention keeps its up-projection in two bytes beside a quantized one, to absorb it into queries and
    outputs. MXFP4 kernels want biases in four bytes, and shuffled scales: gpt-oss-120b on Hopper.

    Sources:
        vLLM 0.33 `layers/fused_moe/oracle/mxfp4.py` (`convert_weight_to_mxfp4_moe_kernel_format`),
        `layers/quantization/utils/mxfp4_utils.py` (`_swizzle_mxfp4`), `layers/attention/mla_attention.py`
        (`process_weights_after_loading`).
    """
    scheme = quantization.of(matrix.module)
    if scheme.keeps(matrix.module):
        return 0
    if matrix.is_absorbed:
        return matrix.rows * matrix.columns * element_bytes
    if matrix.inner_side and scheme.scheme == "mxfp4" and matrix.own_multiple > 1:
        return _shuffled_bytes(kernels.storage.padded(matrix, "mxfp4"), scheme.block, kernels)
    return 0


def _shuffled_bytes(matrix: Matrix, group: int, kernels: ExpertKernels) -> int:
    """Return what wider biases and shuffled scales add to padded MXFP4 experts. [bytes]."""
    added = matrix.biases * HALF_BYTES if kernels.widens_biases else 0
    row_bytes = matrix.columns // 2
    added += matrix.rows * (round_up(row_bytes, kernels.value_line_bytes) - row_bytes)
    if kernels.scale_rows:
        groups = ceil_div(matrix.columns, group)
        added += round_up(matrix.rows, kernels.scale_rows) * round_up(groups, kernels.scale_groups)
        added -= 0 if kernels.keeps_loaded_scales else matrix.rows * groups
    return matrix.count * added


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


@derived(1)
def num_parameters(architecture: Architecture) -> int:
    """Return the parameters of the whole model: every matrix, norm, bias and embedding.

    Llama 3.1 8B, as its repository counts its safetensors:

    >>> from service.engine.families import parse_architecture
    >>> config = {"architectures": ["LlamaForCausalLM"], "hidden_size": 4_096, "intermediate_size": 14_336,
    ...           "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128_256,
    ...           "max_position_embeddings": 131_072}
    >>> num_parameters(parse_architecture(config))
    8030261248
    """
    first, last = embedding_matrices(architecture, Layout())
    layers = (matrix for layer in architecture.layers for matrix in layer_matrices(architecture, layer, Layout()))
    return sum(_elements(matrix, architecture) for matrix in (*first, *layers, *last))


@derived(1)
def num_active_parameters(architecture: Architecture) -> int:
    """Return the parameters that one token passes through: of the experts only those it is routed to.

    active = total - sum over layers (1 - top_k / experts) x routed expert parameters

    Mixtral 8x7B uses 12.9B of its 46.7B parameters (Mistral AI, "Mixtral of experts"):

    >>> from service.engine.families import parse_architecture
    >>> config = {"architectures": ["MixtralForCausalLM"], "hidden_size": 4_096, "intermediate_size": 14_336,
    ...           "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 32_000,
    ...           "max_position_embeddings": 32_768, "num_local_experts": 8, "num_experts_per_tok": 2}
    >>> mixtral = parse_architecture(config)
    >>> f"{num_active_parameters(mixtral) / 1e9:.1f}B of {num_parameters(mixtral) / 1e9:.1f}B"
    '12.9B of 46.7B'
    """
    first, last = embedding_matrices(architecture, Layout())
    active = sum(_elements(matrix, architecture) for matrix in [*first, *last])
    for layer in architecture.layers:
        routing = layer.mlp.routing
        for matrix in layer_matrices(architecture, layer, Layout()):
            elements = _elements(matrix, architecture)
            if routing is not None and matrix.is_routed:
                elements = elements * routing.num_experts_per_tok // routing.num_experts
            active += elements
    return active


def _elements(matrix: Matrix, architecture: Architecture) -> int:
    """Return the parameters of one matrix: without scales of the cache, and without the vocabulary's padding."""
    if matrix.module.endswith(CACHE_SCALES):
        return 0
    padding = matrix.rows - architecture.vocab_size if matrix.module in (EMBEDDINGS, HEAD) else 0
    return matrix.elements - padding * architecture.hidden_size
