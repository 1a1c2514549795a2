"""InternLM, whose published configs no row of the referee holds."""

import pytest

from service.engine.families import parse_architecture
from service.engine.memory.parameters import num_parameters

# huggingface.co/internlm/internlm2-7b and internlm2-20b, config.json; safetensors print 7.74B and 19.86B.
PUBLISHED = [(32, 4_096, 32, 14_336, 7.74e9), (48, 6_144, 48, 16_384, 19.86e9)]


@pytest.mark.parametrize(("layers", "width", "heads", "columns", "printed"), PUBLISHED)
def test_parameters_are_the_printed_ones(layers: int, width: int, heads: int, columns: int, printed: float) -> None:
    config = {
        "architectures": ["InternLM2ForCausalLM"],
        "hidden_size": width,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": 8,
        "intermediate_size": columns,
        "vocab_size": 92_544,
        "max_position_embeddings": 32_768,
        "bias": False,
    }

    assert num_parameters(parse_architecture(config)) == pytest.approx(printed, rel=0.001)
