"""Laws of sizing with time: they hold for every model, GPU and load."""

from dataclasses import replace
from itertools import pairwise
from math import ceil
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from service.catalog.engine_rules import rules_for
from service.engine.answers.capacity import capacity
from service.engine.answers.size import size
from service.engine.errors import EngineError
from service.engine.fleet.deployments import Deployment
from service.engine.fleet.questions import CapacityQuestion, SizeQuestion, StatedSettings
from service.engine.inputs import Gpu, Headroom, Limits, Load, StatedLayout
from service.engine.time.grid import users_upto
from tests.conftest import TIMES, shared_catalog, shared_timers
from tests.engine.answers.chosen import chosen, gpus, told

CATALOG = shared_catalog()
TIMERS = shared_timers()
RULES = rules_for("vllm")
MODELS = [
    "llama-3.1-8b-instruct",
    "qwen3-32b",
    "gpt-oss-20b",
    "qwen3-30b-a3b",
    "gemma-3-27b-it",
    "llama-3.3-70b-instruct",
]
GPUS = ["h100-sxm-80gb", "l40s", "a10g", "mi300x", "l4", "rtx-5090"]
PROBED = settings(
    max_examples=12 * TIMES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    phases=[Phase.explicit, Phase.generate],
)
SIZES = [200, 2_000]  # few lengths, so that many loads are asked of the same replicas


def asked(model: str, gpu: str | Gpu, load: Load, limits: Limits, layout: StatedLayout | None = None) -> SizeQuestion:
    return SizeQuestion(
        model=CATALOG.model(model),
        gpu=CATALOG.gpu(gpu) if isinstance(gpu, str) else gpu,
        load=load,
        limits=limits,
        layout=layout or StatedLayout(),
        headroom=Headroom(),
        settings=StatedSettings(),
        rules=RULES,
        timers=TIMERS,
    )


def users(count: int, input_tokens: int = 1_000, output_tokens: int = 200) -> Load:
    return Load(
        concurrent_requests=count, request_rate_per_s=None, input_tokens=input_tokens, output_tokens=output_tokens
    )


def arrivals(rate: float, input_tokens: int = 1_000, output_tokens: int = 200) -> Load:
    return Load(
        concurrent_requests=None, request_rate_per_s=rate, input_tokens=input_tokens, output_tokens=output_tokens
    )


loads = st.one_of(
    st.builds(users, st.integers(1, 2_000), st.sampled_from(SIZES)),
    st.builds(arrivals, st.floats(0.05, 60), st.sampled_from(SIZES)),
)
limits = st.builds(
    Limits,
    ttft_s=st.sampled_from([None, 0.3, 1.0, 5.0]),
    tpot_s=st.sampled_from([None, 0.02, 0.05, 0.2]),
    percentile=st.sampled_from([50.0, 95.0]),
)
questions = st.builds(asked, st.sampled_from(MODELS), st.sampled_from(GPUS), loads, limits)


def scaled(load: Load, factor: float) -> Load:
    if load.concurrent_requests is not None:
        return replace(load, concurrent_requests=round(load.concurrent_requests * factor))
    return replace(load, request_rate_per_s=(load.request_rate_per_s or 0) * factor)


def looser(limit: float | None, factor: float) -> float | None:
    return None if limit is None else limit * factor


@PROBED
@given(questions, st.floats(1, 10))
def test_more_load_never_needs_fewer_gpus(question: SizeQuestion, factor: float) -> None:
    more = replace(question, load=scaled(question.load, factor))

    assert gpus(more) >= gpus(question)


def test_a_limit_below_the_time_of_a_mean_prompt_is_kept_by_shorter_ones() -> None:
    # An estimate leaves no room for arrivals there, and half of the prompts are shorter than the mean.
    question = asked("qwen3-32b", "rtx-5090", arrivals(50, 2_000), Limits(ttft_s=0.32, tpot_s=0.05, percentile=50.0))
    more = replace(question, load=scaled(question.load, 10))

    assert float("inf") > gpus(more) >= gpus(question)


@PROBED
@given(questions, st.floats(1, 10))
def test_a_looser_limit_never_needs_more_gpus(question: SizeQuestion, factor: float) -> None:
    asked_limits = question.limits
    relaxed = Limits(
        ttft_s=looser(asked_limits.ttft_s, factor),
        tpot_s=looser(asked_limits.tpot_s, factor),
        percentile=asked_limits.percentile,
    )

    assert gpus(replace(question, limits=relaxed)) <= gpus(question)


