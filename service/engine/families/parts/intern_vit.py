"""InternViT with scaled layers: only its feed-forward parts are always split over ranks.

Source:
    vLLM 0.33 `model_executor/models/intern_vit.py`, `interns1_vit.py`.
"""

from dataclasses import dataclass

from service.engine.config_reader import ConfigReader
from service.engine.families.parts.towers import (
    merging_side,
    perceptron,
    side_length,
    used_layers,
    vision_part,
    with_whole,
)
from service.engine.layers import Encoder


@dataclass(frozen=True, slots=True, kw_only=True)
class InternVit:
    """The shape of one such transformer."""

    hidden: int
    size: int
    depth: int
    patch: int  # on a side [pixels]
    side: int  # of the image [pixels]
    width: int  # of its attention
    has_attention_biases: bool
    has_head_norms: bool
    norm: int  # elements of one norm

    def attention(self) -> int:
        """Return the parameters of all query, key, value and output matrices."""
        return self.depth * (4 * self.hidden * self.width + (3 * self.width if self.has_attention_biases else 0))

    def besides(self) -> Encoder:
        """Return everything else.

        split = layers x (2 w size + size)
        whole = layers x (biases, scales, norms) + (3 patch^2 + 1 + patches + 2) x w

        InternViT-300M-448px, whose card says "Params (M): 304":

        >>> tower = InternVit(hidden=1_024, size=4_096, depth=24, patch=14, side=448, width=1_024,
        ...                   has_attention_biases=True, has_head_norms=False, norm=2_048)
        >>> besides = tower.besides()
        >>> (tower.attention() + besides.split_parameters + besides.whole_parameters) // 1_000_000
        304
        """
        norms = 2 * self.norm + (2 * self.width if self.has_head_norms else 0)
        around = 3 * self.patch * self.patch * self.hidden + self.hidden
        around += ((self.side // self.patch) ** 2 + 2) * self.hidden
        return Encoder(
            split_parameters=self.depth * (2 * self.hidden * self.size + self.size),
            whole_parameters=self.depth * (4 * self.hidden + norms) + around,
        )


def whole_attention(vision: ConfigReader, text: ConfigReader) -> Encoder:
    """Return the tower whose attention every rank holds whole, and a norm with two matrices over four patches."""
    hidden = vision.positive("hidden_size")
    shape = InternVit(
        hidden=hidden,
        depth=vision.positive("num_hidden_layers"),
        size=vision.positive("intermediate_size"),
        patch=side_length(vision, "patch_size"),
        side=side_length(vision, "image_size"),
        width=hidden,
        has_attention_biases=vision.flag("attention_bias"),
        has_head_norms=vision.flag("use_qk_norm"),
        norm=2 * hidden,
    )
    merged, out = 4 * hidden, text.positive("hidden_size")
    return with_whole(shape.besides(), shape.attention() + 2 * merged + sum(perceptron(merged, out, out)))


def divided_attention(outer: ConfigReader, *, extra_heads: int = 0) -> Encoder:
    """Return the tower up to the used layer; a rank holds its attention whole where the heads do not divide."""
    vision = vision_part(outer)
    hidden, size = vision.positive("hidden_size"), vision.positive("intermediate_size")
    heads = vision.positive("num_attention_heads")
    shape = InternVit(
        hidden=hidden,
        size=size,
        patch=side_length(vision, "patch_size"),
        depth=used_layers(vision.positive("num_hidden_layers"), outer.raw("select_layer", "vision_feature_layer")),
        width=(heads + extra_heads) * hidden // heads,
        has_head_norms=vision.flag("qk_normalization", "use_qk_norm"),
        norm=hidden if vision.text("norm_type", default="rms_norm") == "rms_norm" else 2 * hidden,
        side=side_length(vision, "image_size"),
        has_attention_biases=vision.flag("qkv_bias", "attention_bias"),
    )
    besides = shape.besides()
    return Encoder(
        split_parameters=besides.split_parameters,
        whole_parameters=besides.whole_parameters,
        beside=Encoder(
            split_parameters=shape.attention(),
            whole_parameters=0,
            num_heads=heads + extra_heads,
            is_whole_where_uneven=True,
        ),
    )


def shuffled(outer: ConfigReader) -> int:
    """Return the width of the patches that are merged into one token. [elements]."""
    return vision_part(outer).positive("hidden_size") * merging_side(outer) ** 2
