"""What TensorRT-LLM's start-up logs say in their own way: its engine, execution context and buffers."""

import re
from typing import Final

from service.calibration.logs.rows import EngineLog, Row

# Upload times at pypi.org/project/tensorrt-llm of versions with times of their own; MLPerf ran release candidates.
FIRST_DAYS: Final = (("2026-03-12", "1.2"), ("2025-06-25", "1.0"))
FIRST_DAY_OF_0_20: Final = "2025-06-01"
ENGINE_SIZE: Final = re.compile(r"Loaded engine size: (\d+) MiB")
EXECUTION_CONTEXT: Final = re.compile(r"([\d.]+) MiB for execution context")
BUFFERS: Final = re.compile(r"([\d.]+) GB (?:for )?(?:runtime buffers|decoder)")
MIB_PER_GIB: Final = 1024


def unstated_version(row: Row) -> str | None:
    """Return a version of the years before 0.20 where the date is of them."""
    return "0.14" if str(row.get("date")) < FIRST_DAY_OF_0_20 else None


def newest_of_day(day: str) -> str | None:
    """Return the newest version of a day or a month; None before any, or of a year alone.

    >>> newest_of_day("2025-09"), newest_of_day("2026-04"), newest_of_day("2024")
    ('1.0', '1.2', None)
    """
    return next((version for first, version in FIRST_DAYS if len(day) > len("2026") and day >= first), None)


def engine_gib(row: Row) -> float | None:
    """Return the size of the engine that was loaded."""
    printed = ENGINE_SIZE.search(_quote(row))
    return None if printed is None else float(printed[1]) / MIB_PER_GIB


def execution_context_gib(row: Row) -> float | None:
    """Return what the execution context took."""
    printed = EXECUTION_CONTEXT.search(_quote(row))
    return None if printed is None else float(printed[1]) / MIB_PER_GIB


def buffers_gib(row: Row) -> tuple[float, ...]:
    """Return what runtime and decoder buffers took, each."""
    return tuple(float(printed) for printed in BUFFERS.findall(_quote(row)))


def _quote(row: Row) -> str:
    return str(row.get("quote") or "")


LOG: Final = EngineLog(
    engine="tensorrt-llm",
    unstated_version=unstated_version,
    newest_of_day=newest_of_day,
    keeps_fp8_cache=True,
    last_built_version="0.20",
    is_fitted_by_version=True,
    # NVIDIA's harness of MLPerf v5.1 and v6.0: `traffic_distribution_policy`, "load_balancing" if not set.
    is_dealt_evenly=True,
    # closed/NVIDIA/configs/*/Server/deepseek-r1.py of both: `adp_balancing_timeout_iters`. TensorRT-LLM
    # `_torch/pyexecutor/py_executor.py` (`_balance_adp_requests`) counts on, whether or not a prompt waits.
    reads_together_every=9,
)
