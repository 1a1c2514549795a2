"""Answers by memory alone, told for every load that has them: an autoscaler asks the same of other users each time.

What a question says beside its load is looked up once; what is computed of one load is the answer to all that are
alike (`engine/answers/alike.py`). Only what names the load is written anew.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from pydantic import TypeAdapter

from service.engine.answers.alike import HALVED, Sized, sized
from service.engine.answers.noted import load_notes
from service.engine.answers.results import Sizing
from service.engine.fleet.alike import lengths_of
from service.engine.fleet.questions import SizeQuestion
from service.engine.fleet.results import Assumption
from service.engine.inputs import Load
from service.engine.kept import Kept

MOST_ASKED: Final = 512  # questions without their loads
MOST_BYTES: Final = 8 << 20
BYTES_PER_JSON_BYTE: Final = 3  # of a sizing, its text included
MOST_BESIDE: Final = 8  # numbers of users of requests that are alike
NOTES: Final = TypeAdapter(tuple[Assumption, ...])


def _as_listed(notes: tuple[Assumption, ...]) -> str:
    """Return what an answer rests on, as it stands in its list."""
    return NOTES.dump_json(notes).decode()[1:-1]


def _halved(load: Load) -> str:
    """Return how a lever states prompts of half the length."""
    return f'{{"{HALVED}":{load.input_tokens // 2}}}'


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A sizing as JSON, but for what it says of its load."""

    sized: Sized
    before: str
    after: str

    def told(self, load: Load) -> tuple[Callable[[], Sizing], str]:
        """Return what makes the sizing of another load, and its JSON."""
        notes, before = load_notes(load), self.before
        if self.sized.halved is not None:
            before = before.replace(_halved(self.sized.load), _halved(load))
        return partial(self.sized.told, load, notes), f"{before}{_as_listed(notes)}{self.after}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """A question as it was looked up, with some load; and how its names were understood."""

    question: SizeQuestion
    readings: tuple[Assumption, ...]
    may_be_alike: bool  # to the same of another load
    key: object = field(default_factory=object)


class AlikeAnswers:
    """What was computed lately, by question and lengths."""

    def __init__(self) -> None:
        """Start without any."""
        self._looked: Kept[Looked] = Kept(MOST_ASKED)
        self._written: Kept[tuple[Written, ...]] = Kept(MOST_BYTES, _size_of)

    def looked(self, rest: Hashable, look: Callable[[], Looked]) -> Looked:
        """Return a question as it was looked up before, or is now."""
        return self._looked.get_or(rest, look)

    def told(self, looked: Looked, load: Load) -> tuple[Callable[[], Sizing], str] | None:
        """Return what makes the sizing of a load, and its JSON; None where it must be computed.

        Raises:
            EngineError: its requests are longer than what is served.
        """
        for written in self._beside(looked, load):
            if written.sized.is_of(looked.question, load):
                return written.told(load)
        return None

    def _beside(self, looked: Looked, load: Load) -> tuple[Written, ...]:
        return self._written.get((looked.key, lengths_of(looked.question, load))) or ()

    def sizing(self, looked: Looked, load: Load, write: Callable[[Sizing], str]) -> tuple[Sizing, str]:
        """Return the sizing of a load, computed, and its JSON.

        Args:
            looked: the question.
            load: that is asked now.
            write: what writes a sizing.

        Raises:
            EngineError: the question contradicts itself or names something without a rule.
        """
        sizing, alike = sized(replace(looked.question, load=load))
        text = write(sizing)
        before, notes, after = text.partition(_as_listed(load_notes(load)))
        if alike is not None and notes:
            new = Written(sized=alike, before=before, after=after)
            key = looked.key, lengths_of(looked.question, load)
            self._written.put(key, (new, *self._beside(looked, load)[: MOST_BESIDE - 1]))
        return sizing, text


def _size_of(beside: tuple[Written, ...]) -> int:
    return BYTES_PER_JSON_BYTE * sum(len(written.before) + len(written.after) for written in beside)
