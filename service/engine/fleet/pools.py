"""Prefill and decode on GPUs of their own: each pool sized for its half of the work, the cache sent between them.

A request is read by the prefill pool, its cache goes over the interconnect, and the decode pool
makes every token, the first one included:

    ttft = ttft(prefill) + cache bytes of the prompt on one GPU / interconnect + ttft(decode)
    tpot = tpot(decode)

Over more GPUs a prompt's cache is sent in smaller parts, so that sending is counted as a time of each layout of the
prefill pool, like reading.
How much of the limit on TTFT decoding may take is tried in shares: with more of it the decode pool is smaller, and the
prefill pool larger. Each share gives a count that never falls as load grows, and so does the least of them.

Source:
    Y. Zhong et al., DistServe: disaggregating prefill and decoding (2024), sections 3 and 4.
"""

from dataclasses import dataclass, replace
from math import hypot, inf
from typing import Final

from service.engine.errors import InvalidQuestionError
from service.engine.fleet.choice import deployments
from service.engine.fleet.deployments import Deployment
from service.engine.fleet.questions import SizeQuestion
from service.engine.fleet.ranking import best
from service.engine.fleet.splitting import best_of
from service.engine.inputs import Gpu, Limits
from service.engine.time.demand import Arrivals, kind_of
from service.engine.time.replica import sent_s
from service.engine.time.results import Distribution, Latency
from service.engine.time.samples import ScheduleResult

FIRST_TOKEN = 1
LOOSEST_TPOT_S = 4.0  # slower than anybody reads
SHARES: Final = (1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 3 / 8, 1 / 2)  # of a limit on TTFT, for the wait after reading


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolPair:
    """Both pools; the decode pool answers for everything after the first token."""

    prefill: Deployment
    decode: Deployment
    decoding: SizeQuestion  # what the decode pool was sized for
    interconnect_bytes_per_s: float  # one direction, per GPU
    read: ScheduleResult | None  # and sent, at the asked load; None when a pool cannot carry it
    decoded: ScheduleResult | None

    @property
    def is_feasible(self) -> bool:
        """Return whether both pools carry the load."""
        return self.prefill.is_feasible and self.decode.is_feasible

    @property
    def gpus(self) -> int:
        """Return the GPUs of both."""
        return self.prefill.gpus + self.decode.gpus

    @property
    def sent_bytes(self) -> int:
        """Return the cache of one mean prompt on one GPU."""
        return self.prefill.plan.kv_cache.bytes_per_request_per_gpu

    @property
    def transfer_s(self) -> float:
        """Return the seconds in which it is sent."""
        return sent_s(self.prefill.plan, self.prefill.load)

    def ttft_s(self) -> Distribution | None:
        """Return the sum of waits, of percentiles an upper bound; None when a pool cannot carry the load."""
        if self.read is None or self.decoded is None:
            return None
        first, second = self.read.ttft_s.distribution(), self.decoded.ttft_s.distribution()
        return Distribution(
            mean=first.mean + second.mean,
            p50=first.p50 + second.p50,
            p95=first.p95 + second.p95,
            p99=first.p99 + second.p99,
        )

    def latency(self, decoding: Latency) -> Latency:
        """Return the decode pool's latency with the wait before it, at the percentile asked for too."""
        ttft_s = self.ttft_s()
        if ttft_s is None or self.read is None or self.decoded is None:
            return decoding
        waits, percent = (self.read.ttft_s, self.decoded.ttft_s), decoding.percentile
        return replace(
            decoding,
            ttft_s=ttft_s,
            ttft_at_percentile_s=sum(wait.percentile(percent) for wait in waits),
            ttft_standard_error_s=hypot(*(wait.standard_error(percent) for wait in waits)),
            end_to_end_s=self.end_to_end_s(decoding.end_to_end_s),
        )

    def end_to_end_s(self, decoding: Distribution) -> Distribution:
        """Return the decode pool's whole time with the wait before it: all of them later by the mean."""
        ttft_s = self.ttft_s()
        if ttft_s is None or self.decoded is None:
            return decoding
        before_s = ttft_s.mean - self.decoded.ttft_s.mean
        return Distribution(
            mean=decoding.mean + before_s,
            p50=decoding.p50 + before_s,
            p95=decoding.p95 + before_s,
            p99=decoding.p99 + before_s,
        )


