"""A light HTTP client for measuring: raw sockets, requests as bytes, open and closed loops."""

import os
import select
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.conftest import seed_database

ECHO = """
import sys, uvicorn
from fastapi import FastAPI, Request, Response
BODY = open(sys.argv[2], "rb").read()
app = FastAPI()
@app.post("/size")
@app.get("/size")
async def echo(request: Request) -> Response:
    await request.body()
    return Response(BODY, media_type="application/json")
uvicorn.run(app, port=int(sys.argv[1]), loop="asyncio", http="httptools", log_level="warning")
"""


@dataclass(slots=True)
class Seen:
    """What clients saw: status and seconds of every request, in the order they ended."""

    took_s: dict[int, list[float]] = field(default_factory=dict)

    def add(self, status: int, took_s: float) -> None:
        self.took_s.setdefault(status, []).append(took_s)

    def count(self, *statuses: int) -> int:
        return sum(len(self.took_s.get(status, ())) for status in statuses)

    def percentile_ms(self, percent: float, *statuses: int) -> float:
        values = sorted(value for status in statuses for value in self.took_s.get(status, ()))
        return 1e3 * values[min(int(len(values) * percent / 100), len(values) - 1)] if values else float("nan")


class _Connection:
    """One request on its way."""

    __slots__ = ("began_at", "ends_at", "received", "request", "socket")

    def __init__(self, port: int) -> None:
        self.socket = socket.socket()
        self.socket.setblocking(False)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.connect_ex(("127.0.0.1", port))
        self.request, self.received, self.began_at, self.ends_at = b"", b"", 0.0, 0.0

    def answered(self) -> int | None:
        """Return the status of an answer that is there as a whole."""
        head, found, body = self.received.partition(b"\r\n\r\n")
        if not found:
            return None
        status, at = int(head[9:12]), head.lower().find(b"content-length:")
        length = 0 if at < 0 or status == 304 else int(head[at + 15 :].split(b"\r\n", 1)[0])
        return status if len(body) >= length else None


class Client:
    """Connections that are opened when needed and kept, on raw sockets: what measures should take little itself."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._free: list[_Connection] = []
        self._on_way: dict[int, _Connection] = {}
        self._ready = select.epoll()

    @property
    def num_on_way(self) -> int:
        return len(self._on_way)

    def send(self, request: bytes, patience_s: float) -> None:
        one = self._free.pop() if self._free else _Connection(self._port)
        one.request, one.received, one.began_at = request, b"", time.perf_counter()
        one.ends_at = one.began_at + patience_s
        self._on_way[one.socket.fileno()] = one
        # A new connection is written to once it stands.
        self._ready.register(one.socket.fileno(), select.EPOLLIN | select.EPOLLOUT)

    def take(self, seen: Seen, wait_s: float) -> None:
        """Take what comes within a while."""
        for number, _ in self._ready.poll(max(wait_s, 0)):
            one = self._on_way[number]
            try:
                status = self._went_on(one)
            except OSError:
                status = 0
            if status is not None:
                self._done(one, status, seen)
        now = time.perf_counter()
        for one in [one for one in self._on_way.values() if one.ends_at < now]:
            self._done(one, 0, seen)

    def _went_on(self, one: _Connection) -> int | None:
        if one.request:
            sent = one.socket.send(one.request)
            one.request = one.request[sent:]
            if not one.request:
                self._ready.modify(one.socket.fileno(), select.EPOLLIN)
            return None
        part = one.socket.recv(1 << 18)
        one.received += part
        return one.answered() if part else 0

    def _done(self, one: _Connection, status: int, seen: Seen) -> None:
        seen.add(status, time.perf_counter() - one.began_at)
        self._ready.unregister(one.socket.fileno())
        del self._on_way[one.socket.fileno()]
        if status == 0 or b"connection: close" in one.received[:2000].lower():
            one.socket.close()
        else:
            self._free.append(one)

    def close(self) -> None:
        for one in (*self._free, *self._on_way.values()):
            one.socket.close()
        self._ready.close()


def post(body: bytes, path: str = "/size") -> bytes:
    head = (
        f"POST {path} HTTP/1.1\r\nhost: here\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def get(path: str, **headers: str) -> bytes:
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    return f"GET {path} HTTP/1.1\r\nhost: here\r\n{lines}\r\n".encode()


def closed_loop(port: int, requests: Iterator[bytes], clients: int, seconds: float) -> tuple[Seen, float]:
    """Ask as fast as answers come; return what was seen and how long it took."""
    seen, began = Seen(), time.perf_counter()
    with closing(Client(port)) as client:
        while (is_open := time.perf_counter() < began + seconds) or client.num_on_way:
            while is_open and client.num_on_way < clients:
                client.send(next(requests), 60)
            client.take(seen, 0.5)
    return seen, time.perf_counter() - began


def open_loop(port: int, requests: Iterator[bytes], per_s: float, seconds: float, patience_s: float = 3.0) -> Seen:
    """Ask at a rate, whatever comes back."""
    seen, began, number = Seen(), time.perf_counter(), 0
    with closing(Client(port)) as client:
        while (due := began + number / per_s) < began + seconds or client.num_on_way:
            is_open = due < began + seconds
            wait_s = due - time.perf_counter() if is_open else 0.5
            if wait_s <= 0:
                client.send(next(requests), patience_s)
                number += 1
                if number % 4:  # when late, answers are still taken in between
                    continue
            client.take(seen, wait_s)
    return seen


@contextmanager
def served() -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """Serve a seeded catalog as `sizer serve` does; yield the port and the process."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            **os.environ,
            "SIZER_DATABASE_URL": f"sqlite:///{folder}/catalog.sqlite3",
            "SIZER_SNAPSHOT_PATH": f"{folder}/snapshot.json",
            "SIZER_TABLES_PATH": f"{folder}/tables",
        }
        seed_database(environment["SIZER_DATABASE_URL"])
        code = "from service.start import main; main()"
        port = free_port()
        with running(
            [sys.executable, "-c", code, "serve", "--port", str(port)], port, "/readyz", environment
        ) as process:
            yield port, process


@contextmanager
def echo(body: bytes) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """Serve a bare FastAPI route that answers with the same bytes; yield the port and the process."""
    with tempfile.TemporaryDirectory() as folder:
        file, port = Path(folder, "body"), free_port()
        file.write_bytes(body)
        command = [sys.executable, "-c", ECHO, str(port), str(file)]
        with running(command, port, "/size", dict(os.environ)) as process:
            yield port, process


@contextmanager
def running(command: list[str], port: int, path: str, environment: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            wait_for(lambda: urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5).status == 200)
            yield process
        finally:
            process.terminate()


def wait_for(holds: Callable[[], bool]) -> None:
    for _ in range(300):
        try:
            if holds():
                return
        except OSError:
            pass
        time.sleep(0.2)
    raise RuntimeError("the server does not come up")


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def resident_mb(process: subprocess.Popen[bytes]) -> float:
    lines = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))


def processor_s(process: subprocess.Popen[bytes]) -> float:
    """Return what a process has had of the processor. [s]."""
    fields = Path(f"/proc/{process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
