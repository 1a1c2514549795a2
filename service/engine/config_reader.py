"""Typed reading of a published config.json: every refusal names the field."""

from collections.abc import Mapping, Sequence
from typing import TypeGuard

from service.engine.errors import MissingConfigFieldError, UnsupportedModelError

# Names under which multimodal wrappers keep the config of their language model.
TEXT_CONFIG_KEYS = ("text_config", "llm_config", "language_config", "thinker_config", "language_model_config")
MAX_COUNT = 1 << 40  # no published size comes near it; keeps arithmetic finite
MAX_LAYERS = 400  # the deepest published decoders have below 200; keeps the work per question small
MAX_ENTRIES = 4 * MAX_LAYERS  # of a list that tells layers apart; published ones have an entry a layer, or a few more


class ConfigReader:
    """Reads one level of a config, falling back to the wrapper's level for shared fields."""

    def __init__(self, values: Mapping[str, object], wrapper: Mapping[str, object] | None = None) -> None:
        """Keep the level to read and the level around it."""
        self._values = values
        self._wrapper = wrapper or {}

    def raw(self, *names: str) -> object:
        """Return the first stated value under these synonyms, or None."""
        for values in (self._values, self._wrapper):
            for name in names:
                value = values.get(name)
                if value is not None:
                    return value
        return None

    def restated(self, values: Mapping[str, object]) -> "ConfigReader":
        """Return a reader of this level with these fields stated instead."""
        return ConfigReader({**self._values, **values}, self._wrapper)

    def values(self) -> dict[str, object]:
        """Return everything stated on this level."""
        return dict(self._values)

    def outer(self, name: str) -> object:
        """Return the value stated on the wrapper's level alone, or None."""
        return self._wrapper.get(name)

    def own(self, name: str) -> object:
        """Return the value stated on this level alone, or None."""
        return self._values.get(name)

    def states(self, name: str) -> bool:
        """Return whether this level names the field at all, even as null."""
        return name in self._values

    def integer(self, *names: str, default: int | None = None) -> int:
        """Return a whole number of at least zero.

        Raises:
            MissingConfigFieldError: nothing is stated and there is no default, or it is no such number.
        """
        value = self.raw(*names)
        if value is None:
            if default is None:
                raise _missing(names[0], "a whole number")
            return default
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_COUNT:
            raise _missing(names[0], f"a whole number from 0 to {MAX_COUNT}", stated=value)
        return value

    def positive(self, *names: str, default: int | None = None) -> int:
        """Return a whole number above zero."""
        value = self.integer(*names, default=default)
        if value == 0:
            raise _missing(names[0], "a whole number above 0", stated=0)
        return value

    def layers(self, *names: str) -> int:
        """Return a number of layers."""
        value = self.positive(*names)
        if value > MAX_LAYERS:
            raise _missing(names[0], f"a whole number from 1 to {MAX_LAYERS}", stated=value)
        return value

    def optional(self, *names: str) -> int | None:
        """Return a whole number, or None where nothing is stated."""
        return None if self.raw(*names) is None else self.integer(*names)

    def number(self, *names: str, default: float) -> float:
        """Return a finite number of at least zero."""
        value = self.raw(*names)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MAX_COUNT:
            raise _missing(names[0], f"a number from 0 to {MAX_COUNT}", stated=value)
        return float(value)

    def share(self, *names: str) -> float | None:
        """Return a number above 0 and of at most 1, or None where nothing is stated."""
        value = self.raw(*names)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
            raise _missing(names[0], "a number above 0, of at most 1", stated=value)
        return float(value)

    def flag(self, *names: str, default: bool = False) -> bool:
        """Return a truth value."""
        value = self.raw(*names)
        if value is None:
            return default
        if not isinstance(value, bool | int):
            raise _missing(names[0], "true or false", stated=value)
        return bool(value)

    def text(self, *names: str, default: str | None = None) -> str:
        """Return a string."""
        value = self.raw(*names)
        if value is None and default is not None:
            return default
        if not isinstance(value, str):
            raise _missing(names[0], "a string", stated=value)
        return value

    def strings(self, name: str) -> tuple[str, ...] | None:
        """Return a list of strings, or None where nothing is stated."""
        value = self.raw(name)
        if value is None:
            return None
        _check_entries(name, value)
        if not is_list(value) or not all(isinstance(item, str) for item in value):
            raise _missing(name, "a list of strings", stated=value)
        return tuple(str(item) for item in value)

    def integers(self, name: str) -> tuple[int, ...] | None:
        """Return a list of whole numbers, or None where nothing is stated."""
        value = self.raw(name)
        if value is None:
            return None
        _check_entries(name, value)
        if not is_list(value) or not all(isinstance(item, int) and abs(item) <= MAX_COUNT for item in value):
            raise _missing(name, "a list of whole numbers", stated=value)
        return tuple(item for item in value if isinstance(item, int))

    def mapping(self, *names: str) -> Mapping[str, object] | None:
        """Return an object, or None where nothing is stated."""
        value = self.raw(*names)
        if value is None:
            return None
        if not is_mapping(value):
            raise _missing(names[0], "an object", stated=value)
        return value


def is_mapping(value: object) -> TypeGuard[Mapping[str, object]]:
    """Return whether a JSON value is an object."""
    return isinstance(value, Mapping)


def is_list(value: object) -> TypeGuard[Sequence[object]]:
    """Return whether a JSON value is a list."""
    return isinstance(value, list | tuple)


def text_reader(config: Mapping[str, object]) -> ConfigReader:
    """Return a reader of the language model's part of a config."""
    inner: Mapping[str, object] = config
    for _ in range(2):  # a speech wrapper keeps its language model two levels down
        for key in TEXT_CONFIG_KEYS:
            nested = inner.get(key)
            if is_mapping(nested):
                inner = nested
                break
    return ConfigReader(inner, config if inner is not config else None)


def unknown_kind(field: str, value: object, accepted: str) -> UnsupportedModelError:
    """Return the refusal of a layer kind or option without a rule."""
    return UnsupportedModelError(
        f"the config's {field} has {str(value)[:80]!r}, for which there is no rule yet; it is not approximated",
        field=f"model_config.{field}",
        accepted=accepted,
    )


def _check_entries(name: str, value: object) -> None:
    if is_list(value) and len(value) > MAX_ENTRIES:
        raise UnsupportedModelError(
            f"the config's {name} has {len(value)} entries",
            field=f"model_config.{name}",
            accepted=f"at most {MAX_ENTRIES} entries",
        )


def _missing(name: str, kind: str, stated: object = None) -> MissingConfigFieldError:
    if stated is None:
        return MissingConfigFieldError(f"the config does not state {name}", field=f"model_config.{name}", accepted=kind)
    shown = f"the text {stated[:80]!r}" if isinstance(stated, str) else str(stated)[:80]
    return MissingConfigFieldError(f"the config's {name} is {shown}", field=f"model_config.{name}", accepted=kind)
