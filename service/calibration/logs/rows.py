"""Rows of published measurements, as their files state them."""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from service.engine import EngineName

Row = Mapping[str, Any]
# Further cases of a page, each measured twice: without anything of what the page advises, then with all of it.
FURTHER: Final = re.compile(r"(Other Benchmark Cases > .*?)\. Requests .*?Parameters: (.*?)\. Hardware")
BASELINE: Final = "its page ran this case first without the parameters that the row states, on an engine of its own"


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """A row that cannot be compared, and why."""

    case: str
    reason: str


def _nobody_s(_day: str) -> str | None:
    """Return no version: nobody lists them by day."""
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineLog:
    """What one engine's logs say in their own way, and what published benchmarks tell this engine."""

    engine: EngineName
    unstated_version: Callable[[Row], str | None]  # where none is stated; None where nothing else tells it
    # InferenceX serves it with this budget, whatever the GPU; None: with its own.
    inferencex_batched_tokens: int | None = None
    # Caches beside quantized weights are fp8 wherever it is measured; else where InferenceX asks a Blackwell GPU.
    keeps_fp8_cache: bool = False
    # The last version that serves engines built ahead: their kernels and their executor are its own.
    last_built_version: str | None = None
    # The newest version of a day, for served runs whose sources state that alone; None where nobody lists them.
    newest_of_day: Callable[[str], str | None] = _nobody_s
    # Ranks that attend alone are counted among those of tensor parallelism, and share what is stated for all.
    deals_within_ranks: bool = False
    # MLPerf's harness for it hands each request to the server with the fewest under way.
    is_dealt_evenly: bool = False
    # Ranks of DeepSeek-R1 that attend alone read prompts there in one of so many iterations.
    reads_together_every: int = 1
    # Kernels of prompts are launched one by one, not as graphs: whoever is alone waits for that more than for kernels.
    launches_prompts: bool = False
    # It starts with a context longer than its pool, and refuses single requests.
    shortens_contexts: bool = False
    # Its versions differ in their kernels by more than runs of one version do.
    is_fitted_by_version: bool = False


class UnstatedError(ValueError):
    """The source did not state what a comparison needs."""


def rows_of(path: Path) -> list[Row]:
    """Return the rows of a file, one JSON object a line."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def rows_at_hand(folder: Path, names: Iterable[str]) -> list[Row]:
    """Return the rows of those files that a folder has."""
    return [row for name in names if (folder / name).is_file() for row in rows_of(folder / name)]


def without_copies(rows: Iterable[Row]) -> tuple[list[Row], list[Skipped]]:
    """Return rows whose figures are their own, and those that share every figure with a row of another GPU.

    Two GPUs are never as fast to the last digit: one of the rows was copied, and nobody says which. Nor is one server
    twice as fast with the same parameters: one of these rows ran without them.
    """
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(json.dumps(row.get("reported"), sort_keys=True), []).append(row)
    own: list[Row] = []
    copied: list[Skipped] = []
    baselines = _baselines([row for alike in groups.values() for row in alike])
    for alike in groups.values():
        if len({row.get("gpu") for row in alike}) == 1:
            own += [row for row in alike if row["id"] not in baselines]
            copied += [Skipped(case=str(row["id"]), reason=BASELINE) for row in alike if row["id"] in baselines]
        else:
            copied += [Skipped(case=str(row["id"]), reason="its figures are those of another GPU too") for row in alike]
    return own, copied


def _baselines(rows: Iterable[Row]) -> set[str]:
    """Return the first of two rows whose page states one case with the same parameters for both.

    Where a page says "Baseline Backend Parameters: N/A", a row has those of the block before it, or behind it.

    Source:
        gpustack 47277d7 docs/performance-lab/glm-5.2/h200.md:1117: the baseline is "vLLM without any optimizations".
    """
    cases: dict[tuple[str, ...], list[str]] = {}
    for row in rows:
        case = FURTHER.search(remarks(row))
        if case is not None:
            cases.setdefault((str(row.get("source_url")), *case.groups()), []).append(str(row["id"]))
    return {min(names) for names in cases.values() if len(names) > 1}


def remarks(row: Row) -> str:
    """Return the quoted log and the notes to it, as one text."""
    return f"{row.get('quote')} {row.get('notes')}"


def gib_of(row: Row, name: str) -> float | None:
    """Return a figure printed in GiB; None where there is none, or nothing."""
    stated = row.get(name)
    return float(stated) if stated else None
