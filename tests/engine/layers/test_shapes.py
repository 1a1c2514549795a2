"""Sizes by which kernels are measured: those of layers as they are published."""

import pytest

from service.catalog.snapshot import Snapshot
from service.engine.layers import AttentionShape, DeltaShape, NetworkShape
from service.engine.layers.shapes import gated_columns


def test_two_matrices_without_a_gate_hold_as_much_as_three_of_two_thirds_the_columns() -> None:
    # GPT-NeoX-20B (arXiv:2204.06745): 6,144 wide, 24,576 columns, two matrices.
    assert 3 * 6_144 * gated_columns(24_576, is_gated=False) == 2 * 6_144 * 24_576
    assert gated_columns(14_336, is_gated=True) == 14_336


def test_layers_tell_the_sizes_that_their_configs_publish(catalog: Snapshot) -> None:
    # huggingface.co/zai-org/GLM-4.5-Air, Qwen/Qwen3-Next-80B-A3B-Instruct (config.json).
    air = catalog.model("glm-4.5-air").architecture.layers
    delta = catalog.model("qwen3-next-80b-a3b-instruct").architecture.layers[0].mixers[0].shape

    assert air[0].mixers[0].shape == AttentionShape(query_heads=96, key_value_heads=8, head_dim=128)
    assert air[0].mlp.shape == NetworkShape(columns=10_944)
    assert air[-1].mlp.shape == NetworkShape(
        columns=1_408, num_experts=128, num_experts_per_tok=8, expert_columns=1_408
    )
    assert isinstance(delta, DeltaShape)
    assert (delta.key_heads, delta.value_heads, delta.key_head_dim, delta.conv_kernel_size) == (16, 32, 128, 4)


@pytest.mark.parametrize("model", ["deepseek-v3", "minimax-m3", "falcon-mamba-7b-instruct"])
def test_what_no_usual_kernel_runs_has_no_such_sizes(catalog: Snapshot, model: str) -> None:
    shapes = {mixer.shape for mixer in catalog.model(model).architecture.mixers}

    assert None in shapes
