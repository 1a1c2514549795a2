"""The compiled estimate of a replica's pace."""

import numpy as np
import pytest

from service.engine.time.pace import pace_s, users_in_flight, work_s
from service.engine.time.records import ATTENDED, CONTEXTS, PACE, REQUESTS, STEPS, TOKENS, Records, new_records

STEP_S = 0.01


def even_steps() -> Records:
    steps = new_records(1, STEPS)
    steps["requests"], steps["contexts"], steps["batch_tokens"], steps["attended"] = (
        REQUESTS,
        CONTEXTS,
        TOKENS,
        ATTENDED,
    )
    steps["step_overhead_s"] = STEP_S
    return steps


def served(*, new_tokens: float, tokens_per_step: float = 1.0) -> Records:
    means = new_records(1, PACE)
    means["input_tokens"], means["output_tokens"], means["new_tokens"] = 1_000, 100, new_tokens
    means["max_num_batched_tokens"], means["tokens_per_step"] = 8_192, tokens_per_step
    means["streams"], means["slots"] = 1, 256
    return means


def test_prompts_that_come_read_leave_the_step_alone() -> None:
    assert pace_s(even_steps(), served(new_tokens=0), 8) == pytest.approx(STEP_S)
    assert pace_s(even_steps(), served(new_tokens=0, tokens_per_step=2), 8) == pytest.approx(STEP_S / 2)


def test_others_prompts_are_work_beside_each_token() -> None:
    paces = [work_s(even_steps(), served(new_tokens=1_000), users) for users in (1, 2, 8, 64)]

    assert paces[0] == pytest.approx(STEP_S)
    assert paces == sorted(paces)
    assert paces[-1] > paces[0]


def test_no_token_waits_longer_than_for_the_fullest_step() -> None:
    short = served(new_tokens=1_000)
    short["output_tokens"] = 4

    assert pace_s(even_steps(), short, 256) == pytest.approx(STEP_S)  # as long as any
    assert work_s(even_steps(), short, 256) > 2 * STEP_S


@pytest.mark.parametrize("rate", [1.0, 5.0, 50.0])
def test_users_in_flight_are_rate_times_stay(rate: float) -> None:
    """Little's law: J. Little, A Proof for the Queuing Formula L = lambda W (1961)."""
    steps, means = even_steps(), served(new_tokens=0)

    assert users_in_flight(steps, means, rate) == int(np.rint(rate * 100 * STEP_S))


def test_no_more_are_in_flight_than_there_are_slots() -> None:
    assert users_in_flight(even_steps(), served(new_tokens=0), 1e6) == 256
