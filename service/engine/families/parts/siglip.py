"""SigLIP: a vision transformer with biases, and a table of positions, alone or in front of a projector.

Source:
    vLLM 0.33 `model_executor/models/siglip.py`.
"""

from dataclasses import dataclass

from service.engine.config_reader import ConfigReader
from service.engine.families.parts.towers import blocks, tower_heads
from service.engine.layers import Encoder


@dataclass(frozen=True, slots=True, kw_only=True)
class Siglip:
    """The shape of one such transformer."""

    hidden: int
    depth: int
    size: int  # of its feed-forward parts
    patch: int  # on a side [pixels]
    positions: int

    def parameters(self, *, layers: int = 0, has_last_norm: bool = True) -> tuple[int, int]:
        """Return what ranks split, and what each holds whole; up to an earlier layer where one is named.

        split = layers x (4 w^2 + 2 w size + 3 w + size)
        whole = layers x 6 w + (3 patch^2 + 1 + positions) x w + 2 w for the last norm

        SO400M at 224 pixels, which is named after its 400 million (PaliGemma, arXiv:2407.07726):

        >>> split, whole = Siglip(hidden=1_152, depth=27, size=4_304, patch=14, positions=256).parameters()
        >>> round(split + whole, -8)
        400000000
        """
        used = layers or self.depth
        split, biases = blocks(self.hidden, self.size)
        patches = 3 * self.patch * self.patch * self.hidden + self.hidden
        norm = 2 * self.hidden if has_last_norm else 0
        return used * split, used * (biases + 4 * self.hidden) + patches + self.positions * self.hidden + norm

    def feed_forward(self) -> int:
        """Return what ranks split of its feed-forward parts: two matrices a layer, and the bias between them."""
        return self.depth * (2 * self.hidden * self.size + self.size)


def siglip(vision: ConfigReader, *, positions: int | None = None) -> Siglip:
    """Return the shape that a config states, with a position per patch unless their number is given."""
    hidden, depth, patch = (
        vision.positive("hidden_size"),
        vision.positive("num_hidden_layers"),
        vision.positive("patch_size"),
    )
    size = vision.positive("intermediate_size")
    return Siglip(
        hidden=hidden,
        depth=depth,
        size=size,
        patch=patch,
        positions=(vision.positive("image_size") // patch) ** 2 if positions is None else positions,
    )


def so400m(vision: ConfigReader, positions: int) -> Siglip:
    """Return the same with the sizes of SO400M where the config states none."""
    return Siglip(
        hidden=vision.positive("hidden_size", "vt_hidden_size", default=1152),
        patch=vision.positive("patch_size", default=14),
        depth=vision.positive("num_hidden_layers", "vt_num_hidden_layers", default=27),
        size=vision.positive("intermediate_size", "vt_intermediate_size", default=4304),
        positions=positions,
    )


def siglip_tower(vision: ConfigReader, *, has_last_norm: bool = True, layers: int = 0) -> Encoder:
    """Return SigLIP alone, with its heads."""
    split, whole = siglip(vision).parameters(layers=layers, has_last_norm=has_last_norm)
    return Encoder(split_parameters=split, whole_parameters=whole, num_heads=tower_heads(vision))
