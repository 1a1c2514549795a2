"""Weights of LoRA adapters that an engine keeps beside the model."""

from packaging.version import Version

from service.engine.derived import derived
from service.engine.engines.device import REFERENCE, Device
from service.engine.errors import InvalidQuestionError
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
        InvalidQuestionError: experts or other attention, whose adapter buffers have no rule here.

    Source:
        vLLM 0.33 `lora/layers/base_linear.py`, `column_parallel_linear.py`, `vocab_parallel_embedding.py`,
        `logits_processor.py` (`create_lora_weights`).
    """
    sides = 0
    for layer in architecture.layers:
        adapted = _adapted(architecture, layer)
        for matrix in layer_matrices(architecture, layer, layout):
            if matrix.name in adapted:
                sides += matrix.count * (matrix.parts * matrix.columns + matrix.rows)
    stages = layout.pipeline_parallel_size
    vocabulary = _vocabulary_sides(architecture, device) // min(stages, 2)
    return max_loras * max_lora_rank * HALF_BYTES * (sides // stages + vocabulary)


def _vocabulary_sides(architecture: Architecture, device: Device) -> int:
    """Return inputs and outputs of the embedding table and of the head, where the version adapts them."""
    versions = architecture.vocabulary_adapted
    if versions is None or not device.is_vllm_on_cuda:
        return 0
    since, until = versions
    own = Version(device.plan.version)
    adapted = own >= Version(since) and (not until or own < Version(until))
    return 2 * (architecture.vocab_size + architecture.hidden_size) if adapted else 0


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
