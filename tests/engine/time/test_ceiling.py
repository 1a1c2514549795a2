"""Ceilings on what step times allow: no replica is simulated to carry more, and queues wait as long as Erlang says."""

from dataclasses import replace
from math import exp, factorial, inf

import pytest

from service.engine.inputs import Limits
from service.engine.time.ceiling import decay_of_wait, tail_of_wait
from service.engine.time.demand import Arrivals, Demand, Users
from service.engine.time.estimate import budgets_at_best, fewest_at_best
from service.engine.time.lengths import LogNormalLength, UniformLength
from service.engine.time.replica import Replica, _replica
from service.engine.time.traffic import Traffic

LIMITS = (Limits(ttft_s=0.3), Limits(tpot_s=0.02), Limits(ttft_s=0.3, tpot_s=0.015), Limits(ttft_s=1.0, percentile=99))


def waits_longer(busy_fraction: float, wait: float) -> float:
    """Return the share that waits longer for a server of constant pace.

    Source:
        A. K. Erlang, The theory of probabilities and telephone conversations (1909): P(W <= t) = (1 - rho) x
        sum over k <= t of (-rho (t - k))^k / k! exp(rho (t - k)).
    """
    terms = [
        (busy_fraction * (k - wait)) ** k / factorial(k) * exp(busy_fraction * (wait - k)) for k in range(int(wait) + 1)
    ]
    return 1 - (1 - busy_fraction) * sum(terms)


@pytest.mark.parametrize("busy_fraction", [0.3, 0.5, 0.8, 0.95])
@pytest.mark.parametrize("wait", [1.5, 3.0, 6.0])
def test_the_tail_of_a_wait_is_erlangs(busy_fraction: float, wait: float) -> None:
    tail = tail_of_wait(busy_fraction, decay_of_wait(busy_fraction), wait)

    assert tail == pytest.approx(waits_longer(busy_fraction, wait), rel=0.05, abs=1e-4)


def test_who_has_no_time_to_wait_is_late_and_nobody_waits_for_an_idle_server() -> None:
    decay = decay_of_wait(0.5)

    assert tail_of_wait(0.5, decay, -0.1) == 1.0
    assert tail_of_wait(0.5, decay, 0.0) == 0.5  # Poisson arrivals see time averages
    assert tail_of_wait(0.5, decay, 1e-9) == pytest.approx(0.5)


def served(replica: Replica, traffic: Traffic) -> Replica:
    """Return a replica that serves other requests."""
    return _replica(replica.plan, replace(replica.serving, traffic=traffic), replica.simulations)


def at_best(replica: Replica, wanted: Demand, limits: Limits) -> float:
    budget = replica.serving.settings.max_num_batched_tokens
    return fewest_at_best(replica.serving, (budget,), wanted, limits, inf)


@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("kind", [Users, Arrivals])
@pytest.mark.parametrize(
    "change",
    [
        {},
        {"prefix_cache_hit_fraction": 0.5},
        {"inputs": LogNormalLength(mean_tokens=1_000.0, variation=0.8)},
        {"outputs": UniformLength(shortest_tokens=2, longest_tokens=10)},
        {"burstiness": 3.0},
        {"arrives_read": True},
    ],
    ids=["plain", "prefix cache", "log-normal", "short answers", "even arrivals", "decode pool"],
)
def test_nothing_that_is_carried_lies_above_its_ceiling(
    replica: Replica, kind: type[Demand], limits: Limits, change: dict[str, object]
) -> None:
    changed = served(replica, replace(replica.serving.traffic, **change))  # type: ignore[arg-type]
    most = changed.most(kind, limits).load

    assert most == 0 or at_best(changed, kind.of(most), limits) == 1
    assert most == 0 or at_best(changed, kind.of(5 * most), limits) <= 5


@pytest.mark.parametrize("limits", LIMITS[:3])
def test_four_times_what_is_carried_takes_more_replicas_and_a_limit_that_nobody_keeps_any_number(
    replica: Replica, limits: Limits
) -> None:
    most = replica.most(Arrivals, limits).load

    assert 2 <= at_best(replica, Arrivals(4 * most), limits) <= 4
    assert at_best(replica, Arrivals(0.001), Limits(ttft_s=1e-4)) == inf
    assert at_best(replica, Users(1), Limits(tpot_s=1e-4)) == inf


def test_budgets_that_a_share_overfills_are_left_out(replica: Replica) -> None:
    most = replica.most(Arrivals, Limits(ttft_s=1.0)).load

    assert budgets_at_best(replica.serving, (1, 8_192), Arrivals(most), Limits(ttft_s=1.0)) == (8_192,)
    assert budgets_at_best(replica.serving, (1, 8_192), Arrivals(100 * most), Limits(ttft_s=1.0)) == ()


@pytest.mark.parametrize("limits", [Limits(ttft_s=0.3), Limits(ttft_s=0.3, tpot_s=0.015)])
def test_short_answers_leave_no_time_to_read_more_prompts_than_a_server_reads(replica: Replica, limits: Limits) -> None:
    short = UniformLength(shortest_tokens=2, longest_tokens=10)
    changed = served(replica, replace(replica.serving.traffic, outputs=short))
    most = changed.most(Users, limits).load

    assert most > 0
    assert 10 <= at_best(changed, Users(100 * int(most)), limits) <= 100
