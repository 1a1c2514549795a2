"""Bounds that a simulation does not reach change nothing of it, to the last bit."""

import random
from dataclasses import replace

import pytest

from service.engine.time.batching import BlockPool
from service.engine.time.samples import ScheduleResult
from service.engine.time.shared import Known, Noted, Reach, Shared, Told
from service.engine.time.simulation import Machine
from tests.engine.time.conftest import ROOMY, SETTINGS, timing
from tests.engine.time.random_loads import random_case

USED = Reach(tokens=100, running=8, longest_tokens=160)


def machine_with(tokens: int, seqs: int, pool: BlockPool = ROOMY) -> Machine:
    return Machine(timing(), pool, replace(SETTINGS, max_num_batched_tokens=tokens, max_num_seqs=seqs))


def test_what_is_known_of_an_engine_tells_of_those_with_other_bounds_that_it_does_not_reach() -> None:
    told = []
    for seed in range(1_500):
        machine, load, limits = random_case(seed, most_requests=40)
        draw = random.Random(seed)
        other = Machine(
            machine.timing,
            replace(machine.pool, num_blocks=draw.choice([0.5, 1.0, 4.0]) * machine.pool.num_blocks),
            replace(
                machine.settings,
                max_num_batched_tokens=draw.choice([machine.bounds[0], 16, 512, 2_048, 16_384]),
                max_num_seqs=draw.choice([machine.bounds[1], 4, 16, 256]),
            ),
        )
        seen = machine.simulated(load, limits)
        if not Known(machine, seen.reach).tells_of(other):
            continue
        told.append((machine.bounds, other.bounds))
        of_other = other.simulated(load, limits)
        if isinstance(seen, ScheduleResult) and isinstance(of_other, ScheduleResult):
            of_other = replace(of_other, max_kv_fraction=seen.max_kv_fraction)  # the same blocks of another cache
        assert of_other == seen, seed

    assert sum(one != two for one, two in told) > 100


@pytest.mark.parametrize(
    ("other", "is_told"),
    [
        (machine_with(101, 9), True),
        (machine_with(100, 9), False),  # a step may be full
        (machine_with(101, 8), False),  # and so may the slots
        (machine_with(8_192, 1_024, replace(ROOMY, num_blocks=91.0)), False),  # 9 requests of 10 blocks and an eighth
        (machine_with(8_192, 1_024, replace(ROOMY, num_blocks=92.0)), True),
    ],
)
def test_whoever_may_be_full_is_asked(other: Machine, *, is_told: bool) -> None:
    assert Known(machine_with(2_048, 256), USED).tells_of(other) is is_told


def test_bounds_that_were_reached_tell_of_the_same_ones() -> None:
    full = Known(machine_with(100, 8), USED)

    assert full.tells_of(machine_with(100, 8, replace(ROOMY, num_blocks=1e6)))
    assert not full.tells_of(machine_with(100, 16))
    assert not full.tells_of(machine_with(2_048, 8))


def test_one_simulation_answers_for_all_that_do_not_reach_their_bounds() -> None:
    shared, asked = Shared(), []

    def simulated() -> Told:
        asked.append(1)
        return Told("tpot", USED)

    for engine in (machine_with(2_048, 256), machine_with(512, 16), machine_with(16_384, 1_024)):
        assert shared.told("a load", engine, simulated).verdict == "tpot"
    assert len(asked) == 1
    shared.told("a load", machine_with(512, 8), simulated)
    shared.told("another load", machine_with(512, 16), simulated)
    assert len(asked) == 3


def test_a_verdict_that_was_told_answers_for_others_too() -> None:
    shared = Shared()
    told = shared.tell("a load", machine_with(2_048, 256), Told(None, USED))

    assert shared.told("a load", machine_with(512, 16), lambda: Told("tpot", USED)) is told
    assert shared.told("a load", machine_with(512, 8), lambda: Told("tpot", USED)).verdict == "tpot"


def test_what_simulations_use_is_noted_as_long_as_anybody_notes() -> None:
    shared = Shared()
    shared.note(Reach(9, 9, 9))
    with shared.noting() as outer:
        shared.note(Reach(5, 1, 7))
        with shared.noting() as inner:
            shared.note(Reach(3, 2, 7))
    shared.note(None)

    assert inner.reach == Reach(3, 2, 7)
    assert outer.reach == Reach(5, 2, 7)


def test_what_bounds_change_in_other_ways_stays_unknown() -> None:
    noted = Noted()
    noted.note(None)
    noted.note(USED)

    assert noted.reach is None
    assert not Known(machine_with(2_048, 256), noted.reach).tells_of(machine_with(2_048, 256))
