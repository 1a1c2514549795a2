"""SigLIP SO400M against its published total (huggingface.co/google/siglip-so400m-patch14-384)."""

from service.engine.config_reader import ConfigReader
from service.engine.families.parts.siglip import Siglip, siglip, siglip_tower, so400m

SO400M = {
    "hidden_size": 1_152,
    "num_hidden_layers": 27,
    "intermediate_size": 4_304,
    "patch_size": 14,
    "image_size": 384,
    "num_attention_heads": 16,
}


def test_so400m_has_its_published_size() -> None:
    """428 million in the tower: "SoViT-400m" (arxiv.org/abs/2305.13035), with its pooling head of 15 million."""
    split, whole = siglip(ConfigReader(SO400M)).parameters()

    assert 410e6 < split + whole < 414e6
    assert siglip(ConfigReader(SO400M)).positions == 27 * 27


def test_sizes_of_so400m_are_supplied_where_none_is_stated() -> None:
    assert so400m(ConfigReader({}), 729) == siglip(ConfigReader(SO400M))


def test_layers_behind_the_used_one_are_left_out() -> None:
    shape = Siglip(hidden=8, depth=4, size=16, patch=2, positions=4)
    (all_split, all_whole), (split, whole) = shape.parameters(), shape.parameters(layers=3, has_last_norm=False)

    assert split * 4 == all_split * 3
    assert all_whole - whole == 6 * 8 + 2 * 8


def test_a_tower_says_its_heads() -> None:
    assert siglip_tower(ConfigReader(SO400M)).num_heads == 16
