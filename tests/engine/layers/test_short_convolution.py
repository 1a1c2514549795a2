"""LFM2's gated short convolutions."""

from service.engine.inputs import Layout
from service.engine.layers import ShortConvolution
from tests.engine.layers.ranks import rank

# huggingface.co/LiquidAI/LFM2-8B-A1B config.json
LFM2 = ShortConvolution(hidden_size=2_048, conv_kernel_size=3)


def test_the_state_is_the_last_inputs() -> None:
    # vLLM 0.33 `mamba_utils.py` (`short_conv_state_shape`): (2, 2,048) in bf16.
    assert LFM2.state_bytes(rank()) == 2 * 2_048 * 2
    assert LFM2.state_bytes(rank(4, num_speculative_tokens=1)) == 3 * 512 * 2
    assert LFM2.checkpoint is None


def test_weights_are_three_projections_in_one_and_one_out() -> None:
    matrices = LFM2.matrices(2_048, Layout(tensor_parallel_size=2), "model.layers.0.")

    assert sum(it.elements for it in matrices) == (4 * 2_048 * 2_048 + 3 * 2_048) // 2


def test_the_profiling_run_holds_input_gates_and_products() -> None:
    # vLLM 0.33 `short_conv.py` (`forward_cuda` without metadata): B, C and x, B x, and C B x.
    assert LFM2.live(1).per_token == 5 * 2_048
