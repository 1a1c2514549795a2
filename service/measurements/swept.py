"""What vLLM's sweep adds to the result of each run: the settings its server was started with.

Sources:
    vLLM 0.33 `benchmarks/sweep/serve.py` (`_update_run_data`: `run_number`, and what the run overrides);
    `benchmarks/sweep/param_sweep.py` (`ParameterSweepItem`: dashes or underscores; a boolean is a switch).
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from service.measurements.arguments import FIELDS
from service.measurements.observed import Observed
from service.measurements.served_by import keep_server

MARK: Final = "run_number"
WORD: Final = re.compile(r"[\w./+-]{1,200}")


def keep_swept(observed: Observed, document: Mapping[str, Any]) -> None:
    """Keep the settings of the server of one run; nothing of a result that no sweep wrote.

    >>> observed = Observed(what="vllm bench serve", kind="benchmark")
    >>> keep_swept(observed, {"run_number": 0, "max-num-seqs": 8, "enforce_eager": True, "seed": 1})
    >>> observed.settings["max_num_seqs"], observed.settings["enforce_eager"]
    (8, True)
    """
    flags = " ".join(_flags(document)) if MARK in document else ""
    if flags:
        keep_server(observed, [(1, f"vllm serve {flags}")])


def _flags(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield the flags of `vllm serve` that a run was started with, as the sweep writes them."""
    for name, value in document.items():
        flag = name.replace("_", "-")
        if name.replace("-", "_") not in FIELDS:
            continue
        if isinstance(value, bool):
            yield f"--{flag}" if value else f"--no-{flag}"
        elif isinstance(value, int | float | str) and WORD.fullmatch(str(value)):
            yield f"--{flag} {value}"
