"""How the answers that describe one deployment read as lines."""

import shlex
from collections.abc import Iterator

from service.engine.answers.results import Capacity, Sizing
from service.engine.arithmetic import GIB

Deployment = Sizing | Capacity


def shape_of(deployment: Deployment) -> str:
    """Return the replicas and the layout of each."""
    layout = deployment.layout
    return f"{deployment.replicas} replicas of TP{layout.tensor_parallel_size} PP{layout.pipeline_parallel_size}"


def deployment_lines(deployment: Deployment, shape: str) -> Iterator[str]:
    """Yield the lines of a deployment in this shape, as a person reads it in a terminal."""
    yield _head(deployment)
    yield f"layout: {shape}; binds: {deployment.binding_constraint}"
    yield f"per GPU [GiB]: {_ledger(deployment)}"
    requests = deployment.per_replica.max_concurrent_requests
    yield f"requests at once: {requests} per replica; cache: {deployment.kv_cache.tokens} tokens"
    yield from _latency_lines(deployment)
    if deployment.feasible:
        yield f"engine args: {shlex.join(deployment.engine_args)}"
    yield from (f"would fit: {sentence}" for sentence in deployment.would_fit)
    yield from (f"warning: {sentence}" for sentence in deployment.warnings)


def _head(deployment: Deployment) -> str:
    model, gpu = deployment.model, deployment.gpu
    if deployment.feasible:
        formats = f"{deployment.weight_format}, cache {deployment.kv_cache_dtype}"
        return f"{deployment.gpus} x {gpu} for {model} ({formats})"
    if deployment.shortfall_bytes:
        return f"does not fit: {model} on {gpu}, {deployment.shortfall_bytes} bytes short per GPU"
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
    ttft, tpot = latency.ttft_s, latency.tpot_s
    yield f"load: {state.concurrent_requests:.0f} requests in flight, {state.requests_per_s:.3g} per s"
    yield f"TTFT p50 {ttft.p50:.3g} s, p95 {ttft.p95:.3g} s; TPOT p50 {tpot.p50:.3g} s, p95 {tpot.p95:.3g} s"
    yield f"from {latency.basis}, expected within {100 * latency.expected_error_fraction:.0f} %"
