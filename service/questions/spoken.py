"""Reads values as people write them: `128k`, `FP8`, `awq`, `trtllm`, `500ms`, `p99`; what was read so is told.

Sources:
    vLLM 0.33 `engine/arg_utils.py` (`human_readable_int`): `1k` is 1,000 and `1K` is 1,024, up to T.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from pydantic import BaseModel

from service.catalog.names.formats import stated_format
from service.catalog.names.providers import PROVIDERS
from service.catalog.names.words import words_of
from service.engine.fleet.results import Assumption

MOST_CHARACTERS: Final = 60
SCALES: Final[Mapping[str, int]] = {
    "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40,
}  # fmt: skip
BYTES: Final[Mapping[str, int]] = {
    "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40,
}  # fmt: skip
SECONDS: Final[Mapping[str, float]] = {
    "ms": 1e-3, "msec": 1e-3, "millisecond": 1e-3, "s": 1.0, "sec": 1.0, "second": 1.0, "min": 60.0, "minute": 60.0,
    "h": 3600.0, "hour": 3600.0,
}  # fmt: skip
RATES: Final[Mapping[str, float]] = {"rps": 1.0, "qps": 1.0, "rpm": 1 / 60, "qpm": 1 / 60}
# `/s`, `req/s`, `requests per minute`; not of a day, whose busiest hour is another rate.
RATE: Final = re.compile(r"(?:(?:req(?:uest)?s?|quer(?:y|ies)) ?)?(?:/|per) ?(s|sec|second|min|minute|h|hour)")
FIGURE: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?([A-Za-z/%][A-Za-z/ ]*)")
PRICE: Final = re.compile(r"\$?([0-9]+(?:\.[0-9]+)?)(?: ?USD)?(?: ?(?:/|per) ?(?:h|hr|hour))?", re.IGNORECASE)
TOKENS: Final = re.compile(r" ?(?:tokens|tok)$", re.IGNORECASE)
POWER: Final = re.compile(r"[0-9]+(?:\.[0-9]+)?[eE]\+?[0-9]{1,2}")  # as sheets write 1E+05 in a narrow column
POINTED: Final = re.compile(r"[0-9]{1,3}(?:\.[0-9]{3})+")
THOUSANDS: Final = re.compile(r"[1-9][0-9]{0,2}(?:,[0-9]{3})+")  # of what is counted, where a decimal comma is none
COMMA: Final = re.compile(r"0,[0-9]{1,18}|[0-9]{1,15},(?:[0-9]{1,2}|[0-9]{4,9})")  # where it cannot be of thousands
PERCENTILE: Final = re.compile(r"[pP]([0-9]{1,2}(?:\.[0-9]+)?)")
SYNONYMS: Final[Mapping[str, Mapping[str, str]]] = {
    "engine": {
        "trtllm": "tensorrt-llm", "tensorrt": "tensorrt-llm", "trt": "tensorrt-llm", "trtllmserve": "tensorrt-llm",
        "sgl": "sglang", "vllmopenai": "vllm",
    },
    "kv_cache_dtype": {
        "fp8e4m3": "fp8", "fp8e5m2": "fp8", "e4m3": "fp8", "e5m2": "fp8", "float8": "fp8", "bfloat16": "bf16",
        "float16": "fp16", "half": "fp16",
        "fp8dsmla": "fp8",  # what vLLM makes of fp8 where attention is sparse: `layers/attention/mla_attention.py`
    },
    "weight_format": {"half": "fp16", "float8": "fp8", "modeloptfp4": "nvfp4", "4bit": "int4", "8bit": "int8"},
    "speculative_method": {"deepseekmtp": "mtp", "promptlookup": "ngram"},
    "objective": {"price": "cost", "cheapest": "cost", "fewest": "gpus", "fastest": "latency"},
    "length_distribution": {"constant": "fixed"},
    "arrival": {"closed": "burst"},
    "provider": PROVIDERS,
}  # fmt: skip


# Of fields that name what only the catalog knows: those that others call otherwise.
NAMED: Final[Mapping[str, object]] = {"providers": list[Literal[tuple(sorted(set(PROVIDERS.values())))]]}  # type: ignore[misc]


@dataclass(frozen=True, slots=True)
class Kind:
    """What a field holds: one of some choices, a whole number, or any number."""

    name: str
    of: Literal["choice", "whole", "number"]
    choices: tuple[object, ...] = ()
    is_list: bool = False


Kinds = Mapping[str, Kind]  # by the name a caller writes


def as_meant(kinds: Kinds, stated: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[Assumption, ...]]:
    """Return fields of some kinds with the values that were meant, and what was read so.

    What is neither literal nor understood stays as it is, to be refused.
    """
    meant, readings = dict(stated), []
    texts = {name for name, value in stated.items() if isinstance(value, str | list)}  # a number means itself
    for name, kind in kinds.items() if texts else ():
        if name not in texts:
            continue
        written = stated[name]
        value = _list_meant(kind, written) if kind.is_list else _meant(kind, written)
        if value is not None and value != written:
            meant[name] = value
            value = ", ".join(map(str, value)) if isinstance(value, list) else value
            readings.append(Assumption(name=name, value=value, origin="read as", source=f"{_shown(written)!r}"))
    return meant, tuple(readings)


def _shown(written: object) -> str:
    return ", ".join(map(str, written)) if isinstance(written, list) else str(written)


def _list_meant(kind: Kind, written: object) -> list[object] | None:
    """Return a list with every value as it was meant; None where none differs or one is not understood."""
    parts = written.split(",") if isinstance(written, str) else written
    if not isinstance(parts, list) or len(parts) > MOST_CHARACTERS:
        return None
    pieces = [piece for part in parts for piece in _pieces(part)]
    read = [_meant(kind, piece) for piece in pieces]
    if not any(value is not None and value != piece for value, piece in zip(read, pieces, strict=True)):
        return None
    return [piece if value is None else value for value, piece in zip(read, pieces, strict=True)]


def _pieces(part: object) -> list[object]:
    """Return the values of a text with commas; what is no text is one itself."""
    return [piece.strip() for piece in part.split(",")] if isinstance(part, str) else [part]


def _meant(kind: Kind, written: object) -> str | float | None:
    """Return the value that a text means; None where it is literal, or means nothing here."""
    if not isinstance(written, str) or not written or len(written) > MOST_CHARACTERS:
        return None
    text = written.strip()
    if kind.of == "choice":
        return None if text in kind.choices else _choice(kind, text)
    if kind.of == "whole" and POINTED.fullmatch(text):
        return f"{text}: with a point"  # is refused: a thousand to half of the world, and one to the other
    reader: Callable[[str, str], float | None] = _whole if kind.of == "whole" else _number
    return reader(kind.name, text)


def _choice(kind: Kind, text: str) -> str | None:
    """Return the choice that is written otherwise, by another name, or for a method of quantization its format."""
    folded = _folded(text)
    for choice in kind.choices:
        if isinstance(choice, str) and _folded(choice) == folded:
            return choice
    field = kind.name.removesuffix("s")
    synonym = SYNONYMS.get(field, {}).get(folded)
    if synonym is None and field == "weight_format":
        said = stated_format(words_of(text))
        synonym = said.weight_format if not said.rest and not said.foreign else None
    return synonym if synonym in kind.choices else None


def _folded(text: str) -> str:
    return re.sub(r"[-_ .]", "", text.lower())


def _whole(name: str, text: str) -> int | None:
    if THOUSANDS.fullmatch(text):
        return int(text.replace(",", ""))
    figure = FIGURE.fullmatch(text)
    if figure is None:
        value = float(text) if POWER.fullmatch(text) else None
        return int(value) if value is not None and value.is_integer() else None
    unit = figure[2]
    if name.endswith(("_tokens", "_len")):
        unit = TOKENS.sub("", unit)
    scale: int | None = SCALES.get(unit) if unit else 1
    if name.endswith("_bytes"):
        scale = BYTES.get(unit.lower(), scale)
    elif name == "num_parameters" and unit.lower() == "b":
        scale = 10**9
    value = None if scale is None else float(figure[1]) * scale
    return None if value is None or value != int(value) else int(value)


def _number(name: str, text: str) -> float | None:
    figure = FIGURE.fullmatch(text)
    if name == "percentile":
        named = PERCENTILE.fullmatch(text)
        return float(named[1]) if named else float(figure[1]) if figure and figure[2] == "%" else None
    if COMMA.fullmatch(text):
        return float(text.replace(",", "."))
    if "usd_per_" in name:
        price = PRICE.fullmatch(text)
        return float(price[1]) if price is not None and price[1] != text else None
    if figure is None:
        return None
    scale: float | None = None
    if name.endswith("per_s"):
        scale = _per_second(figure[2].lower())
    elif name.endswith("_s"):
        scale = _seconds(figure[2].lower())
    elif name.endswith(("_fraction", "_utilization")) and figure[2] == "%":
        scale = 0.01
    return None if scale is None else round(float(figure[1]) * scale, 12)


def _per_second(unit: str) -> float | None:
    """Return how much of a rate is one per second.

    >>> _per_second("req/s"), _per_second("requests per minute") == 1 / 60, _per_second("tokens/s")
    (1.0, True, None)
    """
    rate = RATE.fullmatch(unit)
    return RATES.get(unit) if rate is None else 1 / SECONDS[rate[1]]


def _seconds(unit: str) -> float | None:
    return SECONDS.get(unit) or SECONDS.get(unit.removesuffix("s"))


def kinds_of(model: type[BaseModel]) -> Kinds:
    """Return the fields whose values may be written in more than one way, by the names a caller writes."""
    kinds = ((info.alias or name, NAMED.get(name, info.annotation)) for name, info in model.model_fields.items())
    return {name: kind for name, annotation in kinds if (kind := _kind(name, annotation)) is not None}


def _kind(name: str, annotation: object) -> Kind | None:
    origin = get_origin(annotation)
    if origin is Annotated:
        return _kind(name, get_args(annotation)[0])
    if origin in (Union, UnionType):
        return next((kind for choice in get_args(annotation) if (kind := _kind(name, choice)) is not None), None)
    if origin is list:
        inner = _kind(name, get_args(annotation)[0])
        return replace(inner, is_list=True) if inner else None
    if origin is Literal:
        return Kind(name, "choice", get_args(annotation))
    return Kind(name, "whole") if annotation is int else Kind(name, "number") if annotation is float else None
