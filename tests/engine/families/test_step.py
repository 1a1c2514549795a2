"""Step 1, against the total of a checkpoint."""

from typing import Any

from service.engine.families import parse_architecture
from service.engine.inputs import Layout
from service.engine.memory.cache_shape import cache_shape
from service.engine.memory.parameters import num_parameters

# huggingface.co/stepfun-ai/Step-Audio-TTS-3B, config.json; safetensors
STEP: dict[str, Any] = {
    "architectures": ["Step1ForCausalLM"], "num_hidden_layers": 32, "hidden_size": 3072, "num_attention_heads": 48,
    "num_attention_groups": 4, "intermediate_size": 8192, "vocab_size": 74_752, "max_position_embeddings": 32_768,
    "tie_word_embeddings": False,
}  # fmt: skip


def test_parameters_are_the_printed_ones() -> None:
    assert num_parameters(parse_architecture(STEP)) == 3_529_706_496


def test_groups_share_keys_and_values_and_slopes_need_no_table() -> None:
    model = parse_architecture(STEP)

    assert cache_shape(model, Layout(), "auto", None).bytes_per_token == 32 * 4 * 2 * 64 * 2
    assert model.rotary_tables == ()
