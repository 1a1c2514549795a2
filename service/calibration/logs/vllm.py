"""What vLLM's start-up logs say in their own way: which version speaks, and what its graphs are estimated to take."""

import re
from typing import Final

from service.calibration.logs.released import vllm_of_day
from service.calibration.logs.rows import EngineLog, Row, remarks

FIRST_GENERATION_VERSION: Final = "0.6"
# The newest release on some days, for sources that give a date instead of a version.
# Source: `uv pip compile --exclude-newer DAY` for vllm, 2026-11-21.
NEWEST_ON_DAY: Final = (
    ("20261101", "0.32.0"),
    ("20260829", "0.28.0"),
    ("20260816", "0.27.1"),
    ("20260801", "0.26.0"),
    ("20260601", "0.22.0"),
    ("20260510", "0.20.2"),
    ("20260301", "0.16.0"),
    ("20250722", "0.9.2"),
)
DAY: Final = re.compile(r"20\d{6}")
PRINTED_ESTIMATE: Final = re.compile(r"([\d.]+) GiB \(estimated\)|CUDA graph estimate ([\d.]+) GiB")


def unstated_version(row: Row) -> str | None:
    """Return the version where none is stated: the first generation's, or the newest of the day."""
    if row.get("engine_generation") == "V0":
        return FIRST_GENERATION_VERSION
    stated = str(row.get("engine_version") or "").replace("-", "")
    day = (DAY.search(stated) or [str(row.get("date") or "").replace("-", "")])[0]
    day = day.ljust(len("20260101"), "9") if day else day  # a month stands for its last day
    return next((version for first_day, version in NEWEST_ON_DAY if day and day >= first_day), None)


def graph_estimate_gib(row: Row) -> float | None:
    """Return the engine's own estimate of its graphs, as printed beside the truth."""
    printed = PRINTED_ESTIMATE.search(remarks(row))
    return None if printed is None else float(printed[1] or printed[2])


LOG: Final = EngineLog(
    engine="vllm",
    unstated_version=unstated_version,
    inferencex_batched_tokens=8_192,
    newest_of_day=vllm_of_day,
)
