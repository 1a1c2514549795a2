"""A light HTTP client for measuring: connections kept, requests as bytes, open and closed loops."""

import asyncio
import itertools
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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


class Client:
    """One connection at a time, opened when needed and kept."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._free: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def ask(self, request: bytes, seen: Seen, patience_s: float = 3.0) -> None:
        began = time.perf_counter()
        try:
            async with asyncio.timeout(patience_s):
                status = await self._asked(request)
        except (TimeoutError, ConnectionError, OSError, asyncio.IncompleteReadError):
            status = 0
        seen.add(status, time.perf_counter() - began)

    async def _asked(self, request: bytes) -> int:
        reader, writer = self._free.pop() if self._free else await asyncio.open_connection("127.0.0.1", self._port)
        try:
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            status = int(head[9:12])
            at = head.lower().find(b"content-length:")
            if at >= 0 and status != 304:
                await reader.readexactly(int(head[at + 15 : head.index(b"\r\n", at)]))
        except BaseException:
            writer.close()
            raise
        if b"connection: close" in head.lower():
            writer.close()
        else:
            self._free.append((reader, writer))
        return status


def post(body: bytes, path: str = "/size") -> bytes:
    head = (
        f"POST {path} HTTP/1.1\r\nhost: here\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def get(path: str, **headers: str) -> bytes:
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    return f"GET {path} HTTP/1.1\r\nhost: here\r\n{lines}\r\n".encode()


async def closed_loop(port: int, requests: Iterator[bytes], clients: int, seconds: float) -> tuple[Seen, float]:
    """Ask as fast as answers come; return what was seen and how long it took."""
    client, seen, ends = Client(port), Seen(), time.perf_counter() + seconds

    async def asking() -> None:
        while time.perf_counter() < ends:
            await client.ask(next(requests), seen, 60)

    began = time.perf_counter()
    await asyncio.gather(*(asking() for _ in range(clients)))
    return seen, time.perf_counter() - began


async def open_loop(port: int, requests: Iterator[bytes], per_s: float, seconds: float) -> Seen:
    """Ask at a rate, whatever comes back."""
    client, seen, tasks, began = Client(port), Seen(), set[asyncio.Task[None]](), time.perf_counter()
    for number in itertools.count():
        due = began + number / per_s
        if due > began + seconds:
            break
        while (wait := due - time.perf_counter()) > 0:  # noqa: ASYNC110 - a clock, not an event
            await asyncio.sleep(wait)
        task = asyncio.create_task(client.ask(next(requests), seen))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
    await asyncio.gather(*tasks)
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
        code = "from service.cli import main; main()"
        port = free_port()
        with running(
            [sys.executable, "-c", code, "serve", "--port", str(port)], port, "/readyz", environment
        ) as process:
            yield port, process


@contextmanager
def echo(body: bytes) -> Iterator[int]:
    """Serve a bare FastAPI route that answers with the same bytes."""
    with tempfile.TemporaryDirectory() as folder:
        file, port = Path(folder, "body"), free_port()
        file.write_bytes(body)
        with running([sys.executable, "-c", ECHO, str(port), str(file)], port, "/size", dict(os.environ)):
            yield port


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
