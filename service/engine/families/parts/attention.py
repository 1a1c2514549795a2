"""Softmax attention of every layer, as configs and the engine's model code state it.

Sources:
    vLLM 0.33 `transformers_utils/model_arch_config_convertor.py` (heads, head size, fields'
    synonyms), `engine/arg_utils.py` (a window without `layer_types` holds in every layer).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from service.engine.config_reader import ConfigReader, unknown_kind
from service.engine.errors import MissingConfigFieldError
from service.engine.families.parts.sizes import hidden_size, num_hidden_layers
from service.engine.layers import Attention, GroupedQueryAttention

Mixers = tuple[tuple[Attention, ...], ...]
AttentionRule = Callable[[ConfigReader], Mixers]
Softmax = tuple[GroupedQueryAttention, ...]  # one mixer per layer

FULL_KINDS = frozenset({"full_attention", "attention", "global_attention", "full"})
SLIDING_KINDS = frozenset({"sliding_attention", "local_attention", "sliding_window_attention"})
KEY_VALUE_HEAD_NAMES = (
    "num_key_value_heads",
    "n_head_kv",
    "num_kv_heads",
    "multi_query_group_num",
    "num_attention_groups",
)


def alone(attentions: Iterable[Attention]) -> Mixers:
    """Return layers with one mixer each."""
    return tuple((attention,) for attention in attentions)


def repeated(reader: ConfigReader, *mixers: Attention) -> Mixers:
    """Return the same mixers for every layer."""
    return (mixers,) * num_hidden_layers(reader)


def base_attention(reader: ConfigReader) -> GroupedQueryAttention:
    """Return full attention with the heads that the config states."""
    heads = reader.positive("num_attention_heads", "n_head", "n_heads")
    key_value_heads = reader.positive(*KEY_VALUE_HEAD_NAMES, default=heads)
    stated = reader.integer("head_dim", "hidden_size_per_head", default=0)
    head_dim = stated or head_width("hidden_size", hidden_size(reader), heads, field="head_dim")
    return GroupedQueryAttention(
        num_attention_heads=heads,
        num_key_value_heads=key_value_heads,
        head_dim=head_dim,
        v_head_dim=head_dim,
    )


def head_width(name: str, width: int, heads: int, *, field: str) -> int:
    """Return an equal share of a width for each head.

    Raises:
        MissingConfigFieldError: it leaves nothing.
    """
    if width < heads:
        raise MissingConfigFieldError(
            f"{name} {width} leaves no width for {heads} heads",
            field=f"model_config.{field}",
            accepted="a whole number above 0",
        )
    return width // heads


def by_layer_types(
    reader: ConfigReader, attention: GroupedQueryAttention, layer_types: Sequence[str], window: int
) -> Softmax:
    """Return windows where `layer_types` says sliding, full attention where it says full.

    Raises:
        UnsupportedModelError: a layer type without a rule.
    """
    sliding, layers = replace(attention, sliding_window=window), num_hidden_layers(reader)
    attentions: list[GroupedQueryAttention] = []
    for kind in layer_types[:layers]:
        if kind in SLIDING_KINDS:
            attentions.append(sliding)
        elif kind in FULL_KINDS:
            attentions.append(attention)
        else:
            raise unknown_kind("layer_types", kind, "full_attention, sliding_attention")
    check_length("layer_types", len(attentions), layers)
    return tuple(attentions)


def check_length(name: str, stated: int, layers: int, accepted: str = "one entry per layer") -> None:
    """Refuse a list that leaves layers out.

    Raises:
        MissingConfigFieldError: by the list's name, the last part of a dotted one.
    """
    if stated < layers:
        raise MissingConfigFieldError(
            f"{name.rsplit('.', 1)[-1]} names {stated} of {layers} layers",
            field=f"model_config.{name}",
            accepted=accepted,
        )


def not_stated(name: str, accepted: str, *, every_layer: bool = True) -> MissingConfigFieldError:
    """Return the refusal of a config without a list that has to say what each layer is."""
    return MissingConfigFieldError(
        f"the config does not state {name}{' for every layer' if every_layer else ''}",
        field=f"model_config.{name}",
        accepted=accepted,
    )


def alternating(reader: ConfigReader, period: int) -> tuple[str, ...]:
    """Return a published default: every `period`-th layer is full, the others slide."""
    return tuple(
        "full_attention" if (index + 1) % period == 0 else "sliding_attention"
        for index in range(num_hidden_layers(reader))
    )


def windowed(reader: ConfigReader, attention: GroupedQueryAttention) -> Softmax:
    """Return the rule most models share.

    `layer_types` decides layer by layer; without it a `sliding_window` holds in every layer; a
    window of 0 or null means none.
    """
    window = reader.integer("sliding_window", default=0)
    layer_types = reader.strings("layer_types")
    if layer_types is None:
        return (replace(attention, sliding_window=window) if window else attention,) * num_hidden_layers(reader)
    if not window and SLIDING_KINDS.intersection(layer_types):
        window = reader.positive("sliding_window")
    return by_layer_types(reader, attention, layer_types, window)


def windowed_as_stated(reader: ConfigReader) -> Mixers:
    """Return the heads that the config states, windowed as it states."""
    return alone(windowed(reader, base_attention(reader)))


def windowed_with_gate(reader: ConfigReader) -> Mixers:
    """Return the same with a gate on the attention's output."""
    return alone(windowed(reader, replace(base_attention(reader), has_output_gate=True)))


def full_only(reader: ConfigReader) -> Mixers:
    """Return full attention everywhere; any window in the config is not used by the model."""
    return repeated(reader, base_attention(reader))


def windowed_by_default(default_window: int) -> AttentionRule:
    """Return the rule of models whose config class supplies a window when none is stated."""

    def parse(reader: ConfigReader) -> Mixers:
        attention = base_attention(reader)
        if reader.states("sliding_window") or reader.raw("layer_types") is not None:
            return alone(windowed(reader, attention))
        return repeated(reader, replace(attention, sliding_window=default_window))

    return parse


def patterned(period: int, default_window: int, extra: int = 0) -> AttentionRule:
    """Return the rule of models with a fixed pattern of sliding and full layers.

    Args:
        period: every `period`-th layer is full unless the config says otherwise. [layers]
        default_window: the window of the model's config class. [tokens]
        extra: tokens the model code adds to the window. [tokens]
    """

    def parse(reader: ConfigReader) -> Mixers:
        kinds = reader.strings("layer_types") or alternating(
            reader, reader.positive("sliding_window_pattern", "_sliding_window_pattern", default=period)
        )
        window = reader.integer("sliding_window", default=default_window)
        if not window and SLIDING_KINDS.intersection(kinds):
            kinds = ("full_attention",) * num_hidden_layers(reader)
        return alone(by_layer_types(reader, base_attention(reader), kinds, window + extra))

    return parse


def windowed_where_asked(reader: ConfigReader) -> Mixers:
    """Return windows that count only with `use_sliding_window`, from `max_window_layers` on."""
    attention = base_attention(reader)
    window = reader.integer("sliding_window", default=0)
    if not reader.flag("use_sliding_window") or not window:
        return repeated(reader, attention)
    layers = num_hidden_layers(reader)
    first = reader.integer("max_window_layers", default=layers)
    kinds = reader.strings("layer_types") or tuple(
        "sliding_attention" if index >= first else "full_attention" for index in range(layers)
    )
    return alone(by_layer_types(reader, attention, kinds, window))
