"""Granite 4 Vision, against the totals of its checkpoints."""

from typing import Any

import pytest

from service.engine.errors import UnsupportedModelError
from service.engine.families import parse_architecture
from service.engine.memory.parameters import num_parameters

# huggingface.co/ibm-granite/granite-vision-4.1-4b, config.json: Granite 4.1 3B behind SigLIP 2 So400m for 384 pixels
VISION: dict[str, Any] = {
    "architectures": ["Granite4VisionForConditionalGeneration"],
    "downsample_rate": "4/8",
    "deepstack_layer_map": [[-19, 9], [-13, 6], [-7, 3], [-1, 0]],
    "tie_word_embeddings": True,
    "text_config": {
        "num_hidden_layers": 40, "hidden_size": 2560, "num_attention_heads": 40, "num_key_value_heads": 8,
        "intermediate_size": 8192, "vocab_size": 100_352, "max_position_embeddings": 131_072,
    },
    "vision_config": {
        "hidden_size": 1152, "intermediate_size": 4304, "num_hidden_layers": 27, "num_attention_heads": 16,
        "patch_size": 16, "image_size": 384,
    },
}  # fmt: skip
# SigLIP's pooling head and last norm, which checkpoints hold and the engine does not: a probe, attention of 1,152, a
# norm and a network of 4,304 columns
UNREAD = 1152 + 4 * (1152 + 1) * 1152 + 2 * 1152 + (2 * 4304 + 1) * 1152 + 4304 + 2 * 1152


@pytest.mark.parametrize(
    ("rows", "printed"),
    # huggingface.co, safetensors of ibm-granite/granite-vision-4.1-4b and granite-4.0-3b-vision
    [(100_352, 3_997_203_904), (100_353, 3_997_206_464)],
)
def test_parameters_are_the_printed_ones(rows: int, printed: int) -> None:
    text = VISION["text_config"] | {"vocab_size": rows}

    assert num_parameters(parse_architecture(VISION | {"text_config": text})) == printed - UNREAD


def test_a_rate_that_is_no_fraction_is_refused() -> None:
    with pytest.raises(UnsupportedModelError, match="downsample_rate"):
        parse_architecture(VISION | {"downsample_rate": "half"})
