"""What runs beside the residual stream."""

from service.engine.config_reader import ConfigReader
from service.engine.layers import PerLayerEmbeddings


def layer_embeddings(reader: ConfigReader) -> PerLayerEmbeddings | None:
    """Return the embeddings that every layer has of its own; the config classes supply 256 elements."""
    width = reader.integer("hidden_size_per_layer_input", default=256)
    if reader.states("hidden_size_per_layer_input") and reader.own("hidden_size_per_layer_input") is None:
        width = 0
    if not width:
        return None
    return PerLayerEmbeddings(
        vocab_size=reader.positive("vocab_size_per_layer_input", default=262_144),
        width=width,
    )


def hyper_connections(reader: ConfigReader) -> int:
    """Return the streams that hyper-connections mix."""
    return reader.positive("hc_mult", default=1)
