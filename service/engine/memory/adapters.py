"""Weights of LoRA adapters that an engine keeps beside the model."""

from service.engine.derived import derived
from service.engine.errors import InvalidQuestionError
from service.engine.formats.elements import HALF_BYTES
from service.engine.inputs import Layout
from service.engine.layers import Architecture, DecoderLayer
from service.engine.memory.matrices import layer_matrices


@derived(64)
def adapter_bytes(architecture: Architecture, layout: Layout, max_loras: int, max_lora_rank: int) -> int:
    """Return the buffers of adapters on one rank, allocated at start whatever is loaded. [bytes].

        bytes = max_loras x rank x 2 x sum over matrices (fused parts x inputs of the rank + outputs of the rank)

    Of rank 16 on every matrix of Llama 3.1 8B, Unsloth prints "Trainable parameters = 41,943,040":

    >>> from service.engine.families import parse_architecture
    >>> config = {"architectures": ["LlamaForCausalLM"], "hidden_size": 4_096, "intermediate_size": 14_336,
    ...           "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128_256,
    ...           "max_position_embeddings": 131_072}
    >>> adapter_bytes(parse_architecture(config), Layout(), 1, 16) // HALF_BYTES
    41943040

    Column-parallel matrices keep the first factor whole and split the second; row-parallel ones the
    other way round.

    Args:
        architecture: a model whose layers all state which of their matrices adapters change.
        layout: how one replica is spread.
        max_loras: adapters in one batch. [count]
        max_lora_rank: highest rank among them.

    Raises:
        InvalidQuestionError: experts or other attention, whose adapter buffers have no rule here.

    Source:
        vLLM 0.33 `lora/layers/base_linear.py`, `column_parallel_linear.py` (`create_lora_weights`).
    """
    sides = 0
    for layer in architecture.layers:
        adapted = _adapted(architecture, layer)
        for matrix in layer_matrices(architecture, layer, layout):
            if matrix.name in adapted:
                sides += matrix.count * (matrix.parts * matrix.columns + matrix.rows)
    return max_loras * max_lora_rank * HALF_BYTES * sides // layout.pipeline_parallel_size


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
