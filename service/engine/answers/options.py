"""One way to serve a load, as a recommendation lists it: its price, its latency, and what is better."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Final

from service.engine.answers.advice import long_waits
from service.engine.answers.described import warnings_of
from service.engine.answers.plainer import next_usual
from service.engine.answers.results import Alternative, Option
from service.engine.arithmetic import rounded_usd
from service.engine.facts import BITS
from service.engine.fleet.checkpoints import own_checkpoint
from service.engine.fleet.command import launch
from service.engine.fleet.costs import fleet_of, price_notes
from service.engine.fleet.deployments import Deployment
from service.engine.fleet.questions import RecommendQuestion, SizeQuestion
from service.engine.fleet.results import Cost
from service.engine.fleet.shortlist import FOUR_BITS
from service.engine.fleet.token_prices import usd_per_million_tokens
from service.engine.inputs import Gpu, KvCacheDtype, WeightFormat
from service.engine.time.demand import users_of
from service.engine.time.samples import ScheduleResult

WIDEST: Final = 16  # [bits]
NARROW: Final = "weights of four bits may cost quality: compare answers with those of the model's own format first"


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A deployment that carries the load within limits and budget."""

    gpu: Gpu
    weight_format: WeightFormat
    kv_cache_dtype: KvCacheDtype
    deployment: Deployment
    cost: Cost | None
    question: SizeQuestion  # that the deployment answers

    @property
    def usd_per_hour(self) -> float:
        """Return the price; infinite where nobody offers it."""
        return inf if self.cost is None else self.cost.usd_per_hour


Order = tuple[float, float, float, float, str, str, str]


def order(question: RecommendQuestion, candidate: Candidate) -> Order:
    """Return what candidates are sorted by: the objective, what is nearest to the model as published, names last."""
    price, gpus = candidate.usd_per_hour, float(candidate.deployment.gpus)
    paid = gpus if candidate.cost is None else float(candidate.cost.gpus_paid)
    keys = (price, paid)
    if question.objective == "gpus":
        keys = (gpus, price)
    elif question.objective == "cost_per_token":
        keys = (usd_per_million(question, candidate), price)
    elif question.objective == "latency":
        timed = candidate.deployment.with_times(question.timers)
        alone = float(candidate.deployment.layout.gpus_per_replica)
        keys = (alone if timed.replica is None else timed.latency_s(95.0), price)
    per_replica = float(candidate.deployment.layout.gpus_per_replica)
    return (
        *keys,
        _narrowness(question, candidate),
        per_replica,
        candidate.gpu.id,
        candidate.weight_format,
        candidate.kv_cache_dtype,
    )


def _narrowness(question: RecommendQuestion, candidate: Candidate) -> float:
    """Return 0 for the format that the model is published in, else how many of 16 bits another one lacks, and one."""
    if candidate.weight_format == own_checkpoint(question.model).weight_format:
        return 0.0
    return 1.0 + WIDEST - BITS[candidate.weight_format]


def option_of(
    question: RecommendQuestion,
    candidate: Candidate,
    rank: int,
    others: Sequence[Candidate],
    alternatives: Sequence[Candidate],
) -> Option:
    """Return a candidate as it is listed.

    Args:
        question: what was asked.
        candidate: the one to list.
        rank: its place, from 1.
        others: the best of each GPU type that could be listed.
        alternatives: the same GPU type with other formats, the best first.
    """
    deployment, cost = candidate.deployment.with_times(question.timers), candidate.cost
    started = launch(deployment, question.flags)
    layout, basis = deployment.layout, None if deployment.replica is None else deployment.replica.timing.basis
    seen, rate = deployment.seen(), _rate(question, candidate)
    usd, per_million = None if cost is None else cost.usd_per_hour, usd_per_million(question, candidate)
    return Option(
        rank=rank,
        gpu=candidate.gpu.id,
        gpus=deployment.gpus,
        replicas=deployment.replicas,
        gpus_per_replica=layout.gpus_per_replica,
        tensor_parallel_size=layout.tensor_parallel_size,
        pipeline_parallel_size=layout.pipeline_parallel_size,
        data_parallel_size=layout.data_parallel_size,
        expert_parallel=layout.expert_parallel,
        decode_context_parallel_size=layout.decode_context_parallel_size,
        weight_format=candidate.weight_format,
        kv_cache_dtype=candidate.kv_cache_dtype,
        usd_per_hour=usd,
        usd_per_month=None if cost is None else cost.usd_per_month,
        usd_per_million_output_tokens=None if per_million == inf else rounded_usd(per_million),
        ttft_p95_s=None if seen is None else seen.ttft_s.percentile(95.0),
        tpot_p95_s=None if seen is None else seen.tpot_s.percentile(95.0),
        requests_per_s=rate,
        utilization_fraction=_utilization(question, deployment),
        gpus_paid=None if cost is None else cost.gpus_paid,
        provider=None if cost is None else cost.provider,
        instance_type=None if cost is None else cost.instance_type,
        instances=None if cost is None else cost.instances,
        region=None if cost is None else cost.region,
        tier=None if cost is None else cost.tier,
        purchase=None if cost is None else cost.purchase,
        as_of=None if cost is None else cost.as_of,
        is_stale=None if cost is None else cost.is_stale,
        on_pareto_front=_is_on_pareto_front(question, candidate, others),
        basis=None if basis is None else basis.name,
        expected_error_fraction=None if basis is None else basis.expected_error_fraction,
        command=started.command,
        warnings=(
            *_warnings(question, candidate, deployment),
            *_waits(question, seen),
            *started.notes,
            *price_notes(cost, (fleet_of(deployment.plan, deployment.replicas),), question),
        ),
        alternatives=tuple(_alternative(each) for each in alternatives),
    )


