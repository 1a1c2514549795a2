"""What a config lacks, all of it at once: one refusal instead of one a round."""

from collections.abc import Callable, Mapping
from typing import Final

from service.engine.errors import EngineError, MissingConfigFieldError
from service.engine.families.llama import EXAMPLE_CLASS

OF_CONFIG: Final = "model_config."
# What a field is stated as to learn what is asked for next: it divides, and is divided by, what heads are counted in.
STAND_IN: Final = 256
STAND_INS: Final[Mapping[str, object]] = {"architectures": [EXAMPLE_CLASS]}
MOST_MISSING: Final = 20
MOST_COUNT: Final = 1 << 16
PLAIN_CACHE: Final = ("num_hidden_layers", "num_key_value_heads", "head_dim")


def all_missing(
    config: Mapping[str, object], first: MissingConfigFieldError, parse: Callable[[Mapping[str, object]], object]
) -> MissingConfigFieldError:
    """Return the refusal of everything that a config does not state, given that of the first field asked for.

    Each is stated by way of trial, and the next one asked for; of a config without a class, what a dense model needs.

    Args:
        config: as it was pasted.
        first: what it was refused for.
        parse: reads a config, and refuses what lacks a field.
    """
    missing, tried = [first], {**config}
    while len(missing) < MOST_MISSING:
        name = missing[-1].field.removeprefix(OF_CONFIG)
        if tried.get(name) is not None:  # it is stated, and wrong
            return _refusal(config, missing[:-1] or missing)
        tried[name] = STAND_INS.get(name, STAND_IN)
        try:
            parse(tried)
        except MissingConfigFieldError as error:
            missing.append(error)
        except EngineError:
            break
        else:
            break
    return _refusal(config, missing)


def _refusal(config: Mapping[str, object], missing: list[MissingConfigFieldError]) -> MissingConfigFieldError:
    first, *others = missing
    names = ", ".join(each.field.removeprefix(OF_CONFIG) for each in missing)
    detail = f"the config does not state {names}" if others else first.detail
    return MissingConfigFieldError(
        detail + _plain_cache(config), field=first.field, accepted=first.accepted, others=tuple(others)
    )


def _plain_cache(config: Mapping[str, object]) -> str:
    """Return what three numbers alone do tell: the cache of plain attention, 2 x layers x KV heads x head size."""
    counts = [config.get(name) for name in PLAIN_CACHE]
    layers, heads, size = (each if isinstance(each, int) and 0 < each <= MOST_COUNT else 0 for each in counts)
    elements = 2 * layers * heads * size
    if not elements or config.get("architectures"):
        return ""
    product = f"2 x {layers} x {heads} x {size} = {elements:,} elements a token"
    taken = f"{2 * elements:,} bytes in 16 bit, {elements:,} in fp8"
    return f"; if every layer is plain attention, its KV cache takes {product}: {taken}"
