"""A referee: nothing that a caller could state beats what is chosen for them.

Every documented layout is asked for one by one, with stated settings; each is the same question with the choice taken
away, so its answer may be as good and never better. A search that leaves something out is told of here: the loops are
those of `benchmarks/decision/`, which ask hundreds of questions.
"""

import random
from collections.abc import Iterator
from dataclasses import replace

import pytest

from benchmarks.decision.enumerated import better_than
from benchmarks.decision.referee import judged, of_memory, recommended, sized, sources_of
from service.catalog.engine_rules import rules_for
from service.engine.errors import EngineError
from service.engine.fleet.aims import NOTHING, Merit, aim_of
from service.engine.fleet.choice import deployments
from service.engine.fleet.deployments import resolve_size
from service.engine.fleet.given_gpus import largest, resolve_capacity
from service.engine.fleet.questions import Objective, SizeQuestion, StatedSettings
from service.engine.fleet.ranking import best
from service.engine.inputs import Headroom, Limits, Load, StatedLayout
from service.questions.size import SizeQuery
from tests.conftest import shared_catalog, shared_timers
from tests.engine.conftest import capacity_of

CATALOG = shared_catalog()
MODELS = (
    "llama-3.1-8b", "llama-3.3-70b", "qwen3-32b", "qwen3-30b-a3b", "gpt-oss-120b", "gpt-oss-20b", "deepseek-v3",
    "kimi-k2", "qwen3-235b-a22b", "mixtral-8x7b-v0.1", "gemma-3-27b-it", "phi-4", "qwen3.6-27b", "glm-4.5-air",
)  # fmt: skip
GPUS = ("h100", "h200", "b200", "a100-sxm-80gb", "l40s", "l4", "rtx-4090", "mi300x")
SHARES = 6


def questions(seed: int, count: int) -> Iterator[SizeQuestion]:
    """Yield random questions that the engine does not refuse."""
    draw = random.Random(seed)
    while count:
        users = round(2 ** draw.uniform(0, 11))
        prompt, answer = round(2 ** draw.uniform(7, 14.5)), round(2 ** draw.uniform(5, 10.5))
        question = SizeQuestion(
            model=CATALOG.model(draw.choice(MODELS)),
            gpu=CATALOG.gpu(draw.choice(GPUS)),
            load=Load(concurrent_requests=users, request_rate_per_s=None, input_tokens=prompt, output_tokens=answer),
            limits=Limits(),
            layout=StatedLayout(),
            headroom=Headroom(),
            settings=StatedSettings(),
            rules=rules_for("vllm"),
            offers=CATALOG.offers,
        )
        try:
            resolve_size(question)
        except EngineError:
            continue
        count -= 1
        yield question


def merit(question: SizeQuestion, objective: Objective) -> Merit:
    """Return GPUs and price, or price and GPUs, of the answer; the worst there is where nothing carries the load."""
    try:
        chosen = best(deployments(question, objective), question, objective)
    except EngineError:
        return NOTHING
    if not chosen.is_feasible:
        return NOTHING
    return aim_of(objective, question.gpu, question.offers).merit(chosen.layout, chosen.replicas)


def test_nothing_stated_is_smaller_or_cheaper() -> None:
    """`make decision` asks 300 such questions; every layout, with every token budget, is stated one by one."""
    sources = sources_of(CATALOG, None)
    verdicts = judged(of_memory(1, CATALOG), lambda asked: sized(asked, sources), 6)

    assert sum(verdict.stated for verdict in verdicts) > 300
    assert [verdict for verdict in verdicts if verdict.better] == []


def test_a_bound_is_that_of_the_best_token_budget() -> None:
    # Found by `make decision` under another seed: what has the most room reads prompts in the smallest pieces. At this
    # rate those carry it, of 512 tokens, and pieces of the default's size need two GPUs.
    asked = {"model": "mixtral-8x7b", "gpu": "h200", "request_rate_per_s": 9.5, "input_tokens": 739}
    limited = {**asked, "output_tokens": 129, "ttft_s": 0.5, "tpot_s": 0.03}

    assert sized(limited, sources_of(CATALOG, shared_timers())) is None  # one GPU, which nothing stated beats


