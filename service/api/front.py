"""Where questions arrive: what was answered before, or would wait too long, is answered in bytes, before it is a task.

A refusal must cost next to nothing, or refusing is what an overloaded service does; and a repeated question costs what
its framework costs. Whatever is out of the ordinary - a key, a list of codings, a body without a length - goes the long
way, through every layer, and gets the same answer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from time import perf_counter
from typing import Final

from service.api.at_once import PlainQuestions
from service.api.headers import SECURITY_HEADERS
from service.api.kept import Header, KeptReplies, Key, Reply, age_headers, lines_of, reply_of
from service.api.media import format_accepted
from service.api.problems import problem_response
from service.api.reception import BUSY, BUSY_HEADERS, Reception
from service.api.replies import MOST_BODY_BYTES, has_it
from service.api.telemetry import Sight, timing_headers
from service.catalog.keeper import CatalogKeeper
from service.catalog.snapshot import Snapshot
from service.questions.asked import Question

LONG_WAY: Final = frozenset(
    {b"x-api-key", b"authorization", b"content-encoding", b"expect", b"upgrade", b"transfer-encoding"}
)
SECURITY_LINES: Final = lines_of(
    tuple((name.lower().encode(), value.encode()) for name, value in SECURITY_HEADERS.items())
)
STATUS_LINES: Final = {
    status: b"HTTP/1.1 %d %b\r\n" % (status, HTTPStatus(status).phrase.encode()) for status in (200, 304, 503)
}
CLOSE: Final = b"connection: close\r\n"
MOST_LENGTH_DIGITS: Final = 6


@dataclass(frozen=True, slots=True)
class Asking:
    """A question whose headers have arrived."""

    method: str
    path: str
    query: bytes | None  # None: of a body
    headers: Mapping[bytes, bytes]
    began_at: float

    def key(self, body: bytes) -> tuple[str, bytes]:
        """Return what its answer is kept under, as `kept.key_of` does."""
        return self.path, body if self.query is None else b"?" + self.query


class Front:
    """Answers what needs no thought."""

    def __init__(
        self,
        questions: Sequence[Question],
        kept: KeptReplies,
        keeper: CatalogKeeper,
        reception: Reception,
        sight: Sight,
        *,
        most_body_bytes: int,
    ) -> None:
        """Stand before an application of these questions, which anybody may ask."""
        self._paths = {f"/{question.name}".encode(): f"/{question.name}" for question in questions}
        self._plain = PlainQuestions(questions, reception.at_once, most_body_bytes)
        self._kept, self._keeper, self._reception, self._sight = kept, keeper, reception, sight
        busy = problem_response(503, "busy", BUSY, headers=BUSY_HEADERS)
        self._busy_lines, self._busy_body = lines_of(tuple(busy.raw_headers)), bytes(busy.body)

    def asking(self, method: bytes, url: bytes, headers: Sequence[Header]) -> Asking | None:
        """Return a question that may be answered here; None of any other request."""
        raw_path, mark, query = url.partition(b"?")
        path = self._paths.get(raw_path)
        if path is None:
            return None
        stated = dict(headers)
        if not LONG_WAY.isdisjoint(stated) or b"#" in query or format_accepted(stated.get(b"accept", b"")):
            return None
        began_at = perf_counter()
        if method == b"GET":
            return None if b"content-length" in stated else Asking("GET", path, query, stated, began_at)
        if method != b"POST" or mark or stated.get(b"content-type") != b"application/json":
            return None
        length = stated.get(b"content-length", b"")
        is_small = length.isdigit() and len(length) <= MOST_LENGTH_DIGITS and int(length) <= MOST_BODY_BYTES
        return Asking("POST", path, None, stated, began_at) if is_small else None

    def answer(self, asking: Asking, body: bytes, default_headers: Sequence[Header], *, stays: bool) -> bytes | None:
        """Return the answer as it goes over the wire; None where it takes thought.

        Args:
            asking: the question.
            body: its body; empty where it has none.
            default_headers: what the server says with every answer.
            stays: whether the connection stays open. [yes or no]
        """
        key, catalog = asking.key(body), self._keeper.snapshot
        reply = self._kept.get(key, catalog)
        if reply is not None:
            self._sight.kept.labels(asking.path).inc()
        elif not self._reception.is_full:
            reply = self._new(asking, body, catalog, key)
            if reply is None:
                return None
        if reply is not None:
            is_known = has_it(reply.etag, asking.headers.get(b"if-none-match", b""), asking.method)
            status, content = (304, b"") if is_known else (200, reply.body)
            own = reply.unchanged_lines if is_known else reply.lines
            lines = SECURITY_LINES + own + lines_of(tuple(age_headers(self._keeper)))
        else:
            status, lines, content = 503, self._busy_lines, self._busy_body
        seconds = perf_counter() - asking.began_at
        request_id = self._sight.request_id(asking.headers.get(b"x-request-id"))
        self._sight.note(asking.path, asking.method, status, seconds, request_id.decode())
        more = lines_of((*default_headers, *timing_headers(request_id, seconds)))
        return b"".join((STATUS_LINES[status], more, lines, b"" if stays else CLOSE, b"\r\n", content))

    def _new(self, asking: Asking, body: bytes, catalog: Snapshot, key: Key) -> Reply | None:
        """Return the answer to a question that takes no longer than handing it on, and keep it; None of any other."""
        response = self._plain.response(asking.path, asking.query, body, catalog)
        if response is None:
            return None
        reply = reply_of(tuple(response.raw_headers), bytes(response.body))
        self._kept.put(key, reply, catalog)
        return reply
