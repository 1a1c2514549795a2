"""How the answers that describe one deployment read as lines."""

import re
import shlex
from collections.abc import Iterator, Sequence
from typing import Final, Protocol

from service.engine.answers.results import Capacity, Lever, Sizing
from service.engine.arithmetic import GIB, size_in_brackets, three_digits
from service.engine.fleet.results import Assumption, Cost, Scalar

Deployment = Sizing | Capacity
READING: Final = re.compile(r"""(['"])(?P<name>.*?)\1: """)  # how the source of a reading begins: with what was written


class Spread(Protocol):
    """Anything that says how a replica is spread."""

    @property
    def tensor_parallel_size(self) -> int: ...  # noqa: D102 - as in `Layout`
    @property
    def pipeline_parallel_size(self) -> int: ...  # noqa: D102
    @property
    def data_parallel_size(self) -> int: ...  # noqa: D102
    @property
    def expert_parallel(self) -> bool: ...  # noqa: D102
    @property
    def decode_context_parallel_size(self) -> int: ...  # noqa: D102


class Paid(Protocol):
    """Anything that says how GPUs are rented."""

    @property
    def tier(self) -> str | None: ...  # noqa: D102 - as in `Cost`
    @property
    def purchase(self) -> str | None: ...  # noqa: D102


class Named(Protocol):
    """Anything that is answered about a model, with how its name was read."""

    @property
    def model(self) -> str: ...  # noqa: D102 - as in `Sizing`
    @property
    def assumptions(self) -> Sequence[Assumption]: ...  # noqa: D102


def shape_of(deployment: Deployment) -> str:
    """Return the replicas and the layout of each."""
    return f"{counted(deployment.replicas, 'replica')} of {layout_of(deployment.layout)}"


def counted(number: int, thing: str) -> str:
    """Return a number of things.

    >>> counted(1, "replica"), counted(2, "GPU")
    ('1 replica', '2 GPUs')
    """
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def layout_of(layout: Spread) -> str:
    """Return the ranks of a layout, those that are one left out but for TP and PP."""
    words = [f"TP{layout.tensor_parallel_size}", f"PP{layout.pipeline_parallel_size}"]
    words += [f"DP{layout.data_parallel_size}"] * (layout.data_parallel_size > 1) + ["EP"] * layout.expert_parallel
    return " ".join(words + [f"DCP{layout.decode_context_parallel_size}"] * (layout.decode_context_parallel_size > 1))


def deployment_lines(deployment: Deployment, shape: str) -> Iterator[str]:
    """Yield the lines of a deployment in this shape, as a person reads it in a terminal."""
    yield _head(deployment)
    yield f"layout: {shape}; binds: {deployment.binding_constraint}"
    yield f"per GPU [GiB]: {_ledger(deployment)}"
    requests = deployment.per_replica.max_concurrent_requests
    yield f"requests at once: {requests} per replica; cache: {deployment.kv_cache.tokens} tokens"
    yield from _latency_lines(deployment)
    yield from checkpoint_lines(deployment.assumptions)
    if deployment.feasible:
        yield f"price: {price_of(deployment.cost)}"
        yield from start_lines(deployment.command, deployment.engine_args)
    if isinstance(deployment, Sizing) and (counts := confident_counts(deployment)):
        yield f"GPUs at a confidence of: {', '.join(f'{name} {gpus}' for name, gpus in counts.items())}"
    if isinstance(deployment, Sizing) and deployment.levers:
        yield f"best lever: {best_lever(deployment)}"
    yield from (f"would fit: {sentence}" for sentence in deployment.would_fit)
    yield from (f"warning: {sentence}" for sentence in deployment.warnings)


def start_lines(command: str | None, engine_args: Sequence[str]) -> Iterator[str]:
    """Yield the command to copy, of several nodes one below the other; the flags alone where no command starts it."""
    if command is None:
        yield f"engine args: {shlex.join(engine_args)}"
    elif "\n" in command:
        yield from ("command:", *command.splitlines())
    else:
        yield f"command: {command}"


def checkpoint_lines(assumptions: Sequence[Assumption]) -> Iterator[str]:
    """Yield what is loaded, where the catalog knows its id."""
    if (loaded := checkpoint_of(assumptions)) is not None:
        yield f"checkpoint: {loaded}"


def checkpoint_of(assumptions: Sequence[Assumption]) -> Scalar | None:
    """Return the id of what is loaded, where the catalog knows it."""
    return next((note.value for note in assumptions if note.name == "checkpoint"), None)


def model_of(answer: Named) -> str:
    """Return the model of an answer: what was asked for, where the catalog calls it otherwise, and its id there."""
    readings = (note.source or "" for note in answer.assumptions if note.name == "model" and note.origin == "read as")
    asked = READING.match(next(readings, ""))
    return answer.model if asked is None else f"{asked['name']} (sized as {answer.model})"


