"""Which layers have experts, for configs as they are published."""

from typing import Any

import pytest

from service.engine.config_reader import ConfigReader
from service.engine.families.parts.sparsity import SparsityRule, every_few, first_dense, periodic, sparse_layers

# rule, config, layers, the first layers with experts and their number
PUBLISHED: dict[str, tuple[SparsityRule, dict[str, Any], int, list[int], int]] = {
    # arXiv:2412.19437: all but the first three of 61 layers
    "DeepSeek-V3": (first_dense, {"first_k_dense_replace": 3, "moe_layer_freq": 1}, 61, [3, 4, 5], 58),
    # huggingface.co/Qwen/Qwen3-30B-A3B/config.json
    "Qwen3-30B-A3B": (every_few, {"decoder_sparse_step": 1, "mlp_only_layers": []}, 48, [0, 1, 2], 48),
    # arXiv:2403.19887: experts in every other layer
    "Jamba": (periodic("expert_layer_period", 2, "expert_layer_offset", 1), {}, 32, [1, 3, 5], 16),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_layers_with_experts(name: str) -> None:
    rule, config, layers, first, count = PUBLISHED[name]

    sparse = sparse_layers(ConfigReader(config), layers, rule)

    assert len(sparse) == layers
    assert [index for index, has_experts in enumerate(sparse) if has_experts][:3] == first
    assert sum(sparse) == count


def test_a_list_names_layers_whatever_the_rule() -> None:
    config = {"mlp_layer_types": ["dense", "sparse", "dense"], "first_k_dense_replace": 0}

    assert list(sparse_layers(ConfigReader(config), 3, first_dense)) == [False, True, False]
    assert list(sparse_layers(ConfigReader({"moe_layer_freq": [0, 1, 1]}), 4, every_few)) == [False, True, True, False]
