"""What a layer of Inkling holds, against the tensors of its files and vLLM's sizes of a window of convolutions."""

from dataclasses import replace

import pytest

from service.engine.inputs import Layout
from service.engine.layers import ConvolvedAttention
from tests.engine.layers.ranks import FP8, rank

# huggingface.co/thinkingmachines/Inkling config.json
FULL = ConvolvedAttention(
    num_attention_heads=64,
    num_key_value_heads=8,
    head_dim=128,
    v_head_dim=128,
    norm_elements=256,
    hidden_size=6_144,
    conv_kernel_size=4,
    relative_rank=16,
    relative_extent=1_024,
)
LOCAL = replace(FULL, num_key_value_heads=16).windowed(512)


def test_a_layer_has_the_tensors_of_its_files() -> None:
    # Shapes of `model.llm.layers.0.attn`, a local layer: wq_du 8,192, wk_dv and wv_dv 2,048, wr_du 1,024 rows of 6,144;
    # wo_ud 6,144 of 8,192; k_sconv and v_sconv 2,048 channels; rel_logits_proj 16 x 512; and both outputs' sconv.
    matrices = {matrix.module: matrix for matrix in LOCAL.matrices(6_144, Layout(), "model.layers.0.")}

    assert matrices["model.layers.0.self_attn.q_proj"].rows == 8_192 + 2 * 2_048 + 1_024
    assert matrices["model.layers.0.self_attn.o_proj"].columns == 8_192
    assert matrices["model.layers.0.self_attn.sconv"].elements == 4 * (2 * 2_048 + 2 * 6_144)
    assert matrices["model.layers.0.self_attn.rel_logits_proj"].elements == 16 * 512


def test_ranks_split_heads_and_channels_and_hold_tables_whole() -> None:
    halves, whole = (LOCAL.matrices(6_144, Layout(tensor_parallel_size=ranks), "") for ranks in (2, 1))
    ratios = {matrix.module: all_of.elements / matrix.elements for matrix, all_of in zip(halves, whole, strict=True)}

    assert ratios["self_attn.q_proj"] == ratios["self_attn.o_proj"] == ratios["self_attn.sconv"] == 2
    assert ratios["self_attn.norms"] == ratios["self_attn.rel_logits_proj"] == 1


@pytest.mark.parametrize("layer", [FULL, LOCAL])
def test_windows_of_convolutions_have_one_page_whatever_the_heads(layer: ConvolvedAttention) -> None:
    """`sconv_swa_attn.py`: "padded to a power of two so every layer's conv page is the same size"."""
    kept, window = layer.caches(rank(8))

    assert (window.block_size, window.window, window.page_size_bytes) == (4, 4, 16_384)
    assert window.page_size_bytes % kept.page_size_bytes == 0


def test_what_is_convolved_stays_in_the_model_s_dtype() -> None:
    kept, window = FULL.caches(rank(4, **FP8))

    assert (kept.token_bytes, window.token_bytes) == (2 * 256, 2 * 2_048 * 2)


def test_no_rank_repeats_a_key_value_head() -> None:
    """`sconv_swa_attn.py` asserts that there are no more ranks than key-value heads."""
    rules = {divisor.name: (divisor.size, divisor.rule) for divisor in FULL.divisors}

    assert rules["key-value heads, which are convolved"] == (8, "exact")
    assert rules["convolved channels"] == (6_144, "exact")
