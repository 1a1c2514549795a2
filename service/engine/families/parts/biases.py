"""Which projections of softmax attention have biases."""

from collections.abc import Callable

from service.engine.config_reader import ConfigReader
from service.engine.layers import Heads

Biases = tuple[bool, bool]  # of queries, keys and values; of the output
BiasRule = Callable[[ConfigReader, Biases], Biases]


def stated_biases(reader: ConfigReader, heads: Heads) -> Biases:
    """Return the biases under the names that most configs use, besides those the heads have anyway."""
    return (
        heads.has_input_biases or reader.flag("attention_bias", "use_bias", "bias", "qkv_bias"),
        heads.has_output_bias or reader.flag("attention_bias", "use_bias", "attention_out_bias"),
    )


def as_stated(_reader: ConfigReader, stated: Biases) -> Biases:
    """Return the biases that the config states."""
    return stated


def inputs_only(*names: str) -> BiasRule:
    """Return the rule of queries, keys and values with biases unless a field says otherwise, and a bare output."""

    def rule(reader: ConfigReader, _stated: Biases) -> Biases:
        return reader.flag(*names, default=True), False

    return rule


def everywhere_unless(name: str) -> BiasRule:
    """Return the rule of biases in every projection, unless this field says otherwise."""

    def rule(reader: ConfigReader, _stated: Biases) -> Biases:
        has_biases = reader.flag(name, default=True)
        return has_biases, has_biases

    return rule


def output_apart(*, default: bool) -> BiasRule:
    """Return the rule of `attention_bias` for inputs alone, and `attention_out_bias` for the output."""

    def rule(reader: ConfigReader, _stated: Biases) -> Biases:
        output = reader.flag("attention_out_bias")
        return reader.flag("attention_bias", default=default), output

    return rule
