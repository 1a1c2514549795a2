"""Tables of cosines and sines, as vLLM 0.33 `_compute_cos_sin_cache` makes them."""

from service.engine.layers.rotary import RotaryTable

QWEN = RotaryTable(positions=128_000, width=128, has_image_axes=True, is_interleaved=True)  # Qwen3-VL


def test_a_table_holds_a_cosine_and_a_sine_of_half_as_many_angles() -> None:
    # huggingface.co/meta-llama/Llama-3.1-8B: 131,072 positions, heads of 128.
    assert RotaryTable(positions=131_072, width=128).bytes_kept(interleaves=True) == 131_072 * 2 * 64 * 2


def test_tables_with_axes_were_four_times_as_long_until_they_interleave() -> None:
    assert QWEN.bytes_kept(interleaves=False) == 4 * QWEN.bytes_kept(interleaves=True)
