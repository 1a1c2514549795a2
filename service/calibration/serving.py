"""Published serving measurements against the schedule: TTFT, TPOT and throughput."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from service.calibration.images import as_installed
from service.calibration.logs.engines import LOGS
from service.calibration.logs.rows import Row, Skipped, UnstatedError
from service.calibration.logs.serving import ServingLog, read_serving
from service.calibration.names import served_gpu, served_model
from service.calibration.stated import stated_settings
from service.catalog.engine_rules import rules_for
from service.catalog.errors import NotInCatalogError
from service.catalog.snapshot import Snapshot
from service.engine import (
    EngineError,
    EngineName,
    EngineRules,
    Gpu,
    Layout,
    MemoryPlan,
    ModelFacts,
    RequestOverhead,
    ScheduleResult,
    Sender,
    SimulatedLoad,
    StatedSettings,
    StepTimers,
    Timing,
    Traffic,
    benchmarked,
    copies_in,
    deployed,
    launched_share,
    plan_replica,
    streams_of,
)

# A step may be off by so much where prompts are of unknown length.
DECIDES: Final = 0.05
# Offline runs queue everything and last for many waves: the steady state, with as many more waiting as run.
WAITING: Final = 2
MOST_OFFLINE_REQUESTS: Final = 3_000
# Long runs are measured in their steady state, over so many requests.
STEADY_REQUESTS: Final = 2_000
WARM_UP_REQUESTS: Final = 500
LAST_PERCENT: Final = 99.0  # of answers: the longest takes several times the mean
FILLS: Final = 3  # of all that is under way at once, until the mix of old and new requests changes no more


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One figure of a published run beside ours. [s], or tokens per second."""

    case: str
    source: str
    tier: str
    engine: EngineName
    gpu: str
    group: tuple[str, str, str, int]  # engine, GPU, model, tensor parallelism
    basis: str
    quantity: str  # ttft, tpot, e2e, throughput
    percent: float | None  # of a latency; None: the mean
    expected_error_fraction: float  # as the answer states it
    measured: float
    predicted: float

    @property
    def error_fraction(self) -> float:
        """Return predicted / measured - 1."""
        return self.predicted / self.measured - 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Run:
    """A published run, ready to be simulated."""

    log: ServingLog
    plan: MemoryPlan
    traffic: Traffic
    load: SimulatedLoad

    @property
    def group(self) -> tuple[str, str, str, int]:
        """Return what is left out together when a fit is judged on rows it has not seen."""
        return (self.log.engine, self.plan.gpu.id, self.plan.model.id, self.plan.layout.gpus_per_replica)

    @property
    def is_throughput(self) -> bool:
        """Return whether only throughput was measured."""
        return not self.log.reports_latency


def resolve_run(row: Row, catalog: Snapshot) -> Run | Skipped:
    """Return a published run as values, or why it cannot be simulated."""
    try:
        return _planned(read_serving(row), catalog)
    except (NotInCatalogError, EngineError, UnstatedError) as error:
        return Skipped(case=str(row["id"]), reason=str(error))


def _planned(log: ServingLog, catalog: Snapshot) -> Run:
    """Return a run as values.

    Of arrivals at random that n servers take in turn, the gaps at each are sums of n: Gamma(shape = n).
    """
    model, gpu = served_model(log.model, catalog), served_gpu(log.gpu, catalog)
    stated = stated_settings(log, model, gpu)
    plan = _plan(log, model, gpu, stated)
    if LOGS[log.engine].deals_within_ranks and log.ranks.data_parallel_size > 1:
        own = launched_share(model.architecture, gpu, plan.layout, plan.settings, plan.rules)
        share = stated.gpu_memory_utilization or own
        plan = _plan(log, model, gpu, replace(stated, gpu_memory_utilization=share))
    if not plan.holds_one_request and LOGS[log.engine].shortens_contexts:
        plan = _plan(log, model, gpu, replace(stated, max_model_len=None))
    if not plan.holds_one_request:
        raise UnstatedError("by our ledger not one request fits")
    if _unknown_fraction(log, plan) > DECIDES:
        raise UnstatedError("nobody publishes how long its prompts are, and in so large a batch that decides")
    traffic = Traffic(
        inputs=log.inputs,
        outputs=log.outputs,
        prefix_cache_hit_fraction=log.shared_tokens / log.input_tokens,
        burstiness=log.sent.burstiness * (log.ranks.copies if log.sent.is_dealt_evenly else 1),
        arrives_read=log.arrives_read,
    )
    return Run(log=log, plan=plan, traffic=traffic, load=_load(log, plan, traffic))


def _plan(log: ServingLog, model: ModelFacts, gpu: Gpu, stated: StatedSettings) -> MemoryPlan:
    return plan_replica(
        model,
        gpu,
        _layout(log, model),
        stated,
        _rules(log),
        input_tokens=log.input_tokens,
        output_tokens=log.output_tokens,
    )


def _rules(log: ServingLog) -> EngineRules:
    """Return the rules of the version that ran.

    An engine that was built ahead runs no iteration ahead of the scheduler: where it runs inside the benchmark, as
    `trtllm_build_flags` of MLPerf's configs have it, but for spread experts.
    """
    built = LOGS[log.engine].last_built_version
    if built is None or not log.sent.is_in_process or log.ranks.expert_parallel:
        rules = as_installed(rules_for(log.engine, log.version), log.version, log.stated_version)
        return replace(rules, steps_planned_ahead=1) if log.served.plans_ahead else rules
    return replace(rules_for(log.engine, built), steps_planned_ahead=0)