# Engines choose larger batches on GPUs with more memory, so the law fixes the budget of a batch.
FIXED = StatedSettings(max_num_batched_tokens=8_192)
# Two loads that differ a little meet by other chances; rates are searched in steps of 2 %.
NOISE = 0.9


def faster(question: SizeQuestion, figure: str, factor: float) -> tuple[Deployment, Deployment]:
    """Return the deployments on a made-up GPU and of a better one, on the same layout."""
    # By the roofline: kernels that were measured know no other bandwidth.
    slow = replace(question.gpu, id="made-up-slow", measured_as=None)
    value = getattr(slow, figure)
    better = replace(slow, id="made-up-fast", **{figure: type(value)(value * factor)})
    found = chosen(replace(question, gpu=slow, settings=FIXED))
    assume(found.is_feasible)
    same = StatedLayout(
        tensor_parallel_size=found.layout.tensor_parallel_size,
        pipeline_parallel_size=found.layout.pipeline_parallel_size,
        data_parallel_size=found.layout.data_parallel_size,
        expert_parallel=found.layout.expert_parallel,
    )
    return found, chosen(replace(question, gpu=better, layout=same, settings=FIXED))


figures = st.sampled_from(["memory_bytes", "memory_bandwidth_bytes_per_s"])
factors = st.floats(1.05, 3)
user_questions = st.builds(
    asked,
    st.sampled_from(MODELS),
    st.sampled_from(GPUS),
    st.builds(users, st.integers(1, 2_000), st.sampled_from(SIZES)),
    limits,
)


@PROBED
@given(user_questions, figures, factors)
def test_more_memory_or_bandwidth_never_needs_more_gpus_for_users(
    question: SizeQuestion, figure: str, factor: float
) -> None:
    # Users who decode faster send more prompts, so more bandwidth may keep a limit on TTFT for fewer of them.
    ttft_s = question.limits.ttft_s if figure == "memory_bytes" else None
    slow, fast = faster(replace(question, limits=replace(question.limits, ttft_s=ttft_s)), figure, factor)

    # Shares are asked for at the next number of users that searches visit, or at all slots where those are fewer: with
    # more memory there may be more of them, and the share that is asked for is up to one step larger.
    share = ceil((question.load.concurrent_requests or 1) / slow.replicas)
    assert fast.is_feasible
    assert fast.gpus <= ceil(slow.replicas * users_upto(share) / share) * slow.layout.gpus_per_replica


@PROBED
@given(
    st.builds(
        asked,
        st.sampled_from(MODELS),
        st.sampled_from(GPUS),
        st.builds(arrivals, st.floats(0.05, 60), st.sampled_from(SIZES)),
        limits,
    ),
    figures,
    factors,
)
def test_more_memory_or_bandwidth_never_needs_more_gpus_for_arrivals(
    question: SizeQuestion, figure: str, factor: float
) -> None:
    slow, fast = faster(question, figure, factor)

    assert fast.is_feasible
    assert fast.replicas <= ceil(slow.replicas / NOISE)


@settings(PROBED, max_examples=10 * TIMES)  # each asks for every layout of so many GPUs
@given(questions)
def test_capacity_carries_what_size_returned_and_one_replica_less_does_not(question: SizeQuestion) -> None:
    found = chosen(question)
    assume(found.is_feasible)
    rate = question.load.request_rate_per_s

    def carried(gpu_count: int) -> float:
        answer = capacity(
            CapacityQuestion(
                model=question.model,
                gpu=question.gpu,
                gpu_count=gpu_count,
                load=question.load,
                input_tokens=question.load.input_tokens,
                output_tokens=question.load.output_tokens,
                limits=question.limits,
                layout=StatedLayout(),
                settings=question.settings,
                rules=RULES,
                timers=TIMERS,
            )
        )
        return answer.max_concurrent_requests if rate is None else (answer.requests_per_s or 0.0)

    wanted = rate if rate is not None else (question.load.concurrent_requests or 1)
    assert carried(found.gpus) >= wanted * (1 - 1e-9)
    if found.replicas > 1:
        try:
            less = carried(found.gpus - found.layout.gpus_per_replica)
        except EngineError:
            return  # no layout is that small
        assert less < wanted


