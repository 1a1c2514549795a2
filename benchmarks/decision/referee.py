"""`/size` and `/recommend` beside exhaustive enumeration: GPUs, then price, then latency, on random questions.

memory    any model of the catalog on any GPU, users alone: every layout
limits    models of which times are told quickly, small loads, limits on both latencies
cost      `/recommend` for the least price over a few GPUs, or the fewest GPUs
latency   `/recommend` for the lowest latency: no stated layout of a replica is faster
"""

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import inf
from typing import Any, Final

from benchmarks.decision.enumerated import Better, Cost, better_than, shapes
from service.catalog.snapshot import Snapshot
from service.engine.engines.runs_on import unrun
from service.engine.errors import EngineError
from service.engine.fleet.choice import deployments
from service.engine.fleet.combinations import combinations, size_question
from service.engine.fleet.ranking import ALIKE, best, latency_s
from service.engine.memory.kernels import needs_of
from service.engine.time.steps import StepTimers
from service.questions.recommend import RecommendQuery
from service.questions.refusals import RefusalError
from service.questions.size import SizeQuery
from service.questions.sources import PastedModels, Sources

RENTED: Final = (
    "h100", "h200", "b200", "a100-sxm-80gb", "a100-pcie-80gb", "l40s", "l4", "a10g", "t4", "mi300x", "gh200", "rtx-4090",
    "rtx-a6000", "h100-pcie", "a40",
)  # fmt: skip
TIMED: Final = (
    "llama-3.1-8b", "qwen3-30b-a3b", "gpt-oss-20b", "gpt-oss-120b", "qwen3-32b", "llama-3.3-70b", "mixtral-8x7b-v0.1",
)  # fmt: skip
TIMED_GPUS: Final = ("h100", "h200", "b200", "a100-sxm-80gb", "l40s")
# Times of an open loop, or of either side of a percentile, are no finer.
FASTER: Final = 1 / (ALIKE * ALIKE)

