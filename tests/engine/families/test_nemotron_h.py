"""Nemotron-H whose layers have experts of their own (Puzzle), counted by hand as vLLM 0.33 `nemotron_h.py` builds them."""

from typing import Any

import pytest

from service.engine.errors import MissingConfigFieldError, UnsupportedModelError
from service.engine.families import parse_architecture
from service.engine.inputs import Layout

# Sizes of huggingface.co/nvidia/NVIDIA-Nemotron-Labs-3-Puzzle-75B-A9B-BF16, config.json, of four layers alone
KINDS = ["mamba", "moe", "attention", "moe"]
BLOCKS: list[dict[str, Any]] = [
    {"block_type": "mamba"},
    {"block_type": "moe", "moe_intermediate_size": 1280, "num_experts_per_tok": 4},
    {"block_type": "attention"},
    {"block_type": "moe", "moe_intermediate_size": 2688, "num_experts_per_tok": 22},
]
PUZZLE: dict[str, Any] = {
    "architectures": ["NemotronHPuzzleForCausalLM"], "model_type": "nemotron_h_puzzle", "hidden_size": 4096,
    "num_attention_heads": 32, "num_key_value_heads": 2, "head_dim": 128, "intermediate_size": 21_504,
    "n_routed_experts": 512, "n_shared_experts": 1, "moe_latent_size": 1024,
    "moe_shared_expert_intermediate_size": 5376, "vocab_size": 131_072, "mamba_num_heads": 128, "mamba_head_dim": 64,
    "ssm_state_size": 96, "n_groups": 8, "conv_kernel": 4, "max_position_embeddings": 262_144,
    "layers_block_type": KINDS, "block_configs": BLOCKS,
}  # fmt: skip


def test_each_layer_has_experts_of_its_own() -> None:
    narrow, wide = (parse_architecture(PUZZLE).layers[index].mlp for index in (1, 3))

    counts = [sum(it.elements for it in part.matrices(4096, Layout(), "")) for part in (narrow, wide)]
    chosen = [part.routing.num_experts_per_tok for part in (narrow, wide) if part.routing is not None]

    assert counts[1] - counts[0] == 512 * 2 * 1024 * (2688 - 1280)
    assert chosen == [4, 22]


def test_a_config_that_leaves_layers_out_is_refused() -> None:
    with pytest.raises(MissingConfigFieldError, match="block_configs"):
        parse_architecture(PUZZLE | {"block_configs": BLOCKS[:3]})


@pytest.mark.parametrize("block", [{"block_type": "moe"}, {"block_type": "mamba", "mamba_num_heads": 64}])
def test_what_no_published_config_states_is_refused(block: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedModelError, match="block_configs"):
        parse_architecture(PUZZLE | {"block_configs": [block, *BLOCKS[1:]]})
