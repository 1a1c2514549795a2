"""HTTP/1.1 connections within bounds: of their number, of headers, and of the time each part may take.

uvicorn's own protocol, which has none of these, and answers what is no HTTP in plain text.
"""

import json
import logging
import resource
from asyncio import AbstractEventLoop, BaseTransport, TimerHandle, Transport
from typing import Any, Final, cast

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from service.api.front import Asking, Front
from service.api.headers import SECURITY_HEADERS
from service.api.seldom import Seldom

MOST_CONNECTIONS: Final = 4096
DESCRIPTORS_KEPT: Final = 128  # for files, databases and hubs
MOST_HEADER_BYTES: Final = 32 << 10  # request line and headers
MOST_HEADERS: Final = 100
HEADERS_S: Final = 10.0  # from the first byte of a request to the end of its headers, or from connecting
BODY_S: Final = 20.0  # from there to the end of its body
IDLE_S: Final = 15  # between requests; longer than the client libraries' own pools would reuse is no use
LINGER_S: Final = 1.0  # once told to end: for a request that is on its way over a connection that is kept
IS_ENDING: Final = "is_ending"
LOG_EVERY: Final = 1000
logger = logging.getLogger("uvicorn.error")


logger.addFilter(Seldom())


def most_connections() -> int:
    """Return how many connections may be open: as many as descriptors last, whose limit is raised as far as it goes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_CONNECTIONS + DESCRIPTORS_KEPT
    if soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return max(min(MOST_CONNECTIONS, soft - DESCRIPTORS_KEPT), 1)


class Connection(HttpToolsProtocol):
    """One connection; a client that is too slow, or sends too much, is told so and cut."""

    most = most_connections()
    headers_s, body_s, linger_s = HEADERS_S, BODY_S, LINGER_S
    num_refused = 0

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: AbstractEventLoop | None = None,
    ) -> None:
        """Start without a request."""
        super().__init__(config, server_state, app_state, _loop)
        self._header_bytes = 0  # that came while headers were read
        self._stated_bytes = 0  # of the headers of this request
        self._reads_headers = True
        self._timer: TimerHandle | None = None
        self._ends_at: float | None = None  # of what is expected now
        self._asking: Asking | None = None  # a question that waits for its body, and may be answered at once
        self._held: list[bytes] = []  # of that body

    def connection_made(self, transport: BaseTransport) -> None:
        """Take the connection, unless there are too many."""
        super().connection_made(cast("Transport", transport))
        if len(self.connections) > self.most:
            self._log_refusal()
            self._cut(503, "Service Unavailable", "busy", "too many connections are open; ask again")
            return
        self._expect(self.headers_s)
        if self._is_ending:  # it was taken in the moment in which the door closed
            self._linger()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on, while there is not too much of it."""
        if self.transport.is_closing():
            return
        if self._reads_headers:
            if self._ends_at is None:
                self._expect(self.headers_s)
            self._header_bytes += len(data)
        super().data_received(data)
        if self._reads_headers and self._header_bytes > MOST_HEADER_BYTES:
            self._cut_headers()

    def on_message_begin(self) -> None:
        """Begin a request."""
        self._reads_headers, self._stated_bytes = True, 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        """Read some of the address."""
        super().on_url(url)
        if len(self.url) > MOST_HEADER_BYTES:
            self._cut_headers()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Read a header; what trails behind a body is counted and dropped: it was past every proxy's rules."""
        self._stated_bytes += len(name) + len(value)
        if len(self.headers) < MOST_HEADERS and self._stated_bytes <= MOST_HEADER_BYTES:
            if self._reads_headers:
                super().on_header(name, value)
        else:
            self._cut_headers()

    def on_headers_complete(self) -> None:
        """Read the body next."""
        self._reads_headers, self._header_bytes = False, 0
        if self.transport.is_closing():
            return
        if self.parser.get_http_version() == "1.1" and sum(name == b"host" for name, _ in self.headers) != 1:
            self._cut(400, "Bad Request", "bad-request", "a request names the host that it is meant for, once")
            return
        self._expect(self.body_s)
        front: Front | None = self.app_state.get("front")
        if front is not None and not self.flow.write_paused and not self._is_answering:
            self._asking = front.asking(self.parser.get_method(), self.url, self.headers)
        if self._asking is None:
            self._begin()

    def _begin(self) -> None:
        """Hand the request to the application; the last of a connection says so."""
        super().on_headers_complete()
        if self._is_ending and self.cycle is not None:
            self.cycle.keep_alive = False

    def on_body(self, body: bytes) -> None:
        """Read some of the body."""
        if self._asking is not None:
            self._held.append(body)
        elif self.cycle is not None and not self.transport.is_closing():
            super().on_body(body)

    def on_message_complete(self) -> None:
        """Answer what needs no thought; wait for nothing more of this request."""
        self._ends_at = None
        self._reads_headers = True
        if self._asking is not None and self._answered_at_once():
            return
        if self.cycle is not None and not self.transport.is_closing():
            super().on_message_complete()

    @property
    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _answered_at_once(self) -> bool:
        """Return whether the question that was held is answered; if not, it goes the long way."""
        front: Front = self.app_state["front"]
        if self._asking is None or self.transport.is_closing():
            return True
        stays = self.parser.get_http_version() != "1.0" and self.parser.should_keep_alive() and not self._is_ending
        body = b"".join(self._held)
        answer = front.answer(self._asking, body, self.server_state.default_headers, stays=stays)
        if answer is None:
            self._go_the_long_way()
            return False
        self._asking, self._held = None, []
        self.transport.write(answer)
        if not stays:
            self.transport.close()
        self.on_response_complete()
        return True

    def _go_the_long_way(self) -> None:
        """Hand a question that was held to the application, as far as it has come."""
        body, self._asking, self._held = b"".join(self._held), None, []
        self._begin()
        if body:
            super().on_body(body)

    @property
    def _is_ending(self) -> bool:
        return IS_ENDING in self.app_state

    def shutdown(self) -> None:
        """Answer what has begun, and what is on its way: to close at once would drop a request that nobody read yet."""
        self.app_state[IS_ENDING] = True
        if self._asking is not None and not self.transport.is_closing():
            self._go_the_long_way()
        if self._is_answering and not self.cycle.response_started:
            self.cycle.keep_alive = False
        else:
            self._linger()

    def _linger(self) -> None:
        self.loop.call_later(self.linger_s, self._leave)

    def _leave(self) -> None:
        """Close, unless a request has begun to arrive, which will be the last, or its answer has begun to leave."""
        if self._is_answering:
            self._linger()
        elif not (self._header_bytes or self._asking or self.transport.is_closing()):
            self.transport.close()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - the text of uvicorn's own
        """Answer what is no HTTP as every other mistake is answered."""
        self._cut(400, "Bad Request", "bad-request", "this is not an HTTP request that can be read")

    def _cut_headers(self) -> None:
        detail = f"more than {MOST_HEADERS} headers, or than {MOST_HEADER_BYTES} bytes of them"
        self._cut(431, "Request Header Fields Too Large", "headers-too-large", detail)

    def _expect(self, within_s: float) -> None:
        """Cut the connection unless what is expected comes in time; a timer that rings no later is left as it is."""
        self._ends_at = self.loop.time() + within_s
        if self._timer is not None and self._timer.when() > self._ends_at:
            self._stop_waiting()
            self._ends_at = self.loop.time() + within_s
        if self._timer is None:
            self._timer = self.loop.call_at(self._ends_at, self._rings)

    def _stop_waiting(self) -> None:
        self._ends_at = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _rings(self) -> None:
        self._timer = None
        if self._ends_at is None:
            return
        if self._ends_at > self.loop.time():
            self._timer = self.loop.call_at(self._ends_at, self._rings)
        else:
            self._too_slow()

    def _too_slow(self) -> None:
        self._ends_at = None
        if self._header_bytes or self._is_answering or self._asking is not None:
            self._cut(408, "Request Timeout", "too-slow", "the request did not arrive in time")
        elif not self.transport.is_closing():
            self.transport.close()

    def _cut(self, status: int, title: str, kind: str, detail: str) -> None:
        """Answer with a problem document, where nothing was answered yet, and close."""
        if self.transport.is_closing():
            return
        self._stop_waiting()
        if self.cycle is None or not self.cycle.response_started or self.cycle.response_complete:
            self.transport.write(_problem(status, title, kind, detail))
        self.transport.close()

    def _log_refusal(self) -> None:
        """Say so once in a while: a flood of connections is no flood of lines."""
        if Connection.num_refused % LOG_EVERY == 0:
            logger.warning("more than %d connections are open; %d were refused so far", self.most, self.num_refused)
        Connection.num_refused += 1


def _problem(status: int, title: str, kind: str, detail: str) -> bytes:
    problem = {"type": f"/problems/{kind}", "title": title, "status": status, "detail": detail, "errors": []}
    body = json.dumps(problem).encode() + b"\n"
    headers = {
        "content-type": "application/problem+json",
        "content-length": str(len(body)),
        "cache-control": "no-store",
        "connection": "close",
        **SECURITY_HEADERS,
        **({"Retry-After": "1"} if status == 503 else {}),
    }
    lines = [f"HTTP/1.1 {status} {title}", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    return "\r\n".join(lines).encode() + body
