"""A checkout's own server and commands, in processes of their own."""

import http.client
import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

COMMAND: Final = "from service.cli import main; main()"
OLD_COMMAND: Final = "from service.cli import app; app()"
KEY: Final = "seen"
START_S: Final = 90.0
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Said:
    """An answer; status 0 where none came in time."""

    status: int
    body: bytes
    headers: dict[str, str]
    took_s: float

    @property
    def document(self) -> Any:
        return json.loads(self.body)


class Running:
    """A server that runs, and how to ask it."""

    def __init__(self, port: int, process: "subprocess.Popen[bytes]", log: Path) -> None:
        self.port, self.process, self.log = port, process, log

    def asked(self, method: str, path: str, body: Json | None = None, patience_s: float = 30.0, **headers: str) -> Said:
        """Ask once, on a connection of its own."""
        began_at = time.monotonic()
        content = None if body is None else json.dumps(body).encode()
        stated = {"content-type": "application/json"} if body is not None else {}
        stated |= {name.replace("_", "-"): value for name, value in headers.items()}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=patience_s)
        try:
            connection.request(method, path, content, stated)
            response = connection.getresponse()
            answer = response.read()
            known = {name.lower(): value for name, value in response.getheaders()}
            return Said(response.status, answer, known, time.monotonic() - began_at)
        except (OSError, http.client.HTTPException):
            return Said(0, b"", {}, time.monotonic() - began_at)
        finally:
            connection.close()

    def get(self, path: str, patience_s: float = 30.0) -> Said:
        return self.asked("GET", path, patience_s=patience_s)

    def post(self, path: str, body: Json, patience_s: float = 30.0) -> Said:
        return self.asked("POST", path, body, patience_s)

    def put(self, path: str, body: Json, patience_s: float = 30.0) -> Said:
        return self.asked("PUT", path, body, patience_s, x_api_key=KEY)

    def raw(self, request: bytes, patience_s: float = 10.0) -> bytes:
        """Return what comes back of bytes until the other end closes, or says no more."""
        answer = b""
        with socket.create_connection(("127.0.0.1", self.port), timeout=patience_s) as connection:
            try:
                connection.sendall(request)
                while part := connection.recv(65_536):
                    answer += part
            except OSError:
                pass
        return answer

    def processor_s(self) -> float:
        """Return what the process has had of the processor. [s]."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory_mb(self, name: str = "VmRSS") -> float:
        """Return resident memory; with VmHWM, the most there ever was. [MB]."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(name))

    def ends_within(self, seconds: float) -> bool:
        """Tell the process to end; return whether it does."""
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True


class Checkout:
    """A source tree, and a folder in which its servers keep their files."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.root, self.folder = root, folder
        self.sqlite = folder / "catalog.sqlite3"

    def environment(self, **settings: str) -> dict[str, str]:
        stated = {
            "database_url": f"sqlite:///{self.sqlite}",
            "snapshot_path": f"{self.folder}/snapshot.json",
            "tables_path": f"{self.folder.parent}/tables-of-{self.root.name}",
            "api_keys": KEY,
            "snapshot_poll_seconds": "1",
            **settings,
        }
        return {**os.environ, **{f"SIZER_{name.upper()}": value for name, value in stated.items()}}

    def command(self, *words: str, **settings: str) -> "subprocess.CompletedProcess[str]":
        """Run a command of its own to the end."""
        return subprocess.run(
            self._line(*words),
            cwd=self.root,
            env=self.environment(**settings),
            check=True,
            capture_output=True,
            text=True,
        )

    def prepared(self, **settings: str) -> None:
        """Migrate and seed, as `make serve` does; a SQLite that was prepared once is copied."""
        kept = self.folder.parent / f"prepared-of-{self.root.name}.sqlite3"
        if "database_url" not in settings and kept.is_file():
            shutil.copy(kept, self.sqlite)
            return
        self.command("migrate", **settings)
        self.command("seed", **settings)
        if "database_url" not in settings:
            shutil.copy(self.sqlite, kept)

    @contextmanager
    def started(self, *words: str, descriptors: int | None = None, **settings: str) -> Iterator[Running]:
        """Start a server on what is prepared; it may be that it never comes up."""
        port, log = free_port(), self.folder / "log"
        limited = (
            None
            if descriptors is None
            else partial(resource.setrlimit, resource.RLIMIT_NOFILE, (descriptors, descriptors))
        )
        with (
            log.open("wb") as written,
            subprocess.Popen(
                self._line("serve", "--port", str(port), *words),
                cwd=self.root,
                env=self.environment(**settings),
                stdout=written,
                stderr=written,
                preexec_fn=limited,  # noqa: PLW1509 - no thread runs yet
                start_new_session=True,
            ) as process,
        ):
            try:
                yield Running(port, process, log)
            finally:
                with suppress(ProcessLookupError):  # it has ended by itself
                    os.killpg(process.pid, signal.SIGKILL)

    @contextmanager
    def served(self, *words: str, descriptors: int | None = None, **settings: str) -> Iterator[Running]:
        """Prepare and start a server, and wait until it is ready."""
        self.prepared(**settings)
        with self.started(*words, descriptors=descriptors, **settings) as server:
            assert is_ready(server), "the server does not come up"
            yield server

    def _line(self, *words: str) -> list[str]:
        is_old = "def main(" not in (self.root / "service" / "cli.py").read_text(encoding="utf-8")
        return [sys.executable, "-c", OLD_COMMAND if is_old else COMMAND, *words]


def spent_s(server: Running, work: Callable[[], object]) -> float:
    """Return what a server had of the processor meanwhile. [s]."""
    before_s = server.processor_s()
    work()
    return server.processor_s() - before_s


def is_ready(server: Running) -> bool:
    return soon(lambda: server.process.poll() is not None or server.get("/readyz", 5).status == 200, START_S) and (
        server.process.poll() is None
    )


def soon(holds: Callable[[], bool], seconds: float) -> bool:
    """Return whether something becomes true within a while."""
    ends_at = time.monotonic() + seconds
    while time.monotonic() < ends_at:
        if holds():
            return True
        time.sleep(0.1)
    return False


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
