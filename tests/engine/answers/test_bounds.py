"""What is left out unsimulated would not have won, and what is answered keeps its own limits."""

import random
from dataclasses import replace
from functools import cache
from itertools import islice
from math import inf

import pytest

from benchmarks.random_questions import Question, size_questions
from service.catalog.engine_rules import rules_for
from service.engine.errors import EngineError
from service.engine.fleet.choice import HOPED, deployments
from service.engine.fleet.deployments import plan_for, resolve_size
from service.engine.fleet.estimates import hoped_replicas
from service.engine.fleet.planned import held_of, layouts_of
from service.engine.fleet.questions import SizeQuestion, StatedSettings
from service.engine.fleet.ranking import best
from service.engine.fleet.variants import Planner, roomiest, under_budgets
from service.engine.inputs import Headroom, Layout, Limits, Load, StatedLayout
from service.engine.time.demand import Users
from service.engine.time.estimate import HOPELESS, pace_s
from service.engine.time.replica import timed
from service.performance.timers import KernelTimers
from tests.conftest import TIMES, shared_catalog, shared_timers
from tests.engine.answers.chosen import gpus, told

CATALOG = shared_catalog()
RULES = rules_for("vllm")
SHARES = 4


@cache
def timers() -> KernelTimers:
    return shared_timers()


def question(asked: Question) -> SizeQuestion:
    return SizeQuestion(
        model=CATALOG.model(asked["model"]),
        gpu=CATALOG.gpu(asked["gpu"]),
        load=Load(
            concurrent_requests=asked.get("concurrent_requests"),
            request_rate_per_s=asked.get("request_rate_per_s"),
            input_tokens=asked["input_tokens"],
            output_tokens=asked["output_tokens"],
        ),
        limits=Limits(ttft_s=asked.get("ttft_s"), tpot_s=asked.get("tpot_s")),
        layout=StatedLayout(),
        headroom=Headroom(),
        settings=StatedSettings(),
        rules=RULES,
        timers=timers(),
    )


def some_questions(seed: int, count: int) -> list[Question]:
    """Return questions that the engine does not refuse."""
    kept: list[Question] = []
    drawn = size_questions(seed)
    while len(kept) < count:
        asked = next(drawn)
        try:
            best(deployments(question(asked)), question(asked))
        except EngineError:
            continue
        kept.append(asked)
    return kept


@pytest.mark.parametrize("seed", range(SHARES))
def test_no_deployment_that_was_left_out_would_have_won(seed: int) -> None:
    for asked in some_questions(100 + seed, 6 * TIMES):
        chosen = best(deployments(question(asked)), question(asked))
        everything = best(deployments(question(asked), hope=1e9), question(asked))

        assert chosen.gpus == everything.gpus, asked


def hoped_with_most_room(posed: SizeQuestion, layout: Layout) -> float:
    """Return the replicas that a layout takes at least with the most room, under any token budget."""
    resolved, load = resolve_size(posed), posed.load
    planner = Planner(
        lambda other: plan_for(posed, other, layout),
        lambda other: held_of(other, layout, load.input_tokens, load.output_tokens),
        is_timed=True,
    )
    plans = under_budgets(resolved, roomiest(resolved, planner), planner)
    return min(hoped_replicas(posed, plan, HOPED) for plan in plans)


def test_a_layout_that_the_engines_own_settings_leave_hope_for_is_hoped_for_with_the_most_room() -> None:
    draw, looked_at = random.Random(0), 0
    for asked in islice(size_questions(400), 30):
        posed = question(asked)
        resolved = resolve_size(posed)
        for layout in draw.sample(layouts_of(posed, resolved).layouts, 2):
            if hoped_replicas(posed, plan_for(posed, resolved, layout), HOPED) < inf:
                looked_at += 1
                assert hoped_with_most_room(posed, layout) < inf, (asked, layout)

    assert looked_at > 15


@pytest.mark.parametrize("gpu", ["l40s", "h200"])
@pytest.mark.parametrize("model", ["gpt-oss-20b", "llama-3.1-8b"])
@pytest.mark.parametrize("lengths", [(64, 32), (600, 32), (2_000, 64), (100, 40)], ids=str)
def test_no_pace_is_hopeless_that_a_simulation_would_keep(gpu: str, model: str, lengths: tuple[int, int]) -> None:
    asked = {"model": model, "gpu": gpu, "input_tokens": lengths[0], "output_tokens": lengths[1], "tpot_s": 1}
    posed = question(asked | {"concurrent_requests": 1})
    replica = timed(best(deployments(posed), posed).plan, posed.timers, posed.load)
    assert replica is not None

    for users in (2, 26, 128):
        simulated_s = replica.seen(Users(users)).tpot_s.percentile(50)
        assert pace_s(replica.serving, users) < HOPELESS * simulated_s


def test_short_answers_are_given_no_more_gpus_than_a_stated_pair_takes() -> None:
    asked = {"model": "llama-3.1-8b", "gpu": "h200", "input_tokens": 4_755, "output_tokens": 8, "tpot_s": 0.03}
    posed = question(asked | {"concurrent_requests": 26})
    pair = replace(posed, layout=StatedLayout(tensor_parallel_size=2))

    assert 0 < best(deployments(posed), posed).gpus <= best(deployments(pair), pair).gpus < 9


@pytest.mark.parametrize("seed", range(SHARES))
def test_no_answer_breaks_its_own_limit(seed: int) -> None:
    answered = 0
    for asked in some_questions(200 + seed, 16 * TIMES):
        answer = told(question(asked))
        if not answer["feasible"]:
            continue
        answered += 1
        latency = answer["latency"]
        assert latency is not None
        assert latency.requests_simulated >= 2_000
        if "ttft_s" in asked:
            assert latency.ttft_s.p95 <= asked["ttft_s"], asked
        if "tpot_s" in asked:
            assert latency.tpot_s.p95 <= asked["tpot_s"], asked

    assert answered > 10 * TIMES


@pytest.mark.parametrize("seed", range(2))
def test_more_load_never_needs_fewer_gpus_and_a_looser_limit_never_more(seed: int) -> None:
    draw = random.Random(seed)
    for asked in some_questions(300 + seed, 15 * TIMES):
        name = "concurrent_requests" if "concurrent_requests" in asked else "request_rate_per_s"
        heavier = asked | {name: type(asked[name])(asked[name] * draw.uniform(1.0, 1.3)) + (name[0] == "c")}
        limit = "ttft_s" if "ttft_s" in asked else "tpot_s"
        looser = asked | {limit: asked[limit] * draw.uniform(1.0, 1.2)}

        assert gpus(question(looser)) <= gpus(question(asked)) <= gpus(question(heavier)), asked
