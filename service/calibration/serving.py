"""Published serving measurements against the schedule: TTFT, TPOT and throughput."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from service.calibration.stand_ins import SAME_SHAPE
from service.calibration.startups import Skipped
from service.catalog.engine_rules import rules_for
from service.catalog.errors import NotInCatalogError
from service.catalog.snapshot import Snapshot
from service.engine.errors import EngineError
from service.engine.facts import ModelFacts
from service.engine.fleet.checkpoints import own_checkpoint
from service.engine.fleet.planned import planned
from service.engine.fleet.questions import StatedSettings
from service.engine.fleet.settings import resolve
from service.engine.inputs import EngineName, Gpu, KvCacheDtype, Layout, WeightFormat
from service.engine.memory.plan import MemoryPlan
from service.engine.time.batching import block_pool, scheduler_settings
from service.engine.time.lengths import FixedLength, Length, UniformLength
from service.engine.time.samples import ScheduleResult, whole
from service.engine.time.simulation import Machine
from service.engine.time.steps import StepTimers, Timing, deployed
from service.engine.time.traffic import Sender, SimulatedLoad, Traffic

ENGINES: Final[Mapping[str, EngineName]] = {"vllm": "vllm", "tensorrt-llm": "tensorrt-llm", "sglang": "sglang"}
FORMATS: Final[Mapping[str, WeightFormat]] = {
    "bf16": "bf16", "fp16": "fp16", "fp8": "fp8", "int8": "int8", "int4": "int4", "fp4": "nvfp4", "nvfp4": "nvfp4",
    "mxfp4": "mxfp4",
}  # fmt: skip
# InferenceX: so many prompts per user, lengths uniform between 0.8 and 1.0 of nominal, all users at once.
PROMPTS_PER_USER: Final = 10
SHORTEST_FRACTION: Final = 0.8
# InferenceX serves vLLM with a budget of 8,192 tokens, whatever the GPU.
INFERENCEX_BATCHED_TOKENS: Final = 8_192
# Offline runs queue everything; three times what runs at once is enough to see the steady rate.
OFFLINE_WAVES: Final = 3
MOST_OFFLINE_REQUESTS: Final = 3_000
OPEN_REQUESTS: Final = 500
MILLISECONDS_PER_S: Final = 1e3
STATISTICS: Final[Mapping[str, float | None]] = {
    "mean": None, "p50": 50.0, "median": 50.0, "p90": 90.0, "p95": 95.0, "p99": 99.0,
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One figure of a published run beside ours. [s], or tokens per second."""

    case: str
    tier: str
    engine: EngineName
    gpu: str
    group: tuple[str, str, str, int]  # engine, GPU, model, tensor parallelism
    basis: str
    quantity: str  # ttft, tpot, throughput
    measured: float
    predicted: float

    @property
    def error_fraction(self) -> float:
        """Return predicted / measured - 1."""
        return self.predicted / self.measured - 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Run:
    """A published run, ready to be simulated."""

    row: Mapping[str, Any]
    plan: MemoryPlan
    load: SimulatedLoad
    streams: int

    @property
    def group(self) -> tuple[str, str, str, int]:
        """Return what is left out together when a fit is judged on rows it has not seen."""
        layout = self.plan.layout
        return (self.plan.rules.engine, self.plan.gpu.id, self.plan.model.id, layout.gpus_per_replica)

    @property
    def is_throughput(self) -> bool:
        """Return whether only throughput was measured."""
        return "ttft_ms" not in self.row["reported"] and "tpot_ms" not in self.row["reported"]


class _UnstatedError(ValueError):
    """The source did not state what a simulation needs."""


def resolve_run(row: Mapping[str, Any], catalog: Snapshot) -> Run | Skipped:
    """Return a published run as values, or why it cannot be simulated."""
    try:
        return _resolved(row, catalog)
    except (NotInCatalogError, EngineError, _UnstatedError) as error:
        return Skipped(case=str(row["id"]), reason=str(error))


def _resolved(row: Mapping[str, Any], catalog: Snapshot) -> Run:
    engine = ENGINES.get(str(row["engine"]).lower())
    if engine is None:
        raise _UnstatedError(f"engine {row['engine']} has no profile")
    model, gpu = _model(str(row["model"]), catalog), _gpu(str(row["gpu"]), catalog)
    rules = rules_for(engine, _version(row))
    input_tokens, output_tokens = int(row["isl"]), int(row["osl"])
    resolved = resolve(model, gpu, _stated(row, model, engine, gpu), rules, input_tokens + output_tokens)
    settings = replace(resolved.settings, max_model_len=input_tokens + output_tokens)
    if "InferenceX" in str(row.get("dataset")) and engine == "vllm":
        settings = replace(settings, max_num_batched_tokens=INFERENCEX_BATCHED_TOKENS)
    served = replace(resolved, settings=settings, shorten_to_fit=False)
    plan = planned(served, _layout(row, model), input_tokens, output_tokens)
    if not plan.holds_one_request:
        raise _UnstatedError("by our ledger not one request fits")
    streams = plan.layout.data_parallel_size * plan.layout.pipeline_parallel_size
    return Run(row=row, plan=plan, load=_load(row, plan, streams), streams=streams)


def _version(row: Mapping[str, Any]) -> str | None:
    version = str(row.get("engine_version") or "").split()
    return version[0] if version and version[0][:1].isdigit() else None


def _model(name: str, catalog: Snapshot) -> ModelFacts:
    short = name.rsplit("/", maxsplit=1)[-1]
    bare = short
    for suffix in ("-v2", "-FP8", "-FP4", "-NVFP4", "-MXFP4"):
        bare = bare.removesuffix(suffix)
    for candidate in (name, short, bare, bare.replace("Meta-", ""), SAME_SHAPE.get(short, name)):
        try:
            return catalog.model(candidate)
        except NotInCatalogError:
            continue
    return catalog.model(name)