Asked = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One question, and what beats its answer."""

    question: Asked
    stated: int  # deployments that were asked for
    better: Better | None
    said: str | None = None  # another disagreement


def of_memory(seed: int, catalog: Snapshot) -> Iterator[Asked]:
    """Yield questions that memory alone decides: any model, any GPU, and now and then another setting."""
    draw = random.Random(seed)
    models = sorted(name for name in catalog.model_entries if not catalog.refusal(name))
    while True:
        asked: Asked = {
            "model": draw.choice(models),
            "gpu": draw.choice(RENTED),
            "concurrent_requests": round(2 ** draw.uniform(0, 11)),
            "input_tokens": round(2 ** draw.uniform(6, 14.5)),
            "output_tokens": round(2 ** draw.uniform(4, 10.5)),
            "latency": "none",
        }
        others: Asked = {
            "kv_cache_dtype": "fp8", "gpu_memory_utilization": 0.85, "headroom_fraction": 0.2, "spare_replicas": 1,
        }  # fmt: skip
        name = draw.choice([*others, *[None] * 6])
        yield asked | ({name: others[name]} if name else {})


def of_time(seed: int) -> Iterator[Asked]:
    """Yield questions with limits on latency, of users or arrivals."""
    draw = random.Random(seed)
    while True:
        asked: Asked = {
            "model": draw.choice(TIMED),
            "gpu": draw.choice(TIMED_GPUS),
            "input_tokens": round(2 ** draw.uniform(6, 12.5)),
            "output_tokens": round(2 ** draw.uniform(3, 9)),
            "ttft_s": draw.choice([0.5, 1, 2, 5]),
            "tpot_s": draw.choice([0.03, 0.05, 0.1]),
        }
        if draw.random() < 0.5:
            yield asked | {"concurrent_requests": round(2 ** draw.uniform(0, 7))}
        else:
            yield asked | {"request_rate_per_s": round(2 ** draw.uniform(-3, 4), 3)}


# What callers state besides: an engine, its settings, or what the load is like.
STATED: Final[tuple[Asked, ...]] = (
    {"engine": "sglang"}, {"engine": "tensorrt-llm", "data_parallel_size": 1}, {"engine_version": "0.9.2"},
    {"percentile": 99}, {"percentile": 50}, {"prefix_cache_hit_fraction": 0.5}, {"kv_cache_dtype": "fp8"},
    {"num_speculative_tokens": 3, "speculative_acceptance_fraction": 0.7}, {"weight_format": "fp8"},
    {"headroom_fraction": 0.3, "spare_replicas": 1}, {"burstiness": 0.5}, {"length_variation_fraction": 0.5},
    {"max_loras": 4}, {"enforce_eager": True}, {"enable_prefix_caching": False},
)  # fmt: skip


def of_settings(seed: int) -> Iterator[Asked]:
    """Yield questions with limits on latency and one more thing stated; every third is of SGLang."""
    draw = random.Random(seed)
    for place, asked in enumerate(of_time(seed)):
        stated = STATED[0] if place % 3 == 0 else draw.choice(STATED)
        if "burstiness" not in stated or "request_rate_per_s" in asked:  # users wait for their answers
            yield asked | stated


def sized(asked: Asked, sources: Sources, most_shapes: int | None = None) -> Verdict | None:
    """Return what beats the answer of `/size`; None where it has none, or nothing could."""
    try:
        query = SizeQuery(**asked)
        answer, question = query.answer(sources).result, query.looked_up(sources)
    except (EngineError, RefusalError):
        return None
    chosen: Cost = (inf, inf)
    if answer.feasible:
        chosen = (float(answer.gpus), answer.cost.usd_per_hour if answer.cost else inf)
    limit = chosen if answer.feasible else (16.0, inf)  # what nothing carries is not carried by 16 GPUs either
    better, stated = better_than(question, limit, by_price=False, most_shapes=most_shapes)
    if not stated:
        return None  # one GPU, and nothing to referee
    return Verdict(question=asked, stated=stated, better=better)


def recommended(asked: Asked, sources: Sources, objective: str, most_shapes: int | None = None) -> Verdict | None:
    """Return what beats the first option of `/recommend`; None where it has none."""
    query = RecommendQuery(**asked, objective=objective, service_class="batch")
    try:
        answer, question = query.answer(sources).result, query.looked_up(sources)
    except (EngineError, RefusalError):
        return None
    if not answer.options:
        return None
    first, stated = answer.options[0], 0
    price = inf if first.usd_per_hour is None else first.usd_per_hour
    by_price = objective == "cost"
    chosen = (price, float(first.gpus_paid or first.gpus)) if by_price else (float(first.gpus), price)
    needs = needs_of(question.model.architecture)
    for combination in combinations(question):
        if unrun(combination.gpu, needs) is not None:
            continue  # `/size` tells what it would take, without a command; nobody can start it
        one = replace(size_question(question, combination), timers=question.timers if _has_limits(asked) else None)
        better, count = better_than(one, chosen, by_price=by_price, most_shapes=most_shapes)
        stated += count
        if better is not None:
            said = f"{combination.gpu.id} {combination.settings.weight_format} beats {first.gpu} {first.weight_format}"
            return Verdict(question=asked, stated=stated, better=better, said=said)
    return Verdict(question=asked, stated=stated, better=None)


def _has_limits(asked: Asked) -> bool:
    return "ttft_s" in asked or "request_rate_per_s" in asked


def fastest(asked: Asked, sources: Sources) -> Verdict | None:
    """Return a stated layout that is faster than what `/recommend` calls the lowest latency on one GPU type."""
    query = RecommendQuery(**asked, objective="latency", weight_formats=[OWN])
    try:
        question = query.looked_up(sources)
        (combination,) = combinations(question)
        one = size_question(question, combination)
        chosen = best(deployments(one, "latency"), one, "latency")
    except (EngineError, RefusalError):
        return None
    if not chosen.is_feasible:
        return None
    known, stated = latency_s(chosen, one), 0
    for shape in shapes(one.gpu, one.gpu.gpus_per_node, has_experts=one.model.architecture.has_experts):
        other = replace(one, layout=shape.stated)
        stated += 1
        try:
            rival = best(deployments(other, "latency"), other, "latency")
        except EngineError:
            continue
        if rival.is_feasible and latency_s(rival, other) < FASTER * known:
            said = f"{shape} takes {latency_s(rival, other):.4g} s, {chosen.layout} {known:.4g} s"
            return Verdict(question=asked, stated=stated, better=None, said=said)
    return Verdict(question=asked, stated=stated, better=None)


OWN: Final = "bf16"
Judge = Callable[[Asked], Verdict | None]


def judged(questions: Iterator[Asked], judge: Judge, count: int, most_s: float = inf) -> list[Verdict]:
    """Return verdicts on so many questions that have an answer, within some processor time. [s]."""
    verdicts: list[Verdict] = []
    began = time.process_time()
    for asked in questions:
        if len(verdicts) >= count or time.process_time() - began > most_s:
            break
        verdict = judge(asked)
        if verdict is not None:
            verdicts.append(verdict)
    return verdicts


def sources_of(catalog: Snapshot, timers: StepTimers | None) -> Sources:
    """Return what questions look things up in."""
    return Sources(catalog=catalog, timers=timers, pasted_models=PastedModels())
