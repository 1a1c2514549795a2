"""What SGLang's start-up logs say in their own way: what was free before weights were loaded."""

import re
from typing import Final

from service.calibration.logs.released import sglang_of_day
from service.calibration.logs.rows import EngineLog, Row, remarks

FREE_BEFORE_LOAD: Final = re.compile(r"begin\.? avail mem=([\d.]+) GB")


def unstated_version(row: Row) -> str | None:
    """Return the newest version of the day, where none is stated."""
    return sglang_of_day(str(row.get("date") or ""))


def free_before_load_gib(row: Row) -> float | None:
    """Return the memory that was free before weights were loaded."""
    printed = FREE_BEFORE_LOAD.search(remarks(row))
    return None if printed is None else float(printed[1])


LOG: Final = EngineLog(
    engine="sglang",
    unstated_version=unstated_version,
    deals_within_ranks=True,
    launches_prompts=True,
    shortens_contexts=True,  # 0.5.23 `managers/scheduler.py` (`max_req_len`)
)
