"""Sizes that other rules need, under the names they are published with."""

from service.engine.config_reader import ConfigReader


def num_hidden_layers(reader: ConfigReader) -> int:
    """Return the decoder layers."""
    return reader.layers("num_hidden_layers", "n_layer", "n_layers", "num_layers")


def hidden_size(reader: ConfigReader) -> int:
    """Return the width of the residual stream. [elements]."""
    return reader.positive("hidden_size", "n_embd", "d_model")


def nothing(_reader: ConfigReader) -> int:
    """Return 0, for what most models do not have."""
    return 0
