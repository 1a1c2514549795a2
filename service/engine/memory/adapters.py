"""Weights of LoRA adapters that an engine keeps beside the model."""

from packaging.version import Version

from service.engine.derived import derived
from service.engine.engines.classes import is_within
from service.engine.engines.device import REFERENCE, Device
from service.engine.errors import InvalidQuestionError, RefusedStartError
from service.engine.formats.elements import HALF_BYTES
from service.engine.inputs import Layout
from service.engine.layers import Architecture, DecoderLayer
from service.engine.memory.matrices import layer_matrices


@derived(64)
def adapter_bytes(
    architecture: Architecture, layout: Layout, max_loras: int, max_lora_rank: int, device: Device = REFERENCE
) -> int:
    """Return the buffers of adapters on one rank, allocated at start whatever is loaded. [bytes].

        bytes = max_loras x rank x 2 x (sum over matrices (fused parts x inputs of the rank + outputs of the rank)
                                        + (vocabulary + width) for the embedding table and for the head)

    Parts that checkpoints store as one matrix count once, and some classes leave the head as it is.

    Of rank 16 on every matrix of Llama 3.1 8B, Unsloth prints "Trainable parameters = 41,943,040":

    >>> from dataclasses import replace
    >>> from service.engine.families import parse_architecture
    >>> config = {"architectures": ["LlamaForCausalLM"], "hidden_size": 4_096, "intermediate_size": 14_336,
    ...           "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128_256,
    ...           "max_position_embeddings": 131_072}
    >>> llama = parse_architecture(config)
    >>> adapter_bytes(replace(llama, vocabulary_adapted=None), Layout(), 1, 16) // HALF_BYTES
    41943040
    >>> adapter_bytes(llama, Layout(), 1, 16) // HALF_BYTES - 41_943_040 == 2 * 16 * (128_256 + 4_096)
    True

    Column-parallel matrices keep the first factor whole and split the second; row-parallel ones the
    other way round. Factors of the vocabulary stand whole on every rank of the first stage and of the last.

    Args:
        architecture: a model whose layers all state which of their matrices adapters change.
        layout: how one replica is spread.
        max_loras: adapters in one batch. [count]
        max_lora_rank: highest rank among them.
        device: the engine's version.

    Raises:
        RefusedStartError: vLLM adapts no model of this class.
        InvalidQuestionError: experts or other attention, whose adapter buffers have no rule here.

    Source:
        vLLM 0.33 `lora/layers/base_linear.py`, `column_parallel_linear.py`, `vocab_parallel_embedding.py`,
        `logits_processor.py` (`create_lora_weights`).
    """
    _check_class(architecture, device)
    sides, joined = 0, _joined(architecture, device)
    for layer in architecture.layers:
        adapted = _adapted(architecture, layer)
        for matrix in layer_matrices(architecture, layer, layout):
            if matrix.name in adapted:
                parts = 1 if matrix.name in joined else matrix.parts
                sides += matrix.count * (parts * matrix.columns + matrix.rows)
    stages = layout.pipeline_parallel_size
    one_side = architecture.vocab_size + architecture.hidden_size
    vocabulary = min(_adapted_ends(architecture, device), 2 if stages == 1 else 1) * one_side
    return max_loras * max_lora_rank * HALF_BYTES * (sides // stages + vocabulary)


def _check_class(architecture: Architecture, device: Device) -> None:
    if device.is_vllm_on_cuda and not architecture.takes_adapters:
        raise RefusedStartError(
            f"{device.engine} adapts no model of {architecture.name}", field="max_loras", accepted="0"
        )


def _joined(architecture: Architecture, device: Device) -> frozenset[str]:
    """Return the projections whose parts share a first factor in this version."""
    since, projections = architecture.joined_inputs
    is_joined = device.is_vllm_on_cuda and Version(device.plan.version) >= Version(since)
    return projections if is_joined else frozenset()


def _adapted_ends(architecture: Architecture, device: Device) -> int:
    """Return how many of embedding table and head the version adapts."""
    if not device.is_vllm_on_cuda:
        return 0
    own, both, table = device.plan.version, architecture.vocabulary_adapted, architecture.table_adapted
    if both is not None and is_within(own, *both):
        return 2
    return int(bool(table) and is_within(own, table, ""))


def _adapted(architecture: Architecture, layer: DecoderLayer) -> set[str]:
    """Return the names of the layer's matrices that adapters change."""
    adapted: set[str] = set()
    for part in layer.parts:
        if part.adapted_matrices is None:
            raise InvalidQuestionError(
                f"adapters of {architecture.name} have no rule: only dense layers with plain attention do",
                field="max_loras",
                accepted="0",
            )
        adapted.update(part.adapted_matrices)
    return adapted
