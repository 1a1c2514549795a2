"""Questions that take about a millisecond are answered where they arrive: a thread of their own would take longer.

Nobody can tell what a question costs before it is answered. So the first of a kind goes the long way, through a thread;
once its kind is known to be quick, and needs no step times, for which one may have to wait, it is answered on the event
loop, which spends no more than a share of its time so. Whatever is wrong or odd goes the long way and is told there.
"""

from collections.abc import Hashable, Iterable, Mapping
from threading import Lock
from time import monotonic, thread_time
from typing import Any, Final

from cachetools import LRUCache
from pydantic import ValidationError
from starlette.datastructures import QueryParams
from starlette.responses import Response

from service.api.media import response_of
from service.catalog.snapshot import Snapshot
from service.engine.errors import EngineError
from service.engine.patience import GivenUpError, working_for
from service.questions.answers import Answer
from service.questions.asked import Asked, Desk, Question, check_revision
from service.questions.fields import lists_of
from service.questions.formats import written
from service.questions.reading import read_json
from service.questions.refusals import RefusalError

QUICK_S: Final = 0.002  # of the processor: what a kind takes that is answered on the event loop
SLICE_S: Final = 0.005  # whatever takes longer is put off, to a thread
RISE: Final = 0.3  # of a slow one in what its kind is taken for; a quick one counts at once
SHARE: Final = 0.85  # of the event loop's time; what is beyond queues for threads, and is told when it would wait long
BURST_S: Final = 0.05
MOST_KINDS: Final = 4_096
MOST_BODY_BYTES: Final = 4_096


class Quick:
    """What kinds of questions took lately."""

    def __init__(self) -> None:
        """Start without any."""
        self._took_s: LRUCache[Hashable, float] = LRUCache(MOST_KINDS)
        self._lock = Lock()  # threads tell, too

    def tell(self, kind: Hashable, took_s: float) -> None:
        """Learn what a question of a kind took of the processor. [s]."""
        with self._lock:
            before = self._took_s.get(kind, took_s)
            self._took_s[kind] = min(took_s, before + RISE * (took_s - before))

    def known(self) -> tuple[Hashable, ...]:
        """Return the kinds that were asked lately."""
        with self._lock:
            return tuple(self._took_s)

    def has(self, kind: Hashable) -> bool:
        """Return whether a kind is known to be quick."""
        with self._lock:
            return self._took_s.get(kind, QUICK_S + 1) <= QUICK_S


class Share:
    """A part of the event loop's time: it fills while time passes, and is spent by answering."""

    def __init__(self) -> None:
        """Start full."""
        self._left_s, self._at = BURST_S, monotonic()

    @property
    def is_spent(self) -> bool:
        """Return whether the event loop has other things to do."""
        now = monotonic()
        self._left_s = min(self._left_s + SHARE * (now - self._at), BURST_S)
        self._at = now
        return self._left_s <= 0

    def spend(self, seconds: float) -> None:
        """Count what an answer took. [s]."""
        self._left_s -= seconds


def kind_of(question: Question, asked: Asked) -> Hashable:
    """Return what tells about how much a question costs: what it states, less how much; None where nobody can tell."""
    if not asked.is_of_memory_alone:
        return None
    return question.name, frozenset(
        (name, value if isinstance(value := getattr(asked, name), str) else None) for name in asked.model_fields_set
    )


class AtOnce:
    """Answers quick questions in the thread that asks."""

    def __init__(self, desk: Desk) -> None:
        """Answer at a desk, once kinds are known to be quick."""
        self.quick = Quick()
        self._desk, self._share = desk, Share()

    def answer(self, question: Question, asked: Asked, catalog: Snapshot) -> Answer[Any] | None:
        """Return the answer; None where a thread should find it.

        Raises:
            RefusalError: another revision is pinned, or the question is not answered.
            EngineError: the engine refuses it.
        """
        check_revision(asked, catalog)
        key = self._desk.key(question, asked, catalog)
        kept = self._desk.kept_answer(key, catalog)
        if kept is not None:
            return kept
        kind = kind_of(question, asked)
        if kind is None or self._share.is_spent or not self.quick.has(kind):
            return None
        began_at, began_s = monotonic(), thread_time()
        try:
            with working_for(lambda: thread_time() > began_s + SLICE_S):
                return self._desk.new_answer(key, asked, catalog)
        except GivenUpError:
            return None
        finally:
            self._share.spend(monotonic() - began_at)
            self.quick.tell(kind, thread_time() - began_s)


class PlainQuestions:
    """Reads questions as they arrive, and answers what is quick."""

    def __init__(self, questions: Iterable[Question], at_once: AtOnce, most_body_bytes: int) -> None:
        """Read these questions; bodies have a cap of the service's own."""
        self._questions = {f"/{question.name}": question for question in questions}
        self._lists = {path: lists_of(question.query) for path, question in self._questions.items()}
        self._at_once = at_once
        self._most_body_bytes = min(most_body_bytes, MOST_BODY_BYTES)

    def response(self, path: str, query: bytes | None, body: bytes, catalog: Snapshot) -> Response | None:
        """Return the answer to a question; None where it goes the long way, and so of all that is not answered.

        Args:
            path: of the question.
            query: its query string; None where it has a body.
            body: its body.
            catalog: what it is answered from.
        """
        if len(body) > self._most_body_bytes:
            return None
        question = self._questions[path]
        try:
            asked = self._asked(question, path, query, body)
            if asked is None or asked.format != "json":
                return None
            answer = self._at_once.answer(question, asked, catalog)
            return None if answer is None else response_of(written(answer, asked))
        except (ValidationError, ValueError, RecursionError, RefusalError, EngineError):
            return None

    def _asked(self, question: Question, path: str, query: bytes | None, body: bytes) -> Asked | None:
        """Return the question as it was read; None where something is stated twice, or is no object."""
        if query is None:
            stated, twice = read_json(body)
            is_plain = isinstance(stated, dict) and not twice
            return question.body.model_validate(stated) if is_plain else None
        pairs = QueryParams(query).multi_items()
        named: Mapping[str, Any] = dict(pairs)
        is_plain = len(named) == len(pairs) and self._lists[path].isdisjoint(named)
        return question.query.model_validate(named) if is_plain else None
