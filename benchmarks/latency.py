"""How long a release takes to answer questions nobody asked before, over HTTP.

    python -m benchmarks.latency [--root DIR] [--beside DIR] [--keep] [--sizes N] [--capacities N] [--recommendations N] [--worst N]

starts the service of a working copy, asks about every model and GPU once so that step times are there,
and prints percentiles of what follows, as JSON; `--root` is another working copy of the project, and `--beside` one
more, of an earlier release: it is asked the same in the same run, and how many times longer it takes is printed.
Without it the figures stand beside those that `--keep` stored last, with their date and machine.
"""

import argparse
import json
import os
import platform
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, Final

import httpx2

from benchmarks.random_questions import (
    GPUS,
    MODELS,
    Question,
    capacity_questions,
    recommend_questions,
    size_questions,
)

PATIENCE_S: Final = 300.0
MILLISECONDS_PER_S: Final = 1e3
KEPT: Final = Path(".benchmarks/latency.json")


@contextmanager
def served(root: Path) -> Iterator[tuple[httpx2.Client, int]]:
    """Yield a client of the service of a working copy, and its process."""
    with tempfile.TemporaryDirectory() as folder, socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        environment = {
            **os.environ,
            "PYTHONPATH": str(root),
            "SIZER_DATABASE_URL": f"sqlite:///{folder}/sizer.sqlite3",
            "SIZER_SNAPSHOT_PATH": f"{folder}/snapshot.json",
            "SIZER_TABLES_PATH": f"{folder}/tables",
        }
        code = "from service.cli import main; main()"
        for name in ("migrate", "seed"):
            subprocess.run(
                [sys.executable, "-c", code, name], cwd=root, env=environment, check=True, capture_output=True
            )
        server = subprocess.Popen(
            [sys.executable, "-c", code, "serve", "--port", str(port)],
            cwd=root,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            with httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE_S) as client:
                wait_until_ready(client)
                yield client, server.pid
        finally:
            server.terminate()
            server.wait()


def wait_until_ready(client: httpx2.Client) -> None:
    while True:
        try:
            if client.get("/readyz").status_code == 200:
                return
        except httpx2.TransportError:
            time.sleep(0.02)


def answered_s(client: httpx2.Client, path: str, question: Question) -> float:
    """Return how long an answer takes; a refusal is an answer. [s]."""
    began = time.perf_counter()
    status = client.post(path, json=question).status_code
    took = time.perf_counter() - began
    if status >= 500:
        raise RuntimeError(f"{path} answered {status} to {question}")
    return took


def percentiles(client: httpx2.Client, path: str, questions: Iterable[Question]) -> dict[str, float]:
    """Return percentiles of how long answers take. [ms]."""
    taken = sorted(MILLISECONDS_PER_S * answered_s(client, path, question) for question in questions)
    count = len(taken)
    marks = {
        "p50": taken[count // 2],
        "p90": taken[int(0.9 * count)],
        "p99": taken[int(0.99 * count)],
        "max": taken[-1],
    }
    return {"questions": count, **{name: round(value, 1) for name, value in marks.items()}}


def rss_mb(pid: int) -> float:
    """Return the memory of a process. [MB]."""
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="utf-8").split()[1])
    return round(pages * os.sysconf("SC_PAGE_SIZE") / 1e6, 1)


def measured(root: Path, asked: argparse.Namespace) -> dict[str, Any]:
    """Return what a release takes, endpoint by endpoint."""
    found: dict[str, Any] = {}
    with served(root) as (client, pid):
        for model in MODELS:
            for gpu in GPUS:
                known = {"model": model, "gpu": gpu, "input_tokens": 900, "output_tokens": 90}
                answered_s(client, "/size", {**known, "concurrent_requests": 3, "ttft_s": 1, "tpot_s": 0.05})
        found["first /recommend of each model"] = percentiles(
            client,
            "/recommend",
            (
                {"model": model, "request_rate_per_s": 2, "input_tokens": 900, "output_tokens": 90, "ttft_s": 1}
                for model in MODELS[: asked.recommendations]
            ),
        )
        found["/size"] = percentiles(client, "/size", islice(size_questions(1), asked.sizes))
        again = next(size_questions(1))
        found["/size repeated"] = percentiles(client, "/size", [again] * 200)
        found["/capacity"] = percentiles(client, "/capacity", islice(capacity_questions(2), asked.capacities))
        found["/recommend"] = percentiles(client, "/recommend", islice(recommend_questions(3), asked.recommendations))
        found["/size, prompts to 120,000"] = percentiles(
            client, "/size", islice(size_questions(4, longest=16.87), asked.worst)
        )
        found["rss_mb"] = rss_mb(pid)
    return found


def kept_figures() -> dict[str, Any] | None:
    """Return what was stored last: figures, and the date and machine they are of; None where nothing was."""
    return json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.is_file() else None


def keep(figures: dict[str, Any]) -> None:
    """Store figures for the next release to stand beside."""
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    stored = {"date": datetime.now(UTC).date().isoformat(), "machine": machine, "figures": figures}
    KEPT.parent.mkdir(exist_ok=True)
    KEPT.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")


def times_longer(before: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    """Return how many times longer an earlier release takes, percentile by percentile."""
    return {
        name: {mark: round(before[name][mark] / marks[mark], 1) for mark in marks if mark != "questions"}
        for name, marks in now.items()
        if isinstance(marks, dict) and name in before
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=Path.cwd())
    parser.add_argument("--beside", type=Path)
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--sizes", type=int, default=300)
    parser.add_argument("--capacities", type=int, default=60)
    parser.add_argument("--recommendations", type=int, default=20)
    parser.add_argument("--worst", type=int, default=200)
    asked = parser.parse_args()
    report = now = measured(asked.root.resolve(), asked)
    stored = kept_figures()
    if asked.beside is not None:
        before = measured(asked.beside.resolve(), asked)
        report = {"now": now, "before": before, "times longer": times_longer(before, now)}
    elif stored is not None:
        report = {"now": now, "stored": stored, "times longer": times_longer(stored["figures"], now)}
    if asked.keep:
        keep(now)
    sys.stdout.write(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
