"""`capacity`: this model on these GPUs; how much load?"""

from collections.abc import Iterator
from dataclasses import replace
from math import inf

from service.engine.answers.advice import looser_limits, missing_memory, reason, unlimited_waits
from service.engine.answers.assumptions import capacity_assumptions
from service.engine.answers.described import Described, described
from service.engine.answers.layout_notes import given_gpus
from service.engine.answers.levers import changes_that_fit
from service.engine.answers.overlong import overlong
from service.engine.answers.results import Capacity, CapacityRow, CurvePoint
from service.engine.answers.sooner import sooner
from service.engine.arithmetic import three_digits
from service.engine.fleet.contexts import longest_context, unasked_context
from service.engine.fleet.deployments import Deployment
from service.engine.fleet.figures import Figures, Rates, figures
from service.engine.fleet.given_gpus import at_context, carries_any, fewest_that_carry, largest, resolve_capacity
from service.engine.fleet.lengths import has_lengths
from service.engine.fleet.plainest import preferred
from service.engine.fleet.planned import planned
from service.engine.fleet.questions import CapacityQuestion
from service.engine.memory.plan import MemoryPlan
from service.engine.time.demand import Arrivals, Users
from service.engine.time.replica import Replica
from service.engine.time.samples import ScheduleResult

TABLE_CONTEXT_TOKENS = (2_048, 8_192, 32_768, 131_072)
MOST_CURVE_POINTS = 14


def capacity(question: CapacityQuestion) -> Capacity:
    """Return how many requests the given GPUs hold, and the engine's own start-up numbers.

    Of the legal layouts and open settings that fit the GPUs, those that carry most are chosen: requests
    at once, or the highest rate where arrivals are asked for. The caller may fix any of them. Where no
    limit is stated, a twentieth of the requests at most is left out for a token budget that answers far
    more of them, or begins to far sooner; and where a load is asked for, the layout is taken that ends its
    requests soonest of those that carry no less than one GPU less would. Without `input_tokens` and
    `output_tokens` the engine starts as it does by itself, requests have the longest context that any
    layout serves, and of layouts that hold at most a twentieth fewer, and answer about as often, the plainest
    is taken.

    Raises:
        EngineError: the question contradicts itself or names something without a rule.
    """
    resolved = resolve_capacity(question)
    most = largest(question, resolved)
    chosen = preferred(question, resolved, most)
    deployment = chosen.with_times(question.timers)
    plan, replica, replicas = deployment.plan, deployment.replica, deployment.replicas
    told = figures(deployment, deployment.carries(Users), _rates(deployment))
    shared = described(question, deployment, told)
    warned: Described = {
        **shared,
        "warnings": (
            *shared["warnings"],
            *_few(question),
            *_whole_contexts(question, deployment),
            *_waits(question, told, replicas),
            *(overlong(deployment) if has_lengths(question) else ()),
            *sooner(question, resolved, deployment, most),
        ),
    }
    return Capacity(
        **warned,
        max_concurrent_requests=replicas * told.of_one.max_concurrent_requests,
        requests_per_s=told.rates.of_all if told.rates else None,
        kv_read_s_per_token=_kv_read_s(replica, plan),
        prefill_tokens_per_s=_prefill_tokens_per_s(replica, plan),
        max_model_len_fitting=_longest_context(question, deployment),
        binding_constraint=told.of_one.binds if shared["feasible"] else reason(deployment),
        would_fit=() if shared["feasible"] else _would_fit(question, deployment),
        curve=_curve(replica, replicas),
        table=tuple(
            _row(at_context(question, resolved, tokens).with_times(question.timers)) for tokens in _contexts(plan)
        ),
        assumptions=(
            *given_gpus(question, deployment, holds_most=chosen is most),
            *capacity_assumptions(question, deployment),
        ),
    )


def _few(question: CapacityQuestion) -> Iterator[str]:
    """Yield that a benchmark has fewer prompts than users, so that some never ask."""
    prompts, users = question.load.num_prompts, question.load.concurrent_requests
    if prompts is not None and users is not None and prompts < users:
        yield (
            f"{prompts} prompts never are {users} requests at once: what is told is of {prompts} at most, all sent at "
            f"the beginning; num_prompts of several times {users} measures {users}"
        )


def _whole_contexts(question: CapacityQuestion, deployment: Deployment) -> Iterator[str]:
    """Yield how long the requests of a load are of which nobody says it: they are seldom meant to be so long."""
    load = deployment.load
    is_asked = load.concurrent_requests is not None or load.request_rate_per_s is not None
    if is_asked and not has_lengths(question):
        yield (
            "neither input_tokens nor output_tokens was stated: each request of the load fills a whole context, "
            f"{load.input_tokens:,} tokens of prompt and {load.output_tokens:,} of answer"
        )


def _waits(question: CapacityQuestion, told: Figures, replicas: int) -> tuple[str, ...]:
    """Return that more is asked for than is carried, or else how long users wait where nobody limits it."""
    if beyond := tuple(_beyond(question, told, replicas)):
        return beyond
    return unlimited_waits(question.limits, told.latency) if has_lengths(question) else ()


