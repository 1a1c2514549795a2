"""What towers are built of."""

import pytest

from service.engine.config_reader import ConfigReader
from service.engine.errors import UnsupportedModelError
from service.engine.families.parts.towers import blocks, merging_side, perceptron, seen, side_length, used_layers


def test_a_layer_of_vit_large_has_its_12_6_million_parameters() -> None:
    """An Image is Worth 16x16 Words (arxiv.org/abs/2010.11929), table 1: 24 layers, 1,024 wide, 4,096 inside, 307 million."""
    split, whole = blocks(1_024, 4_096)
    norms = 4 * 1_024

    assert round(24 * (split + whole + norms) / 1e6) == 302  # and 5 million of patches, positions and head


def test_a_gate_is_one_more_matrix() -> None:
    assert blocks(64, 256, is_gated=True, has_biases=False) == (4 * 64 * 64 + 3 * 64 * 256, 0)


def test_llava_s_projector_has_21_million_parameters() -> None:
    """LLaVA 1.5 (arxiv.org/abs/2310.03744): 1,024 to 4,096 to 4,096."""
    assert sum(perceptron(1_024, 4_096, 4_096)) == 1_024 * 4_096 + 4_096 + 4_096 * 4_096 + 4_096


@pytest.mark.parametrize(("feature", "used"), [(None, 24), (-1, 24), (-2, 23), ([-2, -5], 23), (-99, 1)])
def test_layers_behind_the_deepest_used_one_are_not_built(feature: object, used: int) -> None:
    assert used_layers(24, feature) == used


def test_a_side_may_be_stated_per_direction() -> None:
    assert side_length(ConfigReader({"image_size": [448, 448]}), "image_size") == 448
    with pytest.raises(UnsupportedModelError, match="image_size"):
        side_length(ConfigReader({"image_size": []}), "image_size")


def test_patches_merge_by_one_over_the_ratio() -> None:
    assert merging_side(ConfigReader({"downsample_ratio": 0.5})) == 2
    with pytest.raises(UnsupportedModelError, match="downsample_ratio"):
        merging_side(ConfigReader({"downsample_ratio": 0.01}))


def test_a_config_without_a_tower_has_none() -> None:
    def unreachable(_vision: ConfigReader, _text: ConfigReader) -> None:
        raise AssertionError

    assert seen(unreachable)(ConfigReader({}), ConfigReader({})) is None  # type: ignore[arg-type]