def _warnings(question: RecommendQuestion, candidate: Candidate, deployment: Deployment) -> tuple[str, ...]:
    """Return what a buyer must know: of the times, of settings without a flag, of formats with fewer bits."""
    own = own_checkpoint(question.model).weight_format
    is_narrow = BITS[candidate.weight_format] < BITS[own] and candidate.weight_format in FOUR_BITS
    narrow = (NARROW,) if is_narrow else ()
    told = warnings_of(
        deployment.plan,
        deployment.replica,
        deployment.resolved.stated,
        question.layout,
        deployment.gpus,
        is_timed=question.timers is not None,
    )
    usual = next_usual(candidate.question, candidate.deployment, question.objective)
    return (*narrow, *told, *usual, *_unbounded(question, candidate, deployment))


def _waits(question: RecommendQuestion, seen: ScheduleResult | None) -> tuple[str, ...]:
    """Return how long users wait for what nobody limits, but of a batch."""
    if seen is None or question.service_class == "batch" or question.load.phase != "both":
        return ()
    return long_waits(question.limits, seen.ttft_s.percentile(95.0), seen.tpot_s.percentile(95.0))


def _unbounded(question: RecommendQuestion, candidate: Candidate, deployment: Deployment) -> tuple[str, ...]:
    """Return that the lowest latency takes several servers, where nobody bounds what it may take."""
    is_bounded = question.max_gpus is not None or question.max_usd_per_hour is not None
    if question.objective != "latency" or is_bounded or deployment.gpus <= candidate.gpu.gpus_per_node:
        return ()
    return (
        f"the lowest latency, whatever it takes, takes {deployment.gpus} GPUs: max_gpus or max_usd_per_hour bounds it",
    )


def _alternative(candidate: Candidate) -> Alternative:
    return Alternative(
        weight_format=candidate.weight_format,
        kv_cache_dtype=candidate.kv_cache_dtype,
        gpus=candidate.deployment.gpus,
        usd_per_hour=None if candidate.cost is None else candidate.cost.usd_per_hour,
    )


def _seen(question: RecommendQuestion, candidate: Candidate) -> ScheduleResult | None:
    """Return what users see at the asked load; None where nobody times it."""
    return candidate.deployment.with_times(question.timers).seen()


def _rate(question: RecommendQuestion, candidate: Candidate) -> float | None:
    """Return the requests answered at the asked load; None where nobody times it. [1/s]."""
    if question.load.request_rate_per_s is not None:
        return question.load.request_rate_per_s
    state = candidate.deployment.with_times(question.timers).state()
    return None if state is None else state.requests_per_s


def usd_per_million(question: RecommendQuestion, candidate: Candidate) -> float:
    """Return what a million tokens of output cost at the asked load; infinite where price or time is unknown."""
    rate = _rate(question, candidate)
    if candidate.cost is None or not rate:
        return inf
    return usd_per_million_tokens(candidate.usd_per_hour, rate * question.load.output_tokens)


def _utilization(question: RecommendQuestion, deployment: Deployment) -> float:
    """Return the asked load over what the replicas carry within limits."""
    rate, of_one = question.load.request_rate_per_s, deployment.capacity
    if rate is not None and of_one.max_request_rate_per_s:
        return rate / (deployment.replicas * of_one.max_request_rate_per_s)
    return users_of(question.load).amount / (deployment.replicas * of_one.max_concurrent_requests)


def _is_on_pareto_front(question: RecommendQuestion, candidate: Candidate, others: Sequence[Candidate]) -> bool:
    """Return whether nothing else is at least as good in price, TTFT, TPOT and GPUs, and better in one."""
    mine = _merits(question, candidate)
    return not any(
        all(theirs <= ours for theirs, ours in zip(other, mine, strict=True)) and other != mine
        for other in (_merits(question, other) for other in others)
    )


def _merits(question: RecommendQuestion, candidate: Candidate) -> tuple[float, float, float, float]:
    """Return price, TTFT and TPOT at the 95th percentile, and GPUs: less is better."""
    seen = _seen(question, candidate)
    ttft, tpot = (0.0, 0.0) if seen is None else (seen.ttft_s.percentile(95.0), seen.tpot_s.percentile(95.0))
    return candidate.usd_per_hour, ttft, tpot, float(candidate.deployment.gpus)
