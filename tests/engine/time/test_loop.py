"""The compiled loop against the same functions in plain Python, and like iterations against one at a time."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from service.engine.time.records import BINS
from service.engine.time.samples import ScheduleResult
from tests.conftest import TIMES
from tests.engine.time.random_loads import digests, random_case

ROOT = Path(__file__).resolve().parents[3]
LOADS = 400 * TIMES
SHARE = 200


@pytest.mark.parametrize("first", range(0, LOADS, SHARE))
def test_the_compiled_loop_equals_plain_python_to_the_last_bit(first: int) -> None:
    command = [sys.executable, "-m", "tests.engine.time.random_loads", str(first), str(first + SHARE)]
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE) as plain:
        compiled = digests(first, first + SHARE)
        written, _ = plain.communicate()

    assert plain.returncode == 0
    assert json.loads(written) == compiled
    sent_back = sum(not each.endswith(" 0") for each in compiled if " " in each)
    assert sent_back >= SHARE // 50, "too few loads outgrow the cache"


@pytest.mark.parametrize("seed", range(60))
def test_iterations_taken_for_alike_change_little(seed: int) -> None:
    machine, load, _ = random_case(seed, most_requests=60)
    skipping = machine.simulated(load)
    machine.take_each_step()
    stepping = machine.simulated(load)

    assert isinstance(skipping, ScheduleResult)
    assert isinstance(stepping, ScheduleResult)
    if stepping.preemptions or skipping.preemptions:
        return  # who is sent back, and when, may turn on a millisecond
    assert skipping.end_to_end_s.mean == pytest.approx(stepping.end_to_end_s.mean, rel=0.02)
    assert skipping.ttft_s.mean == pytest.approx(stepping.ttft_s.mean, rel=0.05, abs=0.02)


def test_gaps_between_tokens_are_counted_near_their_length() -> None:
    from service.engine.time.loop import gap_bin  # noqa: PLC0415 - loads the compiler

    draw = random.Random(1)
    gaps = sorted(2 ** draw.uniform(-19, 11) for _ in range(1_000))
    bins = [gap_bin(gap) for gap in gaps]

    assert bins == sorted(bins)
    assert 0 <= bins[0] < bins[-1] < BINS
    for gap, place in zip(gaps, bins, strict=True):
        assert gap_bin(gap * 1.04) > place
