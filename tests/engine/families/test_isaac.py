"""Isaac, against the total of its checkpoints."""

from typing import Any

from service.engine.families import parse_architecture
from service.engine.memory.parameters import num_parameters

# huggingface.co/PerceptronAI/Isaac-0.1, config.json: Qwen3 1.7B behind SigLIP 2 So400m
ISAAC: dict[str, Any] = {
    "architectures": ["IsaacForConditionalGeneration"],
    "num_hidden_layers": 28, "hidden_size": 2048, "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128,
    "intermediate_size": 6144, "vocab_size": 151_936, "max_position_embeddings": 40_960, "tie_word_embeddings": False,
    "vision_config": {
        "hidden_size": 1152, "intermediate_size": 4304, "num_hidden_layers": 27, "num_attention_heads": 16,
        "patch_size": 16, "num_patches": 256, "pixel_shuffle_scale_factor": 2,
    },
}  # fmt: skip


def test_parameters_are_the_printed_ones() -> None:
    # huggingface.co, safetensors of PerceptronAI/Isaac-0.1 and Isaac-0.2-2B-Preview
    assert num_parameters(parse_architecture(ISAAC)) == 2_567_073_008
