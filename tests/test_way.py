"""The way of a question: down for memory, down for time, and few climbs back."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
# A layout is planned when it is its turn to be timed, and not before: memory and time take turns. What the engine
# would refuse to start is asked while settings are resolved: of formats, of prefixes, and of each layer's kernel.
# The command plans once more, with the smallest pool that the ledger's error allows.
MOST_CLIMBS = 51


@pytest.mark.parametrize("load", [["--users", "100"], ["--rate", "40"]], ids=lambda load: load[0])
def test_a_question_climbs_back_seldom(load: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.way", *load], check=True, capture_output=True, text=True, cwd=ROOT
    )
    *calls, _, summary = done.stdout.splitlines()
    climbs = re.search(r"(\d+) climbs", summary)

    assert climbs is not None
    assert 0 < int(climbs[1]) <= MOST_CLIMBS
    assert calls[0].split()[:2] == ["answers.size", "size,"]
    assert any(line.split()[:1] == ["time.simulation"] for line in calls)
