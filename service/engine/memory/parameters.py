"""How many parameters a model has, and how many of them a token passes through: of each kind of layer once."""

from collections import Counter
from collections.abc import Iterator

from service.engine.derived import derived
from service.engine.formats.matrix import CACHE_SCALES, PADDING, Matrix
from service.engine.inputs import Layout
from service.engine.layers import Architecture, DecoderLayer
from service.engine.memory.kinds import layer_kinds
from service.engine.memory.matrices import EMBEDDINGS, HEAD, embedding_matrices, layer_matrices


@derived(1)
def num_parameters(architecture: Architecture) -> int:
    """Return the parameters of the whole model: every matrix, norm, bias and embedding, in the host too.

    Llama 3.1 8B, as its repository counts its safetensors:

    >>> from service.engine.families import parse_architecture
    >>> config = {"architectures": ["LlamaForCausalLM"], "hidden_size": 4_096, "intermediate_size": 14_336,
    ...           "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128_256,
    ...           "max_position_embeddings": 131_072}
    >>> num_parameters(parse_architecture(config))
    8030261248
    """
    first, last = embedding_matrices(architecture, Layout())
    of_kinds = sum(
        number * sum(elements for elements, _ in matrices) for matrices, number in _elements_by_kind(architecture)
    )
    beside = sum(_elements(matrix, architecture) for matrix in (*first, *last))
    return of_kinds + beside + architecture.hosted_parameters


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
    active = sum(_elements(matrix, architecture) for matrix in (*first, *last))
    return active + sum(
        number * sum(passed for _, passed in matrices) for matrices, number in _elements_by_kind(architecture)
    )


@derived(1)
def _elements_by_kind(architecture: Architecture) -> list[tuple[list[tuple[int, int]], int]]:
    """Return for each kind of layer the parameters of its matrices, those that a token passes, and its layers."""
    return [
        ([*_of_layer(architecture, architecture.layers[kind])], number)
        for kind, number in Counter(layer_kinds(architecture)).items()
    ]


def _of_layer(architecture: Architecture, layer: DecoderLayer) -> Iterator[tuple[int, int]]:
    """Yield the parameters of each matrix, and those that a token passes."""
    routing = layer.mlp.routing
    for matrix in layer_matrices(architecture, layer, Layout()):
        passed = elements = _elements(matrix, architecture)
        if routing is not None and matrix.is_routed:
            passed = elements * routing.num_experts_per_tok // routing.num_experts
        yield elements, passed


def _elements(matrix: Matrix, architecture: Architecture) -> int:
    """Return the parameters of one matrix: without scales of the cache, and without padding, the vocabulary's too."""
    if matrix.module.endswith((CACHE_SCALES, PADDING)):
        return 0
    padding = matrix.rows - architecture.vocab_size if matrix.module in (EMBEDDINGS, HEAD) else 0
    return matrix.elements - padding * architecture.hidden_size
