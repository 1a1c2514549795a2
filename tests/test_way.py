"""The way of a question: nothing calls up, few returns, and the guide lists it as it is."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
# Step times lie outside the engine; what they keep, they keep in an object of the engine's.
MOST_CLIMBS = 15
# There were 87 before the engine had rooms. What a layout may hold is asked before it is timed, and it is planned when
# that is its turn, so memory and time take turns; what the engine would refuse to start is asked while settings are
# resolved; fleets are priced as they are met; what costs less than the fewest GPUs is looked for when those are known;
# whether latency is limited is asked of the limits. Which layout is chosen turns on fitted times, and a layout may
# ask one function more than another: those over servers, whether caches are read over ranks; what is broken of a sample
# is asked first where it was measured.
MOST_RETURNS = 82


GUIDE = ROOT / "service" / "README.md"
LOADS = ["users 100", "rate 40"]  # the guide shows the second


@pytest.fixture(scope="module", params=LOADS)
def way(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], Path]:
    """What is printed of the way of a load, and the guide that it is written into."""
    name, _, amount = request.param.partition(" ")
    copy = tmp_path_factory.mktemp("guide") / "README.md"
    copy.write_text(GUIDE.read_text(encoding="utf-8"), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.way", f"--{name}", amount, "--guide", str(copy)],
        check=True,
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    return done.stdout.splitlines(), copy


def test_a_question_never_calls_up(way: tuple[list[str], Path]) -> None:
    printed, _ = way
    *calls, _, summary = printed
    returns, climbs, with_times = re.search(r"(\d+) returns, (\d+) climbs \((\d+) with", summary).groups()  # type: ignore[union-attr]

    assert 0 < int(returns) <= MOST_RETURNS
    assert int(climbs) == 0
    assert int(with_times) <= MOST_CLIMBS
    assert calls[0].split()[:2] == ["answers.size", "size,"]
    assert any(line.split()[:1] == ["time.simulation"] for line in calls)


@pytest.mark.parametrize("way", LOADS[1:], indirect=True)
def test_the_guide_lists_the_way_as_it_is(way: tuple[list[str], Path]) -> None:
    _, copy = way

    assert copy.read_text(encoding="utf-8") == GUIDE.read_text(encoding="utf-8"), "run `make way`"
