"""Towers with mergers against published sizes."""

from service.engine.config_reader import ConfigReader
from service.engine.families.parts.patch_mergers import gated_merging, plain_merging, stacked_merging

QWEN_2_VL = {"depth": 32, "embed_dim": 1_280, "hidden_size": 3_584, "mlp_ratio": 4, "num_heads": 16, "patch_size": 14}


def test_qwen_2_vl_s_tower_has_its_published_675_million() -> None:
    """Qwen2-VL (arxiv.org/abs/2409.12191), table 1: a vision encoder of 675 million parameters."""
    tower = plain_merging(ConfigReader(QWEN_2_VL), ConfigReader({}))

    assert round((tower.split_parameters + tower.whole_parameters) / 1e6) in (675, 676)


def test_gated_layers_keep_their_inner_width() -> None:
    vision = ConfigReader({"depth": 32, "hidden_size": 1_280, "intermediate_size": 3_420, "patch_size": 14})

    assert gated_merging(vision).intermediate_size == 3_420


def test_each_deep_stack_has_a_merger_of_its_own() -> None:
    vision = {
        "depth": 27, "hidden_size": 1_152, "intermediate_size": 4_304, "out_hidden_size": 4_096, "patch_size": 16,
        "num_position_embeddings": 2_304,
    }  # fmt: skip
    without = stacked_merging(ConfigReader(vision), ConfigReader({}))
    with_three = stacked_merging(ConfigReader({**vision, "deepstack_visual_indexes": [8, 16, 24]}), ConfigReader({}))
    merged = 4 * 1_152

    added = with_three.split_parameters - without.split_parameters
    assert added == 3 * (merged * merged + merged + merged * 4_096)
