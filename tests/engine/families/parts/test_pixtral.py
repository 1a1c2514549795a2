"""Pixtral's tower against its published size."""

from service.engine.config_reader import ConfigReader
from service.engine.families.parts.pixtral import gated_layers

VISION = {"hidden_size": 1_024, "intermediate_size": 4_096, "patch_size": 16}


def test_pixtral_12b_s_tower_has_400_million_parameters() -> None:
    """Pixtral 12B (arxiv.org/abs/2410.07073): "a new vision encoder, PixtralViT, of 400 million"."""
    split, whole = gated_layers(ConfigReader(VISION), 24)

    assert round((split + whole) / 1e8) == 4
