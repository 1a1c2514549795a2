"""What follows from a fact is kept with the fact: found once, and gone when the fact is."""

from collections.abc import Callable, Hashable
from functools import wraps
from typing import Concatenate, Final, ParamSpec, Protocol, TypeVar

from service.engine.kept import Kept

NOTHING: Final = object()  # what a rule found out may be None
Value = TypeVar("Value")
Stated = ParamSpec("Stated")


class Derived:
    """What rules found out about one fact: for each rule so many values, the one not asked for the longest goes first.

    A fact's owner decides how many facts there are, and so how much is kept.
    """

    __slots__ = ("_by_rule",)

    def __init__(self) -> None:
        """Start with nothing known."""
        self._by_rule: dict[Hashable, Kept[object]] = {}

    def by(self, rule: Hashable, most: int) -> Kept[object]:
        """Return what one rule found out, at most so many values."""
        kept = self._by_rule.get(rule)
        return self._by_rule.setdefault(rule, Kept(most)) if kept is None else kept

    def forget(self) -> None:
        """Forget everything; who looks into it now still finds what it holds."""
        self._by_rule = {}

    def __len__(self) -> int:
        """Return how many values are kept."""
        return sum(map(len, tuple(self._by_rule.values())))


class Fact(Protocol):
    """Whatever rules are asked about again and again."""

    @property
    def derived(self) -> Derived:
        """Return what is known of it."""
        ...


Owner = TypeVar("Owner", bound=Fact)
Rule = Callable[Concatenate[Owner, Stated], Value]


def derived(most: int) -> Callable[[Rule[Owner, Stated, Value]], Rule[Owner, Stated, Value]]:
    """Keep what a rule returns with its first argument, under the others; `most` values for each owner."""

    def keeping(rule: Rule[Owner, Stated, Value]) -> Rule[Owner, Stated, Value]:
        @wraps(rule)
        def asked(owner: Owner, /, *stated: Stated.args, **named: Stated.kwargs) -> Value:
            key = (stated, *named.items()) if named else stated
            kept: Kept[Value] = owner.derived.by(rule, most)  # type: ignore[assignment]
            value = kept.get(key, NOTHING)
            if value is NOTHING:
                value = rule(owner, *stated, **named)
                kept.put(key, value)
            return value  # type: ignore[return-value]  # it is not nothing

        return asked

    return keeping
