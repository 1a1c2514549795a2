"""The way of a question: nothing calls up, few returns, and the guide lists it as it is."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
# Step times lie outside the engine; what they keep, they keep in an object of the engine's.
MOST_CLIMBS = 15
# There were 87 before the engine had rooms. A layout is planned when it is its turn to be timed, so memory and time take
# turns; what the engine would refuse to start is asked while settings are resolved.
MOST_RETURNS = 68


def way(*arguments: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.way", *arguments], check=True, capture_output=True, text=True, cwd=ROOT
    )
    return done.stdout.splitlines()


@pytest.mark.parametrize("load", [["--users", "100"], ["--rate", "40"]], ids=lambda load: load[0])
def test_a_question_never_calls_up(load: list[str]) -> None:
    *calls, _, summary = way(*load)
    returns, climbs, with_times = re.search(r"(\d+) returns, (\d+) climbs \((\d+) with", summary).groups()  # type: ignore[union-attr]

    assert 0 < int(returns) <= MOST_RETURNS
    assert int(climbs) == 0
    assert int(with_times) <= MOST_CLIMBS
    assert calls[0].split()[:2] == ["answers.size", "size,"]
    assert any(line.split()[:1] == ["time.simulation"] for line in calls)


def test_the_guide_lists_the_way_as_it_is(tmp_path: Path) -> None:
    guide = ROOT / "service" / "README.md"
    copy = tmp_path / "README.md"
    copy.write_text(guide.read_text(encoding="utf-8"), encoding="utf-8")

    way("--guide", str(copy))

    assert copy.read_text(encoding="utf-8") == guide.read_text(encoding="utf-8"), "run `make way`"