def _beyond(question: CapacityQuestion, told: Figures, replicas: int) -> Iterator[str]:
    load, users = question.load, replicas * told.of_one.max_concurrent_requests
    within = " within the limits" if question.limits.are_stated else ""
    if load.concurrent_requests is not None and users and load.concurrent_requests > users:
        yield f"{load.concurrent_requests:,} requests at once are asked for, and {users:,} are carried{within}"
    rate = told.rates.of_all if told.rates else inf
    if load.request_rate_per_s is not None and load.request_rate_per_s > rate > 0:
        is_slower = told.at_load is not None and told.at_load.requests_per_s < load.request_rate_per_s
        grows = is_slower and load.num_prompts is None  # of so many prompts nobody waits for ever
        growth = told.at_load.queue_growth_per_s if grows and told.at_load else 0.0
        growth = growth if load.request_duration_s is None else load.request_rate_per_s - rate
        waits = f": {three_digits(growth)} more wait every second" if grows else ""
        carried = f"{three_digits(rate)} are carried{within}{waits}"
        yield f"{load.request_rate_per_s:g} requests a second are asked for, and {carried}"


def _longest_context(question: CapacityQuestion, deployment: Deployment) -> int:
    """Return the longest request that a deployment's pool holds, up to the model's own; 0 if none starts. [tokens]."""
    resolved, model = deployment.resolved, question.model.architecture
    if question.settings.max_model_len is None:
        settings = replace(resolved.settings, max_model_len=unasked_context(model, resolved.rules))
        resolved = replace(resolved, settings=settings)
    plan = planned(resolved, deployment.layout, question.input_tokens or 0, question.output_tokens or 0)
    return plan.kv_cache.estimated_max_model_len if plan.weights_fit else 0


def _rates(deployment: Deployment) -> Rates | None:
    """Return the highest arrival rates within limits; None where nobody tells time."""
    replica, replicas = deployment.replica, deployment.replicas
    if replica is None:
        return None
    of_all = replicas * replica.most_with(deployment.share, Arrivals, deployment.limits).load
    return Rates(of_one=of_all / replicas, of_all=of_all)


def _kv_read_s(replica: Replica | None, plan: MemoryPlan) -> float | None:
    """Return the seconds that one more stored token adds to a step, on average over the contexts served.

    kv_read = (step with a full context - step with an empty one) / tokens of the context

    Windows read no more than they hold, so that a token beyond them costs less.
    """
    if replica is None:
        return None
    steps, tokens = replica.timing.steps, max(plan.context_tokens, 2)
    return (steps.decode_s(1, tokens) - steps.decode_s(1, 1)) / (tokens - 1)


def _prefill_tokens_per_s(replica: Replica | None, plan: MemoryPlan) -> float | None:
    """Return the prompt tokens read a second, in steps of `max_num_batched_tokens` that decode nothing. [1/s]."""
    if replica is None:
        return None
    tokens = plan.settings.max_num_batched_tokens
    return replica.serving.streams * tokens / replica.timing.steps.mixed_s(tokens, tokens / 2, 0, 0)


def _would_fit(question: CapacityQuestion, deployment: Deployment) -> tuple[str, ...]:
    """Return what would make a request fit, or keep its limits."""
    gpus, replica = fewest_that_carry(question), deployment.replica
    return (
        *(() if gpus is None else (f"gpu_count={gpus}",)),
        *(missing_memory(deployment.plan) if replica is None else looser_limits(replica, deployment.limits)),
        *changes_that_fit(question, carries_any),
    )


def _curve(replica: Replica | None, replicas: int) -> tuple[CurvePoint, ...]:
    """Return latency against load, doubling from one user per replica to twice as many as run at once."""
    if replica is None or not replica.slots:
        return ()
    users = [1]
    while users[-1] < 2 * replica.slots and len(users) < MOST_CURVE_POINTS:
        users.append(min(2 * users[-1], 2 * replica.slots))
    return tuple(_point(replica.seen(Users(count)), count, replicas) for count in users)


def _point(seen: ScheduleResult, users: int, replicas: int) -> CurvePoint:
    return CurvePoint(
        concurrent_requests=replicas * users,
        requests_per_s=replicas * seen.requests_per_s,
        output_tokens_per_s=replicas * seen.output_tokens_per_s,
        ttft_mean_s=seen.ttft_s.mean,
        ttft_p95_s=seen.ttft_s.percentile(95.0),
        tpot_mean_s=seen.tpot_s.mean,
        tpot_p95_s=seen.tpot_s.percentile(95.0),
    )


def _contexts(plan: MemoryPlan) -> tuple[int, ...]:
    longest = longest_context(plan.model.architecture, plan.rules)
    return tuple(sorted({min(tokens, longest) for tokens in TABLE_CONTEXT_TOKENS}))


def _row(deployment: Deployment) -> CapacityRow:
    """Return the requests of one context length that the GPUs hold when the engine serves that length."""
    replica, replicas = deployment.replica, deployment.replicas
    users, percentile = deployment.carries(Users).max_concurrent_requests, deployment.limits.percentile
    most = Users(users)
    seen = replica.seen(most, replica.measured_for(most, deployment.limits)) if replica is not None and users else None
    return CapacityRow(
        context_tokens=deployment.plan.settings.max_model_len,
        input_tokens=deployment.load.input_tokens,
        output_tokens=deployment.load.output_tokens,
        layout=deployment.layout,
        replicas=replicas,
        max_concurrent_requests=replicas * users,
        ttft_s=seen.ttft_s.percentile(percentile) if seen else None,
        tpot_s=seen.tpot_s.percentile(percentile) if seen else None,
        requests_per_s=replicas * seen.requests_per_s if seen else None,
        output_tokens_per_s=replicas * seen.output_tokens_per_s if seen else None,
    )