def price_of(cost: Cost | None) -> str:
    """Return what GPUs cost an hour, and whom."""
    if cost is None:
        return "no offer in question holds these GPUs"
    if cost.provider is None:
        held = f", {cost.instances} x {cost.instance_type}" if cost.instance_type else ""
        return f"{cost.usd_per_hour:.2f} USD/h at the caller's own price{held}"
    paid = f"{cost.usd_per_hour:.2f} USD/h, {cost.instances} x {cost.provider} {cost.instance_type}, {cost.as_of}"
    off = f", {100 * cost.discount_fraction:g} % off the list price" if cost.discount_fraction else ""
    return f"{paid}{terms_of(cost)}{off}"


def terms_of(paid: Paid) -> str:
    """Return on what terms GPUs are rented, where they are not the provider's own on demand."""
    unusual = (paid.tier if paid.tier == "community" else None, paid.purchase if paid.purchase != "on-demand" else None)
    return "".join(f", {term}" for term in unusual if term)


def latency_of(ttft_p95_s: float, tpot_p95_s: float) -> str:
    """Return how long users wait.

    >>> latency_of(1_274.4, 0.06949)
    'TTFT p95 1270 s, TPOT p95 0.0695 s'
    """
    return f"TTFT p95 {three_digits(ttft_p95_s)} s, TPOT p95 {three_digits(tpot_p95_s)} s"


def confident_counts(answer: Sizing) -> dict[str, int]:
    """Return the GPUs at each confidence that was told, by its percentage; nothing where nobody asked."""
    return {f"{100 * each.probability:g}%": each.gpus for each in answer.confidence.counts}


def confident_columns(answer: Sizing) -> dict[str, int]:
    """Return the same by the names that columns and gauges have for them."""
    counts = confident_counts(answer).items()
    return {f"confidence.gpus_at_{name.rstrip('%').replace('.', '_')}_percent": gpus for name, gpus in counts}


def best_lever(answer: Sizing) -> str | None:
    """Return what saves most; None where nothing does."""
    return _lever(answer.levers[0], answer) if answer.levers else None


def _lever(lever: Lever, answer: Sizing) -> str:
    """Return what a lever saves, and its times' basis where it is not the answer's."""
    change = " and ".join(f"{name}={value}" for name, value in lever.change.items())
    saved = [f"{counted(lever.saves_gpus, 'GPU')}"] if lever.saves_gpus > 0 else []
    usd_per_hour = round(lever.saves_usd_per_hour or 0.0, 2)
    if usd_per_hour > 0:
        saved.append(f"{usd_per_hour:.2f} USD/h")
    told = f"saves {' and '.join(saved)}" if saved else "fits"
    more = f" for {-usd_per_hour:.2f} USD/h more" if usd_per_hour < 0 else ""
    other = lever.basis is not None and answer.latency is not None and lever.basis != answer.latency.basis
    unsure = f" (times by {lever.basis})" if other else ""
    return f"{change} takes {counted(lever.gpus, 'GPU')}, {told}{more}{unsure}"


def _head(deployment: Deployment) -> str:
    model, gpu = model_of(deployment), deployment.gpu
    if deployment.feasible:
        formats = f"{deployment.weight_format}, cache {deployment.kv_cache_dtype}"
        return f"{deployment.gpus} x {gpu} for {model} ({formats})"
    if deployment.shortfall_bytes:
        missing = deployment.shortfall_bytes
        return f"does not fit: {model} on {gpu}, {missing} bytes{size_in_brackets(missing)} short per GPU"
    return f"too slow: {model} on {gpu} does not keep the limits at any load"


def _ledger(deployment: Deployment) -> str:
    memory = deployment.memory_per_gpu
    parts = {
        "weights": memory.weight_bytes,
        "cache": memory.kv_cache_bytes,
        "activation": memory.activation_bytes,
        "total": memory.total_bytes,
    }
    return ", ".join(f"{name} {size / GIB:.2f}" for name, size in parts.items())


def _latency_lines(deployment: Deployment) -> Iterator[str]:
    latency, state = deployment.latency, deployment.at_load
    if latency is None or state is None:
        return
    yield f"load: {state.concurrent_requests:.0f} requests in flight, {three_digits(state.requests_per_s)} per s"
    percent = latency.percentile  # a limit on the slowest one of a hundred is not seen in the 95th
    kinds = (
        ("TTFT", latency.ttft_s, latency.ttft_at_percentile_s),
        ("TPOT", latency.tpot_s, latency.tpot_at_percentile_s),
    )
    yield "; ".join(
        f"{name} " + ", ".join(f"p{mark:g} {three_digits(told)} s" for mark, told in sorted(marks.items()))
        for name, marks in ((name, {percent: asked, 50.0: seen.p50, 95.0: seen.p95}) for name, seen, asked in kinds)
    )
    any_latency, pace = latency.expected_error_fraction, latency.pace_error_fraction
    alone = f" (pace alone within {100 * pace:.0f} %)" if pace < any_latency else ""
    yield f"from {latency.basis}, expected within {100 * any_latency:.0f} %{alone}"
