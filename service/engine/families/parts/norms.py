"""Norms: on queries and keys, and how many a layer has of the stream's width."""

from collections.abc import Callable

from service.engine.config_reader import ConfigReader
from service.engine.layers import Heads

CountRule = Callable[[ConfigReader], int]
HeadNormRule = Callable[[ConfigReader, Heads], int]  # elements that every rank holds whole


def without_head_norms(_reader: ConfigReader, _heads: Heads) -> int:
    """Return no norms on queries and keys."""
    return 0


def on_heads(_reader: ConfigReader, heads: Heads) -> int:
    """Return norms as wide as a head, for queries and for keys; a layer without keys of its own has no second."""
    return heads.norm_elements


def on_heads_where(name: str, *, default: bool = False) -> HeadNormRule:
    """Return the rule of such norms where a field says so."""

    def rule(reader: ConfigReader, heads: Heads) -> int:
        return on_heads(reader, heads) if reader.flag(name, default=default) else 0

    return rule


def over_all_heads(_reader: ConfigReader, heads: Heads) -> int:
    """Return norms as wide as all heads together, which every rank holds whole."""
    return (heads.queries + heads.key_values) * heads.width


def four_where(name: str, *, default: bool = False) -> CountRule:
    """Return the rule of four norms a layer where a field says so, two elsewhere."""

    def rule(reader: ConfigReader) -> int:
        return 4 if reader.flag(name, default=default) else 2

    return rule
