"""Prefill and decode on GPUs of their own: each pool sized for its half of the work, the cache sent between them.

A request is read by the prefill pool, its cache goes over the interconnect, and the decode pool
makes every token, the first one included:

    ttft = ttft(prefill) + cache bytes of the prompt on one GPU / interconnect + ttft(decode)
    tpot = tpot(decode)

Over more GPUs a prompt's cache is sent in smaller parts, so that sending is counted as a time of each layout of the
prefill pool, like reading.
How much of the limit on TTFT decoding may take is looked for in shares: with more of it the decode pool is smaller, and
the prefill pool larger. Each share gives a count that never falls as load grows, and so does the least of them.

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
HOPELESS_TTFT_S = 1e-6  # sooner than anything is computed
SHARES: Final = tuple(part / 64 for part in range(1, 49))  # of a limit on TTFT, for the wait after reading


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
        return _paired(question, decoding, decode, _prefill(question, 0.0, decode))
    return _within_shares(question, decode)


def least_ttft_s(read_s: float, decoded_s: float) -> float:
    """Return the least limit on TTFT of which some share is enough for the wait after reading, and the rest for that.

        least = min over shares of max(read / (1 - share), decoded / share)

    >>> round(least_ttft_s(0.06, 0.03), 4)
    0.0914
    """
    return min(max(read_s / (1 - share), decoded_s / share) for share in SHARES)


def _within_shares(question: SizeQuestion, fewest: Deployment) -> PoolPair:
    """Return the smallest pools over all shares of the limit on TTFT; where none keep it, the fastest.

    With more of the limit the decode pool is no larger and the prefill pool no smaller: of the shares between two, none
    takes fewer GPUs than the one pool under the larger share and the other one under the smaller. A share that is too
    little for the one pool and leaves too little to the other ends the search.

    Args:
        question: what was asked.
        fewest: the decode pool, were its first tokens as late as they like.
    """
    found: list[PoolPair] = []
    fastest = interconnect_bytes_per_s(question.gpu, fewest.gpus)

    def look(first: int, last: int, reading: float, decoding: float) -> None:
        """Look at some shares, all of which take so many GPUs at least."""
        most = found[-1].gpus if found else inf
        if first > last or reading + decoding >= most:
            return
        middle = (first + last) // 2
        asked = decode_question(question, SHARES[middle])
        decode, reads_more = _best(asked), reading
        if reading + _gpus(decode) < most or not found:
            prefill = _prefill(question, SHARES[middle], decode)
            if _gpus(prefill) + _gpus(decode) < most:
                found.append(_paired(question, asked, decode, prefill))
            if interconnect_bytes_per_s(question.gpu, decode.gpus) == fastest:
                reads_more = _gpus(prefill)
        look(first, middle - 1, reading, _gpus(decode))
        look(middle + 1, last, reads_more, decoding)

    look(0, len(SHARES) - 1, 1, fewest.gpus)
    return found[-1] if found else _fastest(question)


def _fastest(question: SizeQuestion) -> PoolPair:
    """Return pools that nobody waits for less, where none keep the limit on TTFT: what misses least is the fastest."""
    hopeless = replace(question, limits=replace(question.limits, ttft_s=HOPELESS_TTFT_S))
    asked = decode_question(hopeless, SHARES[0])
    decode = _best(asked)
    return _paired(question, asked, decode, _prefill(hopeless, SHARES[0], decode))


def _gpus(pool: Deployment) -> float:
    """Return the GPUs of a pool; infinite where it does not carry the load."""
    return pool.gpus if pool.is_feasible else inf


def _best(question: SizeQuestion) -> Deployment:
    return best_of(question, deployments(question))


def _paired(question: SizeQuestion, decoding: SizeQuestion, decode: Deployment, prefill: Deployment) -> PoolPair:
    """Return both pools, seen at the asked load."""
    return PoolPair(
        prefill=prefill,
        decode=decode,
        decoding=decoding,
        interconnect_bytes_per_s=interconnect_bytes_per_s(question.gpu, decode.gpus),
        read=prefill.seen(),
        decoded=decode.seen(),
    )


def _prefill(question: SizeQuestion, share: float, decode: Deployment) -> Deployment:
    """Return the prefill pool, within what a decode pool leaves of the limit on TTFT for reading and sending."""
    asked = question.limits
    rate = interconnect_bytes_per_s(question.gpu, decode.gpus)
    load = replace(question.load, phase="prefill", output_tokens=FIRST_TOKEN, sent_bytes_per_s=rate)
    left_s = None if asked.ttft_s is None else (1 - share) * asked.ttft_s
    limited = replace(question, load=load, limits=Limits(ttft_s=left_s, percentile=asked.percentile))
    return best(deployments(limited), limited)


def interconnect_bytes_per_s(gpu: Gpu, gpus: int) -> float:
    """Return the rate between pools: the fast fabric while it joins them all, else the network. [bytes/s]."""
    return (
        gpu.scale_up_bytes_per_s if gpus < gpu.scale_up_domain_gpus > gpu.gpus_per_node else gpu.scale_out_bytes_per_s
    )
