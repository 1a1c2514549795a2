"""Goodput beyond capacity, and the shell beside a bare route: `make overload` prints a table and writes JSON.

Load comes from this process, the service has another: with two cores each has one.
"""

import itertools
import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from typing import Any

from benchmarks.http_load import (
    Seen,
    closed_loop,
    echo,
    get,
    open_loop,
    post,
    processor_s,
    resident_mb,
    served,
)
from benchmarks.results import RESULTS

SECONDS = 4.0
QUESTION = "/size?model=llama-3.1-8b&gpu=h100&concurrent_requests=64&input_tokens=2000&output_tokens=500"
BODY = json.dumps(
    {"model": "llama-3.1-8b", "gpu": "h100", "concurrent_requests": 64, "input_tokens": 2000, "output_tokens": 500}
).encode()
Process = subprocess.Popen[bytes]
NUMBERS = itertools.count(1)
USERS, LENGTHS = 512, 1_999  # without a common divisor: a million pairs


def distinct(**more: str) -> Iterator[bytes]:
    """Yield questions that nobody asked before, and that cost about the same however many were asked."""
    for number in NUMBERS:
        question = {
            "model": "llama-3.1-8b",
            "gpu": "h100",
            "concurrent_requests": 1 + number % USERS,
            "input_tokens": 1_000 + number % LENGTHS,
            "output_tokens": 200,
            **more,
        }
        yield post(json.dumps(question).encode())


def other_users(**more: str) -> Iterator[bytes]:
    """Yield one workload's question of other users each time, as an autoscaler asks it."""
    for number in itertools.count(1):
        users = 1 + number % 50_000
        question = {"model": "llama-3.1-8b", "gpu": "h100", "concurrent_requests": users, "input_tokens": 1_000}
        yield post(json.dumps({**question, "output_tokens": 200, **more}).encode())


def row(name: str, seen: Seen, seconds: float, peak_per_s: float | None = None) -> dict[str, Any]:
    good, told, failed = seen.count(200, 304), seen.count(429, 503), seen.count(0)
    return {
        "what": name,
        "good_per_s": round(good / seconds, 1),
        "of_peak": None if peak_per_s is None else round(good / seconds / peak_per_s, 2),
        "good_p50_ms": round(seen.percentile_ms(50, 200, 304), 1),
        "good_p99_ms": round(seen.percentile_ms(99, 200, 304), 1),
        "told_per_s": round(told / seconds, 1),
        "told_p50_ms": round(seen.percentile_ms(50, 429, 503), 1),
        "told_p99_ms": round(seen.percentile_ms(99, 429, 503), 1),
        "no_answer": failed,
    }


def peak_of(port: int) -> tuple[float, dict[str, Any]]:
    """Return the most good answers a second that this generator gets, by a few patient clients."""
    seen, took_s = closed_loop(port, distinct(), 4, SECONDS / 2)
    return seen.count(200) / took_s, row("capacity (4 clients)", seen, took_s)


def overload(port: int) -> list[dict[str, Any]]:
    """Return goodput at capacity and beyond, each beside the peak right before and after it; and how soon all is as before."""
    closed_loop(port, distinct(), 2, 2)
    before, first = peak_of(port)
    rows = [first]
    for factor in (1, 2, 4, 10):
        seen = open_loop(port, distinct(), factor * before, SECONDS)
        after, _ = peak_of(port)
        rows.append(row(f"{factor}x", seen, SECONDS, (before + after) / 2))
        before = after
    open_loop(port, distinct(), 10 * before, 1)
    again, took_s = closed_loop(port, distinct(), 1, 1)
    rows.append(row("right after 10x, 1 client", again, took_s))
    return rows


def shell(port: int, process: Process, echo_port: int, echoing: Process, etag: str) -> list[dict[str, Any]]:
    """Return requests per second, and of processor seconds, beside a bare route that answers with the same bytes.

    On a machine that does other things as well, what a request takes of the processor tells more than the clock; each
    way is measured in turns with the bare route.
    """
    ways = {
        "repeated GET": itertools.repeat(get(QUESTION)),
        "repeated POST": itertools.repeat(post(BODY)),
        "unchanged (304)": itertools.repeat(get(QUESTION, if_none_match=etag)),
        "another spelling": (post(BODY + b" " * number) for number in itertools.count(1)),
        "distinct, latency=none": distinct(latency="none"),
        "distinct, field=gpus": distinct(field="gpus"),
        "other users, latency=none": other_users(latency="none"),
        "distinct": distinct(),
    }
    bare = itertools.repeat(get(QUESTION))
    rows: list[dict[str, Any]] = []
    for name, requests in ways.items():
        clients = 16 if name.startswith(("repeated", "unchanged")) else 2
        seen, took_s, cpu_us = busy(echo_port, echoing, bare, clients)
        if not rows:
            rows.append(row("bare route", seen, took_s) | {"cpu_us": cpu_us})
        bare_us = cpu_us
        seen, took_s, cpu_us = busy(port, process, requests, clients)
        rows.append(row(name, seen, took_s) | {"cpu_us": cpu_us, "of_bare": round(bare_us / cpu_us, 2)})
    return rows


def busy(port: int, process: Process, requests: Iterator[bytes], clients: int) -> tuple[Seen, float, float]:
    """Return what was seen, how long it took, and what a good answer took of the processor. [us]."""
    before = processor_s(process)
    seen, took_s = closed_loop(port, requests, clients, SECONDS / 4)
    spent_s = processor_s(process) - before
    return seen, took_s, round(1e6 * spent_s / max(seen.count(200, 304), 1))


def main() -> None:
    """Measure, print, and write down."""
    machine = {"cores": os.cpu_count(), "load_average": round(os.getloadavg()[0], 1)}
    with served() as (port, process):
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{QUESTION}") as response:
            body, etag = response.read(), response.headers["etag"]
        with echo(body) as (echo_port, echoing):
            rows = shell(port, process, echo_port, echoing, etag)
        before_mb = resident_mb(process)
        rows += [] if "--shell" in sys.argv else overload(port)
        memory = {"before_mb": round(before_mb), "after_mb": round(resident_mb(process))}
    for line in rows:
        print("  ".join(f"{name} {value}" for name, value in line.items() if value is not None))
    print(memory)
    file = RESULTS / ("shell.json" if "--shell" in sys.argv else "overload.json")
    file.write_text(json.dumps({"rows": rows, "memory": memory, "machine": machine}, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
