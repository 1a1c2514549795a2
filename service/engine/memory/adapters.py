"""Weights of LoRA adapters that an engine keeps beside the model."""

from functools import lru_cache

from service.engine.errors import InvalidQuestionError
from service.engine.inputs import Layout
from service.engine.layers import Architecture, DenseMlp, GroupedQueryAttention
from service.engine.memory.matrices import layer_matrices

ELEMENT_BYTES = 2  # adapters have the model's dtype
ADAPTED = ("q_proj", "o_proj", "gate_proj", "up_proj", "down_proj")  # fused matrices under the first one's name


@lru_cache(maxsize=1024)
def adapter_bytes(architecture: Architecture, layout: Layout, max_loras: int, max_lora_rank: int) -> int:
    """Return the buffers of adapters on one rank, allocated at start whatever is loaded. [bytes].

        bytes = max_loras x rank x 2 x sum over matrices (fused parts x inputs of the rank + outputs of the rank)

    Column-parallel matrices keep the first factor whole and split the second; row-parallel ones the
    other way round.

    Args:
        architecture: a dense model with plain attention.
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
        plain = all(isinstance(it, GroupedQueryAttention) for it in layer.mixers)
        if not plain or not isinstance(layer.mlp, DenseMlp):
            raise InvalidQuestionError(
                f"adapters of {architecture.name} have no rule: only dense layers with plain attention do",
                field="max_loras",
                accepted="0",
            )
        for matrix in layer_matrices(architecture, layer, layout):
            if matrix.module.rsplit(".", 1)[-1] in ADAPTED:
                sides += matrix.count * (matrix.parts * matrix.columns + matrix.rows)
    return max_loras * max_lora_rank * ELEMENT_BYTES * sides // layout.pipeline_parallel_size
