"""A referee: nothing that a caller could state beats what is chosen for them.

Every legal layout, and layouts with stated settings, are asked for one by one; each is the same question with a part of
the choice taken away, so its answer may be as good and never better. A search that leaves something out is told of here.
"""

import random
from collections.abc import Iterator
from dataclasses import replace

import pytest

from service.catalog.engine_rules import rules_for
from service.catalog.keeper import seeded_snapshot
from service.engine.errors import EngineError
from service.engine.fleet.aims import NOTHING, Merit, aim_of
from service.engine.fleet.choice import deployments
from service.engine.fleet.deployments import resolve_size
from service.engine.fleet.given_gpus import largest, resolve_capacity
from service.engine.fleet.planned import legal_layouts
from service.engine.fleet.questions import Objective, SizeQuestion, StatedSettings
from service.engine.fleet.ranking import best
from service.engine.inputs import Headroom, Layout, Limits, Load, StatedLayout
from service.performance.timers import KernelTimers
from tests.engine.conftest import capacity_of

CATALOG = seeded_snapshot()
MODELS = (
    "llama-3.1-8b", "llama-3.3-70b", "qwen3-32b", "qwen3-30b-a3b", "gpt-oss-120b", "gpt-oss-20b", "deepseek-v3",
    "kimi-k2", "qwen3-235b-a22b", "mixtral-8x7b-v0.1", "gemma-3-27b-it", "phi-4", "qwen3.6-27b", "glm-4.5-air",
)  # fmt: skip
GPUS = ("h100", "h200", "b200", "a100-sxm-80gb", "l40s", "l4", "rtx-4090", "mi300x")
MOST_GPUS = 24  # of a layout that is asked for alone
SHARES = 6


def stated(layout: Layout) -> StatedLayout:
    return StatedLayout(
        tensor_parallel_size=layout.tensor_parallel_size,
        pipeline_parallel_size=layout.pipeline_parallel_size,
        data_parallel_size=layout.data_parallel_size,
        expert_parallel=layout.expert_parallel,
        decode_context_parallel_size=layout.decode_context_parallel_size,
    )


def questions(seed: int, count: int, *, has_limits: bool) -> Iterator[SizeQuestion]:
    """Yield random questions that the engine does not refuse."""
    draw, timers = random.Random(seed), KernelTimers()
    while count:
        users = round(2 ** draw.uniform(0, 11))
        prompt, answer = round(2 ** draw.uniform(7, 14.5)), round(2 ** draw.uniform(5, 10.5))
        limits = Limits(ttft_s=2 ** draw.uniform(-1, 3), tpot_s=2 ** draw.uniform(-6, -3)) if has_limits else Limits()
        question = SizeQuestion(
            model=CATALOG.model(draw.choice(MODELS)),
            gpu=CATALOG.gpu(draw.choice(GPUS)),
            load=Load(concurrent_requests=users, request_rate_per_s=None, input_tokens=prompt, output_tokens=answer),
            limits=limits,
            layout=StatedLayout(),
            headroom=Headroom(),
            settings=StatedSettings(),
            rules=rules_for("vllm"),
            offers=CATALOG.offers,
            timers=timers if has_limits else None,
        )
        try:
            resolve_size(question)
        except EngineError:
            continue
        count -= 1
        yield question


def variants(question: SizeQuestion, draw: random.Random, most_layouts: int) -> Iterator[SizeQuestion]:
    """Yield the question with each layout stated, and with settings stated."""
    layouts = [
        layout
        for layout in legal_layouts(resolve_size(question), StatedLayout()).layouts
        if layout.gpus_per_replica <= MOST_GPUS
    ]
    for layout in draw.sample(layouts, min(most_layouts, len(layouts))):
        yield replace(question, layout=stated(layout))
    for seqs in (8, 64, round(2 ** draw.uniform(0, 10)), 1_024):
        yield replace(question, settings=StatedSettings(max_num_seqs=seqs))
    for tokens in (2_048, 4_096, 8_192):
        yield replace(question, settings=StatedSettings(max_num_batched_tokens=tokens))


def merit(question: SizeQuestion, objective: Objective) -> Merit:
    """Return GPUs and price, or price and GPUs, of the answer; the worst there is where nothing carries the load."""
    try:
        chosen = best(deployments(question, objective), question, objective)
    except EngineError:
        return NOTHING
    if not chosen.is_feasible:
        return NOTHING
    return aim_of(objective, question.gpu, question.offers).merit(chosen.layout, chosen.replicas)


@pytest.mark.parametrize("seed", range(SHARES))
def test_no_stated_layout_or_setting_is_smaller_or_cheaper(seed: int) -> None:
    draw = random.Random(seed)
    for question in questions(seed, 12, has_limits=False):
        for objective in ("gpus", "cost"):
            chosen = merit(question, objective)
            for variant in variants(question, draw, most_layouts=60):
                assert merit(variant, objective) >= chosen, (question.model.id, question.gpu.id, question.load, variant)


@pytest.mark.parametrize("seed", range(2))
def test_nor_where_limits_on_latency_hold(seed: int) -> None:
    draw = random.Random(seed)
    for question in questions(100 + seed, 3, has_limits=True):
        chosen = merit(question, "gpus")
        for variant in variants(question, draw, most_layouts=8):
            assert merit(variant, "gpus") >= chosen, (question.model.id, question.gpu.id, question.load, variant)


@pytest.mark.parametrize("seed", range(SHARES))
def test_more_gpus_never_carry_fewer_requests(seed: int) -> None:
    for question in questions(200 + seed, 12, has_limits=False):
        carried: list[int] = []
        for gpus in range(1, 17):
            asked = capacity_of(question, gpus)
            most = largest(asked, resolve_capacity(asked))
            carried.append(most.replicas * most.capacity.max_concurrent_requests)

        assert carried == sorted(carried), (question.model.id, question.gpu.id, carried)


@pytest.mark.parametrize("seed", range(SHARES))
def test_what_gpus_carry_at_most_is_what_needs_as_many(seed: int) -> None:
    for question in questions(300 + seed, 12, has_limits=False):
        asked = capacity_of(question, 8)
        most = largest(asked, resolve_capacity(asked))
        users = most.replicas * most.capacity.max_concurrent_requests
        if not users:
            continue

        def needed(count: int, question: SizeQuestion = question) -> float:
            return merit(replace(question, load=replace(question.load, concurrent_requests=count)), "gpus")[0]

        assert needed(users) <= 8 < needed(users + 1), (question.model.id, question.gpu.id, users)
