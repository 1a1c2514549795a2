"""Rnj 1, against the total of its checkpoint, and its chunks."""

from typing import Any

from service.engine.families import parse_architecture
from service.engine.inputs import Layout
from service.engine.memory.cache_shape import cache_shape
from service.engine.memory.parameters import num_parameters

# huggingface.co/EssentialAI/rnj-1, config.json; safetensors
RNJ: dict[str, Any] = {
    "architectures": ["Rnj1ForCausalLM"], "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32,
    "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 16_384, "vocab_size": 128_256,
    "max_position_embeddings": 32_768, "layer_types": ["full_attention"] * 32,
}  # fmt: skip


def test_parameters_are_the_printed_ones() -> None:
    assert num_parameters(parse_architecture(RNJ)) == 8_310_501_376


def test_layers_in_chunks_keep_their_window_alone() -> None:
    kinds = ["chunked_attention", "full_attention"] * 16
    model = parse_architecture(RNJ | {"layer_types": kinds, "sliding_window": 8192})

    shape = cache_shape(model, Layout(), "auto", None)

    assert shape.longest_window == 8192
    assert shape.bytes_per_token == 16 * 8 * 2 * 128 * 2
