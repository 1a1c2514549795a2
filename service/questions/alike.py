"""Answers by memory alone, told for every load that has them: an autoscaler asks the same of other users each time.

What a question says beside its load is looked up once; what is computed of one load is the answer to all that are
alike (`engine/answers/alike.py`). Only what names the load is written anew.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
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

    def told(self, load: Load) -> tuple[Sizing, str]:
        """Return the sizing of another load, and its JSON."""
        notes, before = load_notes(load), self.before
        if self.sized.halved is not None:
            before = before.replace(_halved(self.sized.load), _halved(load))
        return self.sized.told(load, notes), f"{before}{_as_listed(notes)}{self.after}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """A question as it was looked up, with some load; and how its names were understood."""

    question: SizeQuestion
    readings: tuple[Assumption, ...]
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

    def sizing(self, looked: Looked, load: Load, write: Callable[[Sizing], str]) -> tuple[Sizing, str]:
        """Return the sizing of a load, and its JSON.

        Args:
            looked: the question.
            load: that is asked now.
            write: what writes a sizing that is new.

        Raises:
            EngineError: the question contradicts itself or names something without a rule.
        """
        key = looked.key, lengths_of(looked.question, load)
        beside = self._written.get(key) or ()
        for written in beside:
            if written.sized.is_of(looked.question, load):
                return written.told(load)
        sizing, alike = sized(replace(looked.question, load=load))
        text = write(sizing)
        before, notes, after = text.partition(_as_listed(load_notes(load)))
        if alike is not None and notes:
            new = Written(sized=alike, before=before, after=after)
            self._written.put(key, (new, *beside[: MOST_BESIDE - 1]))
        return sizing, text


def _size_of(beside: tuple[Written, ...]) -> int:
    return BYTES_PER_JSON_BYTE * sum(len(written.before) + len(written.after) for written in beside)