@PROBED
@given(questions)
def test_an_answer_keeps_the_limits_it_was_asked_for(question: SizeQuestion) -> None:
    assume(question.limits.percentile == 95)
    answer = told(question)
    assume(answer["feasible"])
    latency = answer["latency"]

    assert latency is not None
    # A load between two that were searched may miss by the noise of a sample of 64.
    if question.limits.tpot_s is not None:
        assert latency.tpot_s.p95 <= 1.05 * question.limits.tpot_s
    if question.limits.ttft_s is not None:
        assert latency.ttft_s.p95 <= 1.25 * question.limits.ttft_s


@pytest.mark.parametrize(
    "question",
    [
        asked("llama-3.3-70b-instruct", "h100-sxm-80gb", arrivals(17.0, 2_000), Limits(tpot_s=0.05)),
        asked("gemma-3-27b-it", "h200-sxm-141gb", arrivals(50.0, 2_000), Limits(ttft_s=5.0, tpot_s=0.05)),
    ],
    ids=lambda question: question.model.id,
)
def test_pace_is_kept_by_smaller_batches_and_every_lever_saves_what_it_says(question: SizeQuestion) -> None:
    tokens = 8_192  # short steps would keep the pace as well
    question = replace(question, settings=StatedSettings(max_num_batched_tokens=tokens))
    found = size(question)
    noted = next(note for note in found.assumptions if note.name == "max_num_seqs")
    cap = noted.value
    assert isinstance(cap, int)
    assert noted.origin == "chosen"
    assert "the engine's own cap is 1024" in (noted.source or "")
    assert ("--max-num-seqs", str(cap)) in pairwise(found.engine_args)
    assert found.binding_constraint in ("tpot", "ttft")  # what a full batch keeps waiting may break the other limit
    assert (
        size(replace(question, settings=StatedSettings(max_num_batched_tokens=tokens, max_num_seqs=cap))).gpus
        == found.gpus
    )
    assert (
        size(replace(question, settings=StatedSettings(max_num_batched_tokens=tokens, max_num_seqs=1_024))).gpus
        > found.gpus
    )
    carried = capacity(
        CapacityQuestion(
            model=question.model,
            gpu=question.gpu,
            gpu_count=found.gpus,
            load=replace(question.load, request_rate_per_s=None),
            input_tokens=question.load.input_tokens,
            output_tokens=question.load.output_tokens,
            limits=question.limits,
            layout=StatedLayout(tensor_parallel_size=found.layout.tensor_parallel_size, pipeline_parallel_size=1),
            settings=question.settings,
            rules=RULES,
            timers=TIMERS,
        )
    )
    assert carried.requests_per_s is not None
    assert carried.requests_per_s >= (question.load.request_rate_per_s or 0)
    assert carried.binding_constraint == "tpot"
    assert found.levers

    for lever in found.levers:
        change: dict[str, Any] = {**lever.change}
        of_load = {name: change.pop(name) for name in ("input_tokens", "prefix_cache_hit_fraction") if name in change}
        changed = replace(
            question, settings=replace(question.settings, **change), load=replace(question.load, **of_load)
        )
        again = size(changed)

        assert again.gpus == lever.gpus == found.gpus - lever.saves_gpus
        assert again.latency is not None
        assert question.limits.tpot_s is not None
        assert again.latency.tpot_s.p95 <= 1.25 * question.limits.tpot_s


@PROBED
@given(st.sampled_from(MODELS), st.sampled_from(GPUS), st.floats(0.05, 300), st.sampled_from([200, 2_000]))
def test_no_limit_never_needs_more_gpus_than_a_loose_one(model: str, gpu: str, rate: float, output_tokens: int) -> None:
    load = arrivals(rate, 200, output_tokens)

    assert gpus(asked(model, gpu, load, Limits())) <= gpus(asked(model, gpu, load, Limits(ttft_s=1_000)))


@settings(PROBED, max_examples=5)
@given(questions)
def test_a_law_s_number_of_gpus_is_the_answer_s(question: SizeQuestion) -> None:
    found = size(question)

    assert (found.gpus if found.feasible else float("inf")) == gpus(question)


def test_requests_that_all_end_in_one_step_are_answered() -> None:
    found = size(asked("llama-3.1-8b-instruct", "h100-sxm-80gb", arrivals(1e6, 1, 1), Limits(ttft_s=1.0)))

    assert found.feasible
    assert found.at_load is not None
    assert found.at_load.queue_growth_per_s == 0.0
