"""Everything of the decision that is checked from outside, and the last figures of it: `make decision`.

With names of parts only those are run, and their rows replaced: `python -m benchmarks.decision "capacity, limits"`.
"""

import json
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.decision import referee, sweeps
from benchmarks.results import RESULTS
from service.catalog.keeper import seeded_snapshot
from service.performance.kernel_tables import InProcess, KernelTables
from service.performance.stored import TableFiles
from service.performance.timers import KernelTimers
from service.questions.sources import Sources

SEED: Final = 2026
TABLES: Final = Path("var/tables")

KEPT: Final = RESULTS / "decision.json"

Row = dict[str, Any]
Told = tuple[int, int, list[str]]  # questions, what they were compared with, faults


def main() -> None:
    """Run every part, or those that are named; tell each as it is done, and keep the figures."""
    parts = _parts()
    named = sys.argv[1:] or list(parts)
    rows = {} if named == list(parts) else {row["what"]: row for row in json.loads(KEPT.read_text("utf-8"))["rows"]}
    for name in named:
        rows[name] = _told(name, parts[name])
        KEPT.write_text(json.dumps({"rows": list(rows.values())}, indent=2) + "\n", encoding="utf-8")
    sys.exit(any(row["faults"] for row in rows.values()))


def _parts() -> dict[str, Callable[[], Told]]:
    """Return what can be run, by name."""
    catalog = seeded_snapshot()
    memory = referee.sources_of(catalog, None)
    timed = referee.sources_of(catalog, KernelTimers(KernelTables(TableFiles(TABLES), InProcess())))
    return {
        "size, memory": lambda: _sized(referee.of_memory(SEED, catalog), memory, 300),
        "size, limits": lambda: _sized(referee.of_time(SEED), timed, 100),
        "size, limits, seed 77": lambda: _sized(referee.of_time(77), timed, 60),
        "size, settings": lambda: _sized(referee.of_settings(SEED + 6), timed, 100),
        "recommend, memory": lambda: _recommended(referee.of_memory(SEED + 1, catalog), memory, 200),
        "recommend, limits": lambda: _recommended(referee.of_time(SEED + 4), timed, 200, referee.TIMED_GPUS),
        "recommend, latency": lambda: _fastest(referee.of_time(SEED + 2), timed, 30),
        "capacity, memory": lambda: _growing(sweeps.questions(catalog), timed),
        "capacity, limits": lambda: _growing(sweeps.limited(SEED + 3), timed),
        "capacity, load": lambda: _growing(sweeps.loaded(SEED + 5), timed),
        "commands": lambda: _commands(memory),
    }


def _told(name: str, part: Callable[[], Told]) -> Row:
    """Return a part's row, and print it with what was wrong."""
    began = time.process_time()
    asked, against, faults = part()
    row = {
        "what": name,
        "asked": asked,
        "against": against,
        "faults": len(faults),
        "cpu_s": round(time.process_time() - began, 1),
    }
    print(json.dumps(row), *faults, sep="\n", flush=True)
    return row


def _of(verdicts: list[referee.Verdict]) -> Told:
    wrong = [str(verdict) for verdict in verdicts if verdict.better or verdict.said]
    return len(verdicts), sum(verdict.stated for verdict in verdicts), wrong


def _sized(questions: Iterator[referee.Asked], sources: Sources, count: int) -> Told:
    return _of(referee.judged(questions, lambda asked: referee.sized(asked, sources), count))


def _recommended(
    questions: Iterator[referee.Asked], sources: Sources, count: int, rented: Sequence[str] = referee.RENTED
) -> Told:
    draw = random.Random(SEED)

    def judge(asked: referee.Asked) -> referee.Verdict | None:
        shared = {name: value for name, value in asked.items() if name not in ("gpu", "latency")}
        some = {**shared, "gpus": draw.sample(rented, 3)}
        return referee.recommended(some, sources, draw.choice(("cost", "gpus")))

    return _of(referee.judged(questions, judge, count))


def _fastest(questions: Iterator[referee.Asked], sources: Sources, count: int) -> Told:
    def judge(asked: referee.Asked) -> referee.Verdict | None:
        shared = {name: value for name, value in asked.items() if name != "gpu"}
        return referee.fastest({**shared, "gpus": [asked["gpu"]]}, sources)

    return _of(referee.judged(questions, judge, count))


def _growing(questions: Iterator[referee.Asked], sources: Sources) -> Told:
    asked, faults = 0, []
    for question in questions:
        asked += 1
        told = sweeps.growing(question, sources)
        fewer = sweeps.falls(told)
        if fewer is not None:
            faults.append(f"{question}: {fewer} GPUs carry {told[fewer - 1]}, one fewer {told[fewer - 2]}")
    return asked, asked * sweeps.MOST_GPUS, faults


def _commands(sources: Sources) -> Told:
    asked, faults = 0, []
    for model, gpu, wrong in sweeps.commands(sources, sweeps.models_of(sources.catalog), sweeps.COMMAND_GPUS):
        asked += 1
        faults += [f"{model} on {gpu}: {fault}" for fault in wrong]
    return asked, asked, faults


if __name__ == "__main__":
    main()
