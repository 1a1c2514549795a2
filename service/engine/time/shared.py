"""Verdicts that settings share: where a simulation reached none of its engine's bounds, larger ones change nothing.

    the same schedule, if  tokens of the fullest step  <  max_num_batched_tokens, or that is the same
                           requests that run at once   <  max_num_seqs, or that is the same
                           one request more            <  requests that fit whatever their length

Steps then read all that waits, nobody waits for a slot, and nobody counts blocks: a dozen token budgets and caps of
one layout take one simulation.
"""

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import local
from typing import Final, Protocol

from service.engine.kept import Kept
from service.engine.time.results import Violation

MOST_SHARED: Final = 16384

Reached = tuple[int | None, int | None]  # the token budget, and the requests at once: None where there is room


@dataclass(frozen=True, slots=True)
class Reach:
    """What a simulation used of its engine's bounds."""

    tokens: int  # of the fullest step
    running: int  # requests at once
    longest_tokens: int  # of a request

    def with_all_of(self, other: "Reach") -> "Reach":
        """Return what both used."""
        return Reach(
            max(self.tokens, other.tokens),
            max(self.running, other.running),
            max(self.longest_tokens, other.longest_tokens),
        )


NOTHING_USED: Final = Reach(0, 0, 0)


@dataclass(frozen=True, slots=True)
class Told:
    """A verdict, and what telling it used; None where bounds change it in other ways."""

    verdict: Violation | None
    reach: Reach | None


class Bounded(Protocol):
    """An engine with its bounds."""

    @property
    def bounds(self) -> tuple[int, int]:
        """Return its token budget and the requests that it runs at once."""
        ...

    def always_fits(self, reach: Reach) -> bool:
        """Return whether its cache holds so many requests and one more, whatever their length."""
        ...

    def leaves_room(self, reach: Reach) -> tuple[bool, bool]:
        """Return whether steps would have room for more tokens, and for more requests."""
        ...


@dataclass(frozen=True, slots=True)
class Known:
    """What was found out about an engine, and what all simulations of it used."""

    engine: Bounded
    reach: Reach | None

    def tells_of(self, other: Bounded) -> bool:
        """Return whether the same is found out about another engine that differs in its bounds alone."""
        reached = _reached(self.engine, self.reach)
        return reached is not None and reached == _reached(other, self.reach)


class Noted:
    """What simulations used between two points of a search."""

    def __init__(self) -> None:
        """Start with nothing."""
        self.reach: Reach | None = NOTHING_USED

    def note(self, reach: Reach | None) -> None:
        """Take down what one more simulation used; None for what bounds change in other ways, which stays so."""
        self.reach = None if reach is None or self.reach is None else self.reach.with_all_of(reach)


class _Noting(local):
    """Who notes, in each thread."""

    all: tuple[Noted, ...] = ()


class Shared:
    """Verdicts by what does not depend on an engine's bounds, each with what its simulation reached of them."""

    def __init__(self) -> None:
        """Start with none."""
        self._told: Kept[Told] = Kept(MOST_SHARED)
        self._noting = _Noting()

    @contextmanager
    def noting(self) -> Iterator[Noted]:
        """Yield what simulations use from here on, of those that this thread asks for."""
        noted = Noted()
        self._noting.all = (*self._noting.all, noted)
        try:
            yield noted
        finally:
            self._noting.all = self._noting.all[:-1]

    def note(self, reach: Reach | None) -> None:
        """Let whoever notes know of one more simulation."""
        for noted in self._noting.all:
            noted.note(reach)

    def told(self, asked: Hashable, engine: Bounded, simulated: Callable[[], Told]) -> Told:
        """Return what a simulation tells, or one that came to the same under other bounds.

        Args:
            asked: all that the simulation depends on, but for the token budget, `max_num_seqs` and the cache.
            engine: with its own bounds.
            simulated: what simulates it, where it must be.
        """
        tokens, seqs = engine.bounds
        some: tuple[Reached, ...] = ((None, None), (tokens, None), (None, seqs), (tokens, seqs))
        for bounds in some:
            told = self._told.get((asked, bounds))
            if told is not None and _reached(engine, told.reach) == bounds:
                return told
        return self.tell(asked, engine, simulated())

    def tell(self, asked: Hashable, engine: Bounded, told: Told) -> Told:
        """Return a verdict, which others under other bounds are told from now on."""
        reached = _reached(engine, told.reach)
        if reached is not None:
            self._told.put((asked, reached), told)
        return told


def _reached(engine: Bounded, reach: Reach | None) -> Reached | None:
    """Return the bounds that so much reaches; None where it may reach the cache's."""
    if reach is None or not engine.always_fits(reach):
        return None
    tokens, seqs = engine.bounds
    has_tokens, has_slots = engine.leaves_room(reach)
    return None if has_tokens else tokens, None if has_slots else seqs
