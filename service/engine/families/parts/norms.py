"""Norms: on queries and keys, and how many a layer has of the stream's width."""

from collections.abc import Callable

from service.engine.config_reader import ConfigReader
from service.engine.layers import GroupedQueryAttention

CountRule = Callable[[ConfigReader], int]
HeadNormRule = Callable[[ConfigReader, GroupedQueryAttention], int]  # elements that every rank holds whole


def without_head_norms(_reader: ConfigReader, _attention: GroupedQueryAttention) -> int:
    """Return no norms on queries and keys."""
    return 0


def on_heads(_reader: ConfigReader, attention: GroupedQueryAttention) -> int:
    """Return norms as wide as a head, for queries and for keys; a layer without keys of its own has no second."""
    return (2 if attention.shares_cache_with is None else 1) * attention.head_dim


def on_heads_where(name: str, *, default: bool = False) -> HeadNormRule:
    """Return the rule of such norms where a field says so."""

    def rule(reader: ConfigReader, attention: GroupedQueryAttention) -> int:
        return on_heads(reader, attention) if reader.flag(name, default=default) else 0

    return rule


def over_all_heads(_reader: ConfigReader, attention: GroupedQueryAttention) -> int:
    """Return norms as wide as all heads together, which every rank holds whole."""
    return (attention.num_attention_heads + attention.num_key_value_heads) * attention.head_dim


def four_where(name: str, *, default: bool = False) -> CountRule:
    """Return the rule of four norms a layer where a field says so, two elsewhere."""

    def rule(reader: ConfigReader) -> int:
        return 4 if reader.flag(name, default=default) else 2

    return rule
