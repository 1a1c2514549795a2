"""Tables of rotary positions, as a config states its positions, scaling and rotated width.

    positions = stated                      default, llama3, dynamic
                stated x factor             linear
                original x factor           yarn
                stated + original           longrope
    width     = rotated part of a head

Source:
    vLLM 0.33 `model_executor/layers/rotary_embedding/__init__.py` (`get_rope`) and the classes it picks;
    `transformers_utils/config.py` (`patch_rope_parameters`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Final

from service.engine.config_reader import ConfigReader, is_mapping, unknown_kind
from service.engine.errors import MissingConfigFieldError
from service.engine.formats.elements import HALF_BYTES, SINGLE_BYTES
from service.engine.layers import DecoderLayer, RotaryTable, Rotated

RotaryRule = Callable[[ConfigReader, tuple[DecoderLayer, ...]], tuple[RotaryTable, ...]]
LENGTH_NAMES: Final = ("max_position_embeddings", "seq_length", "n_positions", "model_max_length")
FRACTION_NAMES: Final = ("partial_rotary_factor", "rotary_pct", "rotary_emb_fraction")
ORIGINAL: Final = "original_max_position_embeddings"
TYPE_NAMES: Final = ("rope_type", "type")
MOST_COMPARED: Final = 80  # characters of a type
CLOSE: Final = 0.5  # of the letters of two types
YARN: Final = ("yarn", "deepseek_yarn", "telechat3-yarn")
LONG: Final = ("longrope", "su")
# What positions may be turned by; `su`, `mrope`, `telechat3-yarn` and `xdrope` are read as longrope, default, yarn and
# dynamic.
TYPES: Final = (
    *("default", "linear", "dynamic", "llama3", *YARN, *LONG, "mrope", "ntk", "proportional", "xdrope"),
    *("deepseek_llama_scaling", "mllama4", "openpangu", "bailing_mrope"),
)
# What a type cannot be computed without; any of those that stand together does.
NEEDED: Final[Mapping[str, tuple[tuple[str, ...], ...]]] = {
    **dict.fromkeys(("linear", "ntk", *YARN, "deepseek_llama_scaling"), (("factor",),)),
    **dict.fromkeys(("dynamic", "xdrope"), (("factor", "alpha"),)),
    **dict.fromkeys(LONG, (("short_factor",), ("long_factor",))),
    "llama3": (("factor",), ("low_freq_factor",), ("high_freq_factor",)),
}


def no_tables(_reader: ConfigReader, _layers: tuple[DecoderLayer, ...]) -> tuple[RotaryTable, ...]:
    """Return none: positions are learnt, sloped, or not told apart."""
    return ()


def stated_tables(reader: ConfigReader, layers: tuple[DecoderLayer, ...]) -> tuple[RotaryTable, ...]:
    """Return one table, or one for each set of parameters that a kind of layer has."""
    mixers = dict.fromkeys(mixer for layer in layers for mixer in layer.mixers)
    rotated = [mixer.rotated for mixer in mixers if mixer.rotated is not None]
    latent = next((part for part in rotated if part.is_latent), None)
    if latent is not None:
        return _of_latents(reader, latent)
    if not rotated:
        return ()
    nested = _nested(reader)
    if not nested:
        return _made(reader, parameters(reader), rotated[0].width)
    kinds = ((own, _of_kind(name, rotated)) for name, own in nested.items())
    asked = [(own, part.width) for own, part in kinds if part]
    # Whoever asks for the same has the same table.
    told = [each for index, each in enumerate(asked) if each not in asked[:index]]
    return tuple(table for own, width in told for table in _made(reader, ConfigReader(own), width))


def in_single(reader: ConfigReader, layers: tuple[DecoderLayer, ...]) -> tuple[RotaryTable, ...]:
    """Return the same in fp32."""
    return tuple(replace(table, element_bytes=SINGLE_BYTES) for table in stated_tables(reader, layers))


def with_plain(reader: ConfigReader, layers: tuple[DecoderLayer, ...]) -> tuple[RotaryTable, ...]:
    """Return the same, and one without scaling for layers with a window."""
    tables = stated_tables(reader, layers)
    plain = tuple(replace(table, positions=_positions(reader)) for table in tables[:1])
    return tables if _nested(reader) else (*tables, *plain)


def rotating(fraction: float) -> RotaryRule:
    """Return the rule for heads of which a part is rotated, where the config does not say how much."""

    def tables(reader: ConfigReader, layers: tuple[DecoderLayer, ...]) -> tuple[RotaryTable, ...]:
        stated = any(reader.raw(name) is not None for name in FRACTION_NAMES)
        is_stated = stated or parameters(reader).raw(*FRACTION_NAMES) is not None
        return stated_tables(reader if is_stated else reader.restated({FRACTION_NAMES[0]: fraction}), layers)

    return tables


def parameters(reader: ConfigReader) -> ConfigReader:
    """Return the rope parameters under either name; what the older one states fills gaps."""
    stated: dict[str, object] = {}
    for name in ("rope_scaling", "rope_parameters"):
        values = reader.raw(name)
        if is_mapping(values):
            stated |= values
    return ConfigReader(stated)


def _nested(reader: ConfigReader) -> Mapping[str, Mapping[str, object]]:
    """Return parameters by kind of layer, of the kinds that there are."""
    stated = reader.raw("rope_parameters")
    nested = {name: own for name, own in stated.items() if is_mapping(own)} if is_mapping(stated) else {}
    kinds = reader.raw("layer_types")
    used = {each for each in kinds if isinstance(each, str)} if isinstance(kinds, list | tuple) else set(nested)
    return {name: own for name, own in nested.items() if name in used}


def _of_kind(name: str, rotated: Sequence[Rotated]) -> Rotated | None:
    """Return what layers of a kind rotate: those with a window, or those without."""
    return next((part for part in rotated if part.has_window != (name == "full_attention")), None)


def _made(reader: ConfigReader, stated: ConfigReader, head_dim: int) -> tuple[RotaryTable, ...]:
    """Return the table of these parameters, where the config states positions at all.

    Raises:
        UnsupportedModelError: a type that the engine refuses as well.
        MissingConfigFieldError: the type cannot be computed without what is not stated.
    """
    place = "rope_scaling" if reader.raw("rope_parameters") is None else "rope_parameters"
    _check_type(place, stated)
    _check_needed(place, stated)
    positions = _scaled(reader, stated)
    if not positions:
        return ()
    table = RotaryTable(
        positions=positions,
        width=_width(reader, stated, head_dim),
        has_image_axes=stated.raw("mrope_section") is not None,
        is_interleaved=stated.flag("mrope_interleaved"),
    )
    return (table,)


def _check_type(place: str, stated: ConfigReader) -> None:
    """Raise UnsupportedModelError where positions are scaled in a way that nobody knows, the likest known way first."""
    kind = stated.raw(*TYPE_NAMES)
    if kind is None or kind in TYPES:
        return
    name = next(name for name in TYPE_NAMES if stated.raw(name) is not None)
    close = get_close_matches(str(kind)[:MOST_COMPARED].lower(), TYPES, len(TYPES), CLOSE)
    raise unknown_kind(f"{place}.{name}", kind, ", ".join(dict.fromkeys((*close, *TYPES))))


def _check_needed(place: str, stated: ConfigReader) -> None:
    """Raise MissingConfigFieldError where a type lacks what the engine has no default for."""
    kind = str(stated.raw(*TYPE_NAMES))
    for names in NEEDED.get(kind, ()):
        if stated.raw(*names) is None:
            raise MissingConfigFieldError(
                f"the config's {place} is of type {kind} and does not state {' or '.join(names)}",
                field=f"model_config.{place}.{names[0]}",
                accepted="a number" if names[0] == "factor" else "as the model's config publishes it",
            )


def _positions(reader: ConfigReader) -> int:
    return reader.integer(*LENGTH_NAMES, default=0)


def _scaled(reader: ConfigReader, stated: ConfigReader) -> int:
    """Return the positions of a table. [tokens]."""
    positions, kind = _positions(reader), str(stated.raw(*TYPE_NAMES) or "default")
    factor = stated.number("factor", default=1.0) or 1.0
    original = stated.optional(ORIGINAL) or reader.optional(ORIGINAL)
    first = original or positions
    if kind == "linear":
        return int(positions * factor)
    if kind in YARN:
        return int(first * factor)
    if kind in LONG and original is not None:
        return positions + first
    return positions


def _width(reader: ConfigReader, stated: ConfigReader, head_dim: int) -> int:
    """Return the rotated elements of a head.

    Source: vLLM 0.33 `get_rope`, which refuses a partial_rotary_factor of 0 or less, or above 1.
    """
    own = stated.integer("rope_dim", default=0) or reader.integer("rotary_dim", default=0)
    if own:
        return own
    if str(stated.raw(*TYPE_NAMES)) == "proportional":
        return head_dim
    return int(head_dim * (stated.share(*FRACTION_NAMES) or reader.share(*FRACTION_NAMES) or 1.0))


def _of_latents(reader: ConfigReader, latent: Rotated) -> tuple[RotaryTable, ...]:
    """Return the table of a latent's rotary part; beside an indexer it is in fp32 where YaRN scales it.

    An indexer rotates halves where attention rotates pairs, unless the config says otherwise: a table of its own.

    Source: vLLM 0.33 `models/deepseek_v32/attention.py` (`indexer_rope_interleave`).
    """
    if not latent.width:
        return ()
    stated = parameters(reader)
    positions = _scaled(reader, stated)
    if not positions:
        return ()
    is_wide = latent.is_sparse and str(stated.raw(*TYPE_NAMES)) in YARN
    table = RotaryTable(
        positions=positions,
        width=latent.width,
        element_bytes=SINGLE_BYTES if is_wide else HALF_BYTES,
    )
    shares = not latent.is_sparse or reader.raw("indexer_rope_interleave") is True
    return (table,) if shares else (table, table)