def test_fewest_tokens_a_step_are_not_the_roomiest_where_each_request_takes_one() -> None:
    # Found by `make decision` under another seed: 256 tokens let 512 requests run on two copies, 512 let 992.
    asked = {"model": "kimi-k2.7-code", "gpu": "l40s", "concurrent_requests": 896, "input_tokens": 174}
    question = SizeQuery(**asked, output_tokens=53, latency="none").looked_up(sources_of(CATALOG, None))

    assert best(deployments(question), question).gpus == 16


def test_copies_whose_room_only_a_plan_tells_are_not_ruled_out() -> None:
    # Found by `make decision` with another engine: copies of the attention on SGLang, whose caches no ceiling knows,
    # were bounded as if every one of them read a prompt whenever one does. Four GPUs were told.
    asked = {"model": "gpt-oss-120b", "gpu": "l40s", "request_rate_per_s": 0.13, "input_tokens": 540}
    limited = {**asked, "output_tokens": 326, "ttft_s": 1, "tpot_s": 0.03, "engine": "sglang"}

    result = SizeQuery(**limited, levers="none").answer(sources_of(CATALOG, shared_timers())).result

    assert (result.gpus, result.layout.data_parallel_size) == (3, 3)


@pytest.mark.parametrize("objective", ["cost", "gpus"])
def test_nor_than_the_first_option_of_a_list(objective: str) -> None:
    sources = sources_of(CATALOG, None)
    asked = {"concurrent_requests": 48, "input_tokens": 3_000, "output_tokens": 400, "gpus": ["h100", "l40s", "mi300x"]}
    for model in ("qwen3-32b", "gpt-oss-120b", "mixtral-8x7b-v0.1"):
        verdict = recommended({"model": model, **asked}, sources, objective)

        assert verdict is None or verdict.better is None, verdict


def test_nor_where_limits_on_latency_hold() -> None:
    sources = sources_of(CATALOG, shared_timers())
    asked = {
        "model": "llama-3.1-8b", "gpu": "l40s", "request_rate_per_s": 12, "input_tokens": 1_200, "output_tokens": 150,
        "ttft_s": 1, "tpot_s": 0.05,
    }  # fmt: skip
    verdict = sized(asked, sources, most_shapes=4)

    assert verdict is not None
    assert verdict.stated >= 50
    assert verdict.better is None


def test_the_referee_sees_what_is_too_large() -> None:
    question = SizeQuery(
        model="qwen3-32b", gpu="h100", concurrent_requests=64, input_tokens=4_000, output_tokens=500, latency="none"
    ).looked_up(sources_of(CATALOG, None))
    gpus, price = merit(question, "gpus")

    too_many, _ = better_than(question, (gpus + 1, price), by_price=False)
    too_dear, _ = better_than(question, (price * 1.5, gpus), by_price=True)
    assert too_many is not None
    assert too_dear is not None
    assert too_many.stated == (gpus, price)


@pytest.mark.parametrize("seed", range(SHARES))
def test_more_gpus_never_carry_fewer_requests(seed: int) -> None:
    for question in questions(200 + seed, 3):
        carried: list[int] = []
        for gpus in range(1, 17):
            asked = capacity_of(question, gpus)
            most = largest(asked, resolve_capacity(asked))
            carried.append(most.replicas * most.capacity.max_concurrent_requests)

        assert carried == sorted(carried), (question.model.id, question.gpu.id, carried)


@pytest.mark.parametrize("seed", range(SHARES))
def test_what_gpus_carry_at_most_is_what_needs_as_many(seed: int) -> None:
    for question in questions(300 + seed, 6):
        asked = capacity_of(question, 8)
        most = largest(asked, resolve_capacity(asked))
        users = most.replicas * most.capacity.max_concurrent_requests
        if not users:
            continue

        def needed(count: int, question: SizeQuestion = question) -> float:
            return merit(replace(question, load=replace(question.load, concurrent_requests=count)), "gpus")[0]

        assert needed(users) <= 8 < needed(users + 1), (question.model.id, question.gpu.id, users)