def _gpu(name: str, catalog: Snapshot) -> Gpu:
    words = name.lower().removeprefix("nvidia ").removeprefix("amd ").removeprefix("instinct ").split(" (")[0].split()
    for count in range(len(words), 0, -1):
        try:
            return catalog.gpu("-".join(words[:count]))
        except NotInCatalogError:
            continue
    raise _UnstatedError(f"the GPU {name!r} is not in the catalog")


def _stated(row: Mapping[str, Any], model: ModelFacts, engine: EngineName, gpu: Gpu) -> StatedSettings:
    stated = FORMATS.get(str(row["weight_precision"]).lower())
    if stated is None:
        raise _UnstatedError(f"weight precision {row['weight_precision']} has no format")
    own = own_checkpoint(model).weight_format
    is_own = stated == own or (own == "mxfp4" and stated in ("nvfp4", "fp8"))  # published in that form only
    return StatedSettings(weight_format=None if is_own else stated, kv_cache_dtype=_cache_dtype(row, engine, gpu))


def _cache_dtype(row: Mapping[str, Any], engine: EngineName, gpu: Gpu) -> KvCacheDtype:
    """Return the stated cache dtype; else what these benchmarks use: fp8, but for 16-bit weights and vLLM on Hopper."""
    stated = row.get("kv_precision")
    if stated is not None:
        return "fp8" if str(stated).lower().startswith("fp8") else "bf16"
    if str(row["weight_precision"]).lower() in ("bf16", "fp16"):
        return "bf16"
    return "fp8" if engine == "tensorrt-llm" or gpu.architecture.startswith("blackwell") else "bf16"


def _layout(row: Mapping[str, Any], model: ModelFacts) -> Layout:
    tp, pp = int(row["tp"]), int(row.get("pp") or 1)
    dp = int(row.get("dp") or 1)
    has_experts = model.architecture.has_experts
    if dp == 1 and has_experts and "attention DP" in str(row.get("notes")):
        return Layout(data_parallel_size=tp, pipeline_parallel_size=pp, expert_parallel=tp > 1)
    return Layout(
        tensor_parallel_size=tp,
        pipeline_parallel_size=pp,
        data_parallel_size=dp,
        expert_parallel=int(row.get("ep") or 1) > 1,
    )


def _load(row: Mapping[str, Any], plan: MemoryPlan, streams: int) -> SimulatedLoad:
    basis = str(row.get("length_basis"))
    traffic = Traffic(inputs=_length(int(row["isl"]), basis), outputs=_length(int(row["osl"]), basis))
    rate = row.get("request_rate_per_s") or row.get("request_rate")
    if rate is not None:
        count = int(row.get("num_prompts") or OPEN_REQUESTS)
        return Sender().burst(traffic, float(rate) / streams, count)
    if row.get("concurrency"):
        users = max(int(row["concurrency"]) // streams, 1)
        return Sender().burst_of_users(traffic, users, PROMPTS_PER_USER * users)
    at_once = max(min(plan.requests_in_cache, plan.settings.max_num_seqs), 1)
    count = min(OFFLINE_WAVES * at_once, MOST_OFFLINE_REQUESTS)
    return Sender().burst_of_users(traffic, count, count)


def _length(nominal_tokens: int, basis: str) -> Length:
    if f"{SHORTEST_FRACTION}x" in basis:
        return UniformLength(shortest_tokens=int(SHORTEST_FRACTION * nominal_tokens), longest_tokens=nominal_tokens)
    return FixedLength(tokens=nominal_tokens)


def scheduled(run: Run, timing: Timing) -> ScheduleResult:
    """Return the simulated schedule of one of a run's streams."""
    fixed = Traffic(inputs=FixedLength(tokens=int(run.row["isl"])), outputs=FixedLength(tokens=int(run.row["osl"])))
    machine = Machine(timing, block_pool(run.plan), scheduler_settings(run.plan, fixed))
    return whole(machine.simulated(run.load))


def compare_run(run: Run, timers: StepTimers) -> list[Measured]:
    """Return every figure of a published run beside ours."""
    timing = timers.timer(deployed(run.plan))
    return [] if timing is None else measured_pairs(run, timing)


def measured_pairs(run: Run, timing: Timing) -> list[Measured]:
    """Return every figure of a published run beside the one that step times give."""
    seen = scheduled(run, timing)
    reported = run.row["reported"]
    pairs: list[tuple[str, float, float]] = []
    for name, sample in (("ttft", seen.ttft_s), ("tpot", seen.tpot_s)):
        for statistic, value in (reported.get(f"{name}_ms") or {}).items():
            if statistic in STATISTICS and value:
                percent = STATISTICS[statistic]
                ours = sample.mean if percent is None else sample.percentile(percent)
                pairs.append((name, float(value) / MILLISECONDS_PER_S, ours))
    tokens_per_s = run.streams * seen.output_tokens_per_s
    if reported.get("output_tokens_per_s"):
        pairs.append(("throughput", float(reported["output_tokens_per_s"]), tokens_per_s))
    elif reported.get("output_tokens_per_s_per_gpu"):
        each = tokens_per_s / run.plan.layout.gpus_per_replica
        pairs.append(("throughput", float(reported["output_tokens_per_s_per_gpu"]), each))
    return [
        Measured(
            case=str(run.row["id"]),
            tier=str(run.row.get("quality_tier")),
            engine=run.plan.rules.engine,
            gpu=run.plan.gpu.id,
            group=run.group,
            basis=timing.basis.name,
            quantity=name,
            measured=measured,
            predicted=predicted,
        )
        for name, measured, predicted in pairs
    ]
