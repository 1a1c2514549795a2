"""Buffers of LoRA adapters."""

import pytest

from service.catalog.snapshot import Snapshot
from service.engine.errors import InvalidQuestionError
from service.engine.inputs import Layout
from service.engine.memory.adapters import adapter_bytes

# Llama 3.1 8B: per layer, fused query-key-value 3 x 4096 + 6144, output 4096 + 4096, gate and up 2 x 4096 + 28672,
# down 14336 + 4096; by vLLM's create_lora_weights, worked out by hand.
SIDES = (3 * 4_096 + 6_144) + (4_096 + 4_096) + (2 * 4_096 + 28_672) + (14_336 + 4_096)


@pytest.mark.parametrize(("max_loras", "rank"), [(1, 16), (4, 32)])
def test_buffers_are_allocated_for_every_adapter_and_rank(catalog: Snapshot, max_loras: int, rank: int) -> None:
    taken = adapter_bytes(catalog.model("llama-3.1-8b").architecture, Layout(), max_loras, rank)

    assert taken == max_loras * rank * 2 * 32 * SIDES


def test_stages_share_the_layers(catalog: Snapshot) -> None:
    architecture = catalog.model("llama-3.1-8b").architecture

    assert adapter_bytes(architecture, Layout(pipeline_parallel_size=2), 1, 16) == 16 * 2 * 16 * SIDES


@pytest.mark.parametrize("model", ["gpt-oss-20b", "deepseek-v3", "granite-4.0-h-tiny"])
def test_other_layers_have_no_rule(catalog: Snapshot, model: str) -> None:
    with pytest.raises(InvalidQuestionError, match="have no rule") as refused:
        adapter_bytes(catalog.model(model).architecture, Layout(), 1, 16)

    assert refused.value.field == "max_loras"