def decode_question(question: SizeQuestion, share: float | None = None) -> SizeQuestion:
    """Return the question of the decode pool: prompts come read, and the pace is limited.

    Args:
        question: what was asked.
        share: of the limit on TTFT, which the wait for the first token may take here; None: as long as it likes.
    """
    # With a limit, however loose, that the queue does not grow is seen in a simulation: a full cache gives up requests
    # and makes their tokens twice, which the rate of a pool that is kept full does not tell.
    asked = question.limits
    limits = Limits(
        ttft_s=None if share is None or asked.ttft_s is None else share * asked.ttft_s,
        tpot_s=asked.tpot_s or LOOSEST_TPOT_S,
        percentile=asked.percentile,
    )
    return replace(question, disaggregated=False, limits=limits, load=replace(question.load, phase="decode"))


def pools_for(question: SizeQuestion) -> PoolPair:
    """Return the smallest pools that carry a rate within limits.

    Raises:
        InvalidQuestionError: the load is not a rate: users of a closed loop do not tell two pools apart.
        EngineError: the question contradicts itself or names something without a rule.
    """
    if kind_of(question.load) is not Arrivals or question.timers is None:
        raise InvalidQuestionError(
            "pools of their own are sized for arrivals",
            field="disaggregated",
            accepted="disaggregated=true with request_rate_per_s and without request_duration_s",
        )
    decoding = decode_question(question)
    decode = _best(decoding)
    if question.limits.ttft_s is None or not decode.is_feasible:
        return _pair(question, decoding, decode)
    return min(_within_shares(question, decode), key=lambda pair: pair.gpus if pair.is_feasible else inf)


def least_ttft_s(read_s: float, decoded_s: float) -> float:
    """Return the least limit on TTFT of which some share is enough for the wait after reading, and the rest for that.

        least = min over shares of max(read / (1 - share), decoded / share)

    >>> least_ttft_s(0.06, 0.03)
    0.096
    """
    return min(max(read_s / (1 - share), decoded_s / share) for share in SHARES)


def _within_shares(question: SizeQuestion, fewest: Deployment) -> list[PoolPair]:
    """Return pools by the share of the limit on TTFT that decoding may take, up to that which saves it no GPU more.

    Where decoding keeps none of them, the pools of the last; none of more than the one that leaves reading too little.
    """
    pairs: list[PoolPair] = []
    for share in SHARES:
        decoding = decode_question(question, share)
        decode = _best(decoding)
        if decode.is_feasible or share == SHARES[-1]:
            pairs.append(_pair(question, decoding, decode, share))
        if decode.is_feasible and (decode.gpus <= fewest.gpus or not pairs[-1].prefill.is_feasible):
            break  # more of the limit saves no GPU of the one pool, or leaves the other one even less
    return pairs


def _best(question: SizeQuestion) -> Deployment:
    return best_of(question, deployments(question))


def _pair(question: SizeQuestion, decoding: SizeQuestion, decode: Deployment, share: float = 0.0) -> PoolPair:
    """Return a decode pool with the prefill pool beside it."""
    rate = interconnect_bytes_per_s(question.gpu, decode.gpus)
    prefill = _prefill(question, share, rate)
    return PoolPair(
        prefill=prefill,
        decode=decode,
        decoding=decoding,
        interconnect_bytes_per_s=rate,
        read=prefill.seen(),
        decoded=decode.seen(),
    )


def _prefill(question: SizeQuestion, share: float, bytes_per_s: float) -> Deployment:
    """Return the prefill pool, within what decoding leaves of the limit on TTFT for reading and sending."""
    asked = question.limits
    load = replace(question.load, phase="prefill", output_tokens=FIRST_TOKEN, sent_bytes_per_s=bytes_per_s)
    left_s = None if asked.ttft_s is None else (1 - share) * asked.ttft_s
    limited = replace(question, load=load, limits=Limits(ttft_s=left_s, percentile=asked.percentile))
    return best(deployments(limited), limited)


def interconnect_bytes_per_s(gpu: Gpu, gpus: int) -> float:
    """Return the rate between pools: the fast fabric while it joins them all, else the network. [bytes/s]."""
    return (
        gpu.scale_up_bytes_per_s if gpus < gpu.scale_up_domain_gpus > gpu.gpus_per_node else gpu.scale_out_bytes_per_s
    )
