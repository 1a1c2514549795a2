"""Molmo 2, against the totals of its checkpoints."""

from typing import Any

import pytest

from service.engine.errors import UnsupportedModelError
from service.engine.families import parse_architecture
from service.engine.memory.parameters import num_parameters

VISION: dict[str, Any] = {
    "hidden_size": 1152, "intermediate_size": 4304, "num_hidden_layers": 27, "num_attention_heads": 16,
    "num_key_value_heads": 16, "head_dim": 72, "image_patch_size": 14, "image_num_pos": 729,
}  # fmt: skip


def molmo(layers: int, width: int, heads: int, groups: int, columns: int, rows: int, **others: Any) -> dict[str, Any]:
    text = {
        "num_hidden_layers": layers, "hidden_size": width, "num_attention_heads": heads, "num_key_value_heads": groups,
        "head_dim": 128, "intermediate_size": columns, "vocab_size": rows, "additional_vocab_size": 128,
        "qkv_bias": False, "use_qk_norm": True, "max_position_embeddings": 36_864,
    }  # fmt: skip
    adapter = {
        "vit_layers": [-3, -9], "hidden_size": 1152, "intermediate_size": columns, "text_hidden_size": width,
        "num_attention_heads": 16, "num_key_value_heads": 16, "head_dim": 72,
    }  # fmt: skip
    return {
        "architectures": ["Molmo2ForConditionalGeneration"], "text_config": text | others, "vit_config": VISION,
        "adapter_config": adapter,
    }  # fmt: skip


# huggingface.co, safetensors of allenai/Molmo2-4B, Molmo2-8B and Molmo2-O-7B, which leave out what nothing reads
@pytest.mark.parametrize(
    ("config", "printed"),
    [
        (molmo(36, 2560, 32, 8, 9728, 151_936, qk_norm_type="qwen3"), 4_850_869_200),
        (molmo(36, 4096, 32, 8, 12_288, 151_936, qk_norm_type="qwen3"), 8_661_703_120),
        (molmo(32, 4096, 32, 32, 11_008, 100_278, qk_norm_type="olmo", norm_after=True), 7_760_786_896),
    ],
)
def test_parameters_are_the_printed_ones(config: dict[str, Any], printed: int) -> None:
    assert num_parameters(parse_architecture(config)) == printed


def test_other_norms_of_heads_are_refused() -> None:
    with pytest.raises(UnsupportedModelError, match="qk_norm_type"):
        parse_architecture(molmo(2, 256, 2, 2, 512, 100, qk_norm_type="gemma"))
