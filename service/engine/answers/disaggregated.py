"""Prefill and decode on GPUs of their own: each pool sized for its half of the work, the cache sent between them.

A request is read by the prefill pool, its cache goes over the interconnect, and the decode pool
makes every token, the first one included:

    ttft = ttft(prefill) + cache bytes of the prompt on one GPU / interconnect + ttft(decode)
    tpot = tpot(decode)

Source:
    Y. Zhong et al., DistServe: disaggregating prefill and decoding (2024), sections 3 and 4.
"""

from dataclasses import dataclass, replace

from service.engine.answers.results import Pools
from service.engine.errors import InvalidQuestionError
from service.engine.fleet.deployments import Deployment, best, deployments, schedule_at
from service.engine.fleet.questions import SizeQuestion
from service.engine.fleet.replicas import is_by_rate
from service.engine.inputs import Gpu, Limits
from service.engine.time.results import Distribution
from service.engine.time.scheduler import ScheduleResult

FIRST_TOKEN = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Disaggregated:
    """Both pools; the decode pool answers for everything after the first token."""

    prefill: Deployment
    decode: Deployment
    pools: Pools
    ttft_s: Distribution | None  # at the asked load; None when a pool cannot carry it
    decoding: ScheduleResult | None

    @property
    def is_feasible(self) -> bool:
        """Return whether both pools carry the load."""
        return self.prefill.is_feasible and self.decode.is_feasible


def disaggregated(question: SizeQuestion) -> Disaggregated:
    """Return the smallest pools that carry a rate within limits.

    Raises:
        InvalidQuestionError: the load is not a rate: users of a closed loop do not tell two pools apart.
        EngineError: the question contradicts itself or names something without a rule.
    """
    if not is_by_rate(question.load) or question.timers is None:
        raise InvalidQuestionError(
            "pools of their own are sized for arrivals",
            field="disaggregated",
            accepted="disaggregated=true with request_rate_per_s and without request_duration_s",
        )
    limits, load = question.limits, question.load
    decode = best(
        deployments(
            replace(
                question,
                load=replace(load, phase="decode"),
                limits=Limits(tpot_s=limits.tpot_s, percentile=limits.percentile),
            )
        ),
        limits,
    )
    decoding = _seen(question, decode, "decode")
    reading = replace(load, phase="prefill", output_tokens=FIRST_TOKEN)
    taken_s = 0.0 if decoding is None else decoding.ttft_s.percentile(limits.percentile)
    prefill, rate = _prefill(replace(question, load=reading), taken_s, decode)
    sent = prefill.plan.kv_cache.bytes_per_request
    seen = _seen(replace(question, load=reading), prefill, "prefill")
    return Disaggregated(
        prefill=prefill,
        decode=decode,
        pools=Pools(
            prefill_replicas=prefill.replicas,
            prefill_gpus_per_replica=prefill.layout.gpus_per_replica,
            prefill_tensor_parallel_size=prefill.layout.tensor_parallel_size,
            decode_replicas=decode.replicas,
            decode_gpus_per_replica=decode.layout.gpus_per_replica,
            decode_tensor_parallel_size=decode.layout.tensor_parallel_size,
            kv_transfer_bytes_per_gpu=sent,
            interconnect_bytes_per_s=rate,
            kv_transfer_s=sent / rate,
        ),
        ttft_s=None if seen is None or decoding is None else _sum(seen, decoding, sent / rate),
        decoding=decoding,
    )


def _prefill(question: SizeQuestion, decode_ttft_s: float, decode: Deployment) -> tuple[Deployment, float]:
    """Return the prefill pool and the rate of the interconnect, within what the limit on TTFT leaves."""
    rate = interconnect_bytes_per_s(question.gpu, decode.gpus)
    found = best(deployments(replace(question, limits=Limits(percentile=question.limits.percentile))), Limits())
    limit = question.limits.ttft_s
    if limit is None:
        return found, rate
    left_s = limit - decode_ttft_s - found.plan.kv_cache.bytes_per_request / rate
    limits = Limits(ttft_s=max(left_s, 1e-9), percentile=question.limits.percentile)
    return best(deployments(replace(question, limits=limits)), limits), rate


def interconnect_bytes_per_s(gpu: Gpu, gpus: int) -> float:
    """Return the rate between pools: the fast fabric while it joins them all, else the network. [bytes/s]."""
    return (
        gpu.scale_up_bytes_per_s if gpus < gpu.scale_up_domain_gpus > gpu.gpus_per_node else gpu.scale_out_bytes_per_s
    )


def _seen(question: SizeQuestion, pool: Deployment, phase: str) -> ScheduleResult | None:
    if pool.replica is None or not pool.is_feasible:
        return None
    load = replace(question.load, phase="decode") if phase == "decode" else question.load
    return schedule_at(pool.replica, load, pool.replicas)


def _sum(prefill: ScheduleResult, decode: ScheduleResult, transfer_s: float) -> Distribution:
    """Return the sum of waits; of percentiles, an upper bound."""
    first, second = prefill.ttft_s.distribution(), decode.ttft_s.distribution()
    return Distribution(
        mean=first.mean + transfer_s + second.mean,
        p50=first.p50 + transfer_s + second.p50,
        p95=first.p95 + transfer_s + second.p95,
        p99=first.p99 + transfer_s + second.p99,
    )


def later(end_to_end_s: Distribution, found: Disaggregated) -> Distribution:
    """Return the decode pool's whole time with the wait before it: all of them later by the mean."""
    if found.ttft_s is None or found.decoding is None:
        return end_to_end_s
    before_s = found.ttft_s.mean - found.decoding.ttft_s.mean
    return Distribution(
        mean=end_to_end_s.mean + before_s,
        p50=end_to_end_s.p50 + before_s,
        p95=end_to_end_s.p95 + before_s,
        p99=end_to_end_s.p99 + before_s,
    )
