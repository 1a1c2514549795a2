"""A query transformer: learnt queries that attend to each other, and every few layers to what a tower saw or heard.

Source:
    vLLM 0.33 `model_executor/models/blip2.py` (`Blip2QFormerModel`).
"""

from service.engine.config_reader import ConfigReader


def query_transformer(stated: ConfigReader) -> int:
    """Return the parameters of one, without its queries; every rank holds it whole.

    layer = attention(w) + 2 w size + size + 3 w, and attention(tower's width) in every few
    attention(v) = 2 w^2 + 2 v w + 6 w

    BLIP-2's, which transformers 5.24 builds with 105,137,664 parameters:

    >>> query_transformer(ConfigReader({
    ...     "hidden_size": 768, "intermediate_size": 3_072, "num_hidden_layers": 12, "encoder_hidden_size": 1_408,
    ...     "cross_attention_frequency": 2,
    ... }))
    105137664
    """
    width, size = stated.positive("hidden_size", default=768), stated.positive("intermediate_size", default=3072)
    depth, every = (
        stated.positive("num_hidden_layers", default=12),
        stated.positive("cross_attention_frequency", default=2),
    )
    seen = stated.positive("encoder_hidden_size", default=1408)
    layer = _attention(width, width) + 2 * width * size + size + 3 * width
    return depth * layer + -(-depth // every) * _attention(width, seen) + 2 * width


def _attention(width: int, read: int) -> int:
    """Return attention over something of another width, and the norm behind it."""
    return 2 * width * width + 2 * read * width + 6 * width
