"""A dense feed-forward network, as most configs state it and with what a family does otherwise."""

from collections.abc import Callable
from dataclasses import dataclass

from service.engine.config_reader import ConfigReader, is_list
from service.engine.families.parts.sizes import hidden_size
from service.engine.layers import DenseMlp

WidthRule = Callable[[ConfigReader, int], int]
WIDTH_NAMES = ("intermediate_size", "ffn_hidden_size", "n_inner", "ffn_dim", "moe_intermediate_size")


def as_stated(_reader: ConfigReader, stated: int) -> int:
    """Return the width under its usual name."""
    return stated


def named(name: str) -> WidthRule:
    """Return the rule of a width under a name of its own, where it has one."""

    def width(reader: ConfigReader, stated: int) -> int:
        return reader.positive(name, default=stated)

    return width


@dataclass(frozen=True, slots=True, kw_only=True)
class Dense:
    """How a family's dense network differs from the usual one."""

    width: WidthRule = as_stated
    biased_unless: str = ""  # the field that takes away the biases it otherwise has
    has_output_bias: bool = False
    splits_tokens: bool = False
    is_whole: bool = False

    def read(self, reader: ConfigReader, *, is_gated: bool) -> DenseMlp:
        """Return the network that the config states.

        Where it states no width: four times the stream's, as plain networks have; gated ones have no such rule.
        """
        usual, stated = 4 * hidden_size(reader), reader.raw(*WIDTH_NAMES)
        default = None if is_gated and self.width is as_stated else usual
        size = self.width(reader, usual if is_list(stated) else reader.positive(*WIDTH_NAMES, default=default))
        has_bias = reader.flag("mlp_bias", "use_bias")
        return DenseMlp(
            intermediate_size=size,
            is_gated=is_gated,
            has_bias=reader.flag(self.biased_unless, default=True) if self.biased_unless else has_bias,
            has_output_bias=self.has_output_bias,
            splits_tokens=self.splits_tokens,
            is_whole=self.is_whole,
        )