def _unknown_fraction(log: ServingLog, plan: MemoryPlan) -> float:
    """Return what prompts of unknown length add to or take from the bytes that a step reads. [fraction]."""
    users = (log.sent.users or 1) / (streams_of(plan) * log.ranks.copies)
    of_token = users * plan.kv_cache.bytes_per_token_per_gpu
    cached = of_token * (log.input_tokens + log.output_tokens / 2)
    return of_token * log.unknown_tokens / (plan.memory.weight_bytes + cached)


def _layout(log: ServingLog, model: ModelFacts) -> Layout:
    ranks = log.ranks
    if ranks.data_parallel_size == 1 and ranks.spreads_attention and model.architecture.has_experts:
        return Layout(
            data_parallel_size=ranks.tensor_parallel_size,
            pipeline_parallel_size=ranks.pipeline_parallel_size,
            expert_parallel=ranks.tensor_parallel_size > 1,
        )
    return Layout(
        tensor_parallel_size=ranks.tensor_parallel_size,
        pipeline_parallel_size=ranks.pipeline_parallel_size,
        data_parallel_size=ranks.data_parallel_size,
        expert_parallel=ranks.expert_parallel,
    )


def _load(log: ServingLog, plan: MemoryPlan, traffic: Traffic) -> SimulatedLoad:
    """Return one stream's share of what was sent."""
    sent, streams, sender = log.sent, streams_of(plan) * log.ranks.copies, Sender()
    of_copy = max(min(plan.requests_in_cache, plan.settings.max_num_seqs), 1)
    at_once = copies_in(plan) * of_copy
    if sent.request_rate_per_s is not None:
        rate = sent.request_rate_per_s / streams
        if sent.is_steady:
            warm_up = max(WARM_UP_REQUESTS, FILLS * _under_way(log, rate, None))
            behind = _under_way(log, rate, LAST_PERCENT)  # come until the last measured ones are answered
            load = sender.open_loop(traffic, rate, warm_up, STEADY_REQUESTS + behind)
            return replace(load, measured=STEADY_REQUESTS)
        return sender.burst(traffic, rate, max((sent.count or 0) // streams, 1))
    if sent.users is not None:
        users = max(sent.users // streams, 1)
        if sent.how == "full":
            return sender.steady_users(traffic, users, max(2 * users, 50), users)
        others = max(sent.users // log.ranks.copies - users, 0)
        return sender.burst_of_users(traffic, users, max((sent.count or 0) // streams, users), others)
    return sender.steady_users(traffic, WAITING * at_once, min(WAITING * at_once, MOST_OFFLINE_REQUESTS), at_once)


def _under_way(log: ServingLog, rate_per_s: float, percent: float | None) -> int:
    """Return the requests of one stream that come while one is answered, by a run's own figures: rate x latency."""
    seconds = (each.value_s for each in log.latencies if each.quantity == "e2e" and each.percent == percent)
    return round(rate_per_s * next(seconds, 0.0))


def compare_run(run: Run, timers: StepTimers) -> list[Measured]:
    """Return every figure of a published run beside ours."""
    timing = timers.timer(deployed(run.plan))
    return [] if timing is None else measured_pairs(run, timing)


def simulated(run: Run, timing: Timing, load: SimulatedLoad) -> ScheduleResult:
    """Return what the users of a load see.

    An engine that is called as a library lets nobody wait outside iterations, and fills its cache: configs of
    TensorRT-LLM in MLPerf's results have `batch_scheduler_policy: max_util`.
    """
    is_inside = run.log.sent.is_in_process
    if is_inside:
        timing = replace(timing, request_overhead=RequestOverhead(base_s=0.0, s_per_prompt_token=0.0))
    return benchmarked(run.plan, timing, run.traffic, load, evicts=is_inside, read_every=run.log.sent.read_every)


def measured_pairs(run: Run, timing: Timing) -> list[Measured]:
    """Return every figure of a published run beside the one that step times give."""
    seen = simulated(run, timing, run.load)
    return [
        Measured(
            case=run.log.case,
            source=run.log.source,
            tier=run.log.tier,
            engine=run.log.engine,
            gpu=run.plan.gpu.id,
            group=run.group,
            basis=timing.basis.name,
            quantity=quantity,
            percent=percent,
            expected_error_fraction=timing.basis.expected_error_fraction,
            measured=measured,
            predicted=predicted,
        )
        for quantity, percent, measured, predicted in _pairs(run, seen)
    ]


def _pairs(run: Run, seen: ScheduleResult) -> Iterator[tuple[str, float | None, float, float]]:
    """Yield each quantity, its percentile, and its value as measured and as simulated."""
    samples = {"ttft": seen.ttft_s, "tpot": seen.tpot_s, "e2e": seen.end_to_end_s}
    if run.log.sent.how == "full":
        # As it was measured: what is in the batch over tokens per second, and not each request's own pace.
        batch = run.load.concurrency or 1
        yield from (("tpot", None, each.value_s, batch / seen.output_tokens_per_s) for each in run.log.latencies)
        return
    for latency in run.log.latencies:
        sample = samples[latency.quantity]
        if len(sample):
            ours = sample.mean if latency.percent is None else sample.percentile(latency.percent)
            yield latency.quantity, latency.percent, latency.value_s, ours
    log, streams = run.log, streams_of(run.plan) * run.log.ranks.copies
    busy = min(streams, log.sent.users or streams)  # a single user keeps one of them busy
    tokens_per_s = busy * seen.output_tokens_per_s
    if log.tokens_per_s:
        yield "throughput", None, float(log.tokens_per_s), tokens_per_s
    elif log.tokens_per_s_per_gpu:
        gpus = run.plan.layout.gpus_per_replica * log.ranks.copies
        yield "throughput", None, float(log.tokens_per_s_per_gpu), tokens_per_s / gpus
