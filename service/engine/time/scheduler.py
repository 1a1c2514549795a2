"""Continuous batching, iteration by iteration, as the engine schedules it.

Running requests each take one token of the step's budget; what is left goes to prompts, first come
first served, in chunks. A request joins when a slot and the blocks of its prompt are free; when a
decoding request finds no block, the latest one is sent back to compute everything again. Equal
iterations are skipped over in one go.

Sources:
    vLLM 0.33, vllm/v1/core/sched/scheduler.py (Scheduler.schedule) and SchedulerConfig.
    TensorRT-LLM, CapacitySchedulerPolicy.GUARANTEED_NO_EVICT.
"""

from array import array
from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from math import inf
from typing import Literal

from service.engine.inputs import Limits
from service.engine.time.results import Distribution
from service.engine.time.steps import StepTimer

LatencyLimit = Literal["ttft", "tpot"]
# Kernels are nearly linear in context meanwhile.
LONGEST_SKIP = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The lengths of one request."""

    input_tokens: int
    output_tokens: int
    cached_tokens: int = 0  # of the prompt, computed before the simulation starts


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedLoad:
    """Requests in order of arrival; those before and after the measured ones only keep the engine busy."""

    requests: tuple[Request, ...]
    concurrency: int | None  # users of a closed loop, who send the next request when the last is answered
    arrivals_s: tuple[float, ...] = ()  # of an open loop, one for each request
    request_rate_per_s: float | None = None  # of an open loop
    first_measured: int = 0
    measured: int | None = None  # None: all of the rest

    @property
    def last_measured(self) -> int:
        """Return the index behind the last measured request."""
        return len(self.requests) if self.measured is None else self.first_measured + self.measured


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockPool:
    """The cache: how many blocks there are, and how many a request of a given length holds.

    `tokens` and `blocks` are knots of a rising function, linear between them and beyond the last.
    """

    num_blocks: float
    tokens: tuple[float, ...]
    blocks: tuple[float, ...]

    def of_request(self, tokens: float) -> float:
        """Return the blocks of one request. [blocks]."""
        knots = self.tokens
        right = min(max(bisect_right(knots, tokens), 1), len(knots) - 1)
        left = right - 1
        slope = (self.blocks[right] - self.blocks[left]) / (knots[right] - knots[left])
        return self.blocks[left] + slope * (tokens - knots[left])


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerSettings:
    """The engine's settings that shape its batches."""

    max_num_batched_tokens: int  # [tokens]
    max_num_seqs: int
    prefix_cache_hit_fraction: float = 0.0
    reserves_output: bool = False  # a request joins only with room for its last token: no eviction
    tokens_per_step: float = 1.0  # above 1 with speculative decoding: accepted drafts and the model's own
    tokens_scheduled: int = 1  # of each decoding request, accepted or not


@dataclass(frozen=True, slots=True)
class Sample:
    """Measured values, in order. [s]."""

    ordered: "array[float]"

    @property
    def mean(self) -> float:
        """Return the mean; 0 of nothing."""
        return sum(self.ordered) / len(self.ordered) if self.ordered else 0.0

    def percentile(self, percent: float) -> float:
        """Return a percentile by nearest rank; 0 of nothing."""
        count = len(self.ordered)
        return self.ordered[min(int(percent / 100 * count), count - 1)] if count else 0.0

    def distribution(self) -> Distribution:
        """Return mean and the published percentiles."""
        return Distribution(
            mean=self.mean, p50=self.percentile(50.0), p95=self.percentile(95.0), p99=self.percentile(99.0)
        )

    def later(self, seconds: float) -> "Sample":
        """Return every value so many seconds larger."""
        return Sample(array("d", [value + seconds for value in self.ordered]))


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleResult:
    """What users of the simulated load see, and what the engine did."""

    ttft_s: Sample
    tpot_s: Sample
    itl_s: Distribution
    end_to_end_s: Sample
    requests_per_s: float
    output_tokens_per_s: float
    queue_growth_per_s: float  # requests that wait more, per second; about 0 when the load is carried
    mean_running: float
    max_kv_fraction: float  # most blocks in use at once / blocks
    preemptions: int
    duration_s: float


@dataclass(slots=True)
class _Run:
    """A request on its way."""

    index: int
    arrival_s: float
    prompt_tokens: int  # grows by what was generated when the request is preempted
    steps_left: int  # iterations that decode it
    output_tokens: int
    cached_tokens: int
    computed_tokens: int = 0
    first_token_s: float = -1.0
    joined_step: int = 0  # decode step at which the context was `context_tokens`
    context_tokens: float = 0.0
    finish_step: int = 0
    is_decoding: bool = False
    reserved_blocks: float = 0.0


@dataclass(slots=True)
class _Samples:
    """What is measured on the way."""

    ttft_s: list[float] = field(default_factory=list)
    tpot_s: list[float] = field(default_factory=list)
    end_to_end_s: list[float] = field(default_factory=list)
    intervals: list[tuple[float, float]] = field(default_factory=list)  # seconds, tokens made after them
    arrived: list[float] = field(default_factory=list)
    finished: list[float] = field(default_factory=list)
    output_tokens: int = 0


class _Watch:
    """Tells as soon as it is certain that a percentile of the measured requests breaks a limit."""

    def __init__(self, load: SimulatedLoad, limits: Limits) -> None:
        measured = load.requests[load.first_measured : load.last_measured]
        self.ttft_s = inf if limits.ttft_s is None else limits.ttft_s
        self.tpot_s = inf if limits.tpot_s is None else limits.tpot_s
        self.ttft_left = _too_many(len(measured), limits.percentile)
        self.tpot_left = _too_many(sum(it.output_tokens > 1 for it in measured), limits.percentile)

    def answered(self, ttft_s: float, tpot_s: float) -> LatencyLimit | None:
        """Return the limit that is broken for certain, now that one more request was answered."""
        if ttft_s > self.ttft_s:
            self.ttft_left -= 1
            if not self.ttft_left:
                return "ttft"
        if tpot_s > self.tpot_s:
            self.tpot_left -= 1
            if not self.tpot_left:
                return "tpot"
        return None


def _too_many(count: int, percent: float) -> int:
    """Return how many values beyond a limit put the percentile, by nearest rank, beyond it."""
    return count - min(int(percent / 100 * count), count - 1)


class _Simulation:
    """The state of one engine; one iteration at a time, or many equal ones at once."""

    def __init__(
        self,
        timer: StepTimer,
        load: SimulatedLoad,
        pool: BlockPool,
        settings: SchedulerSettings,
        watch: _Watch | None = None,
    ) -> None:
        self.watch = watch
        self.broken: LatencyLimit | None = None
        self.timer, self.pool, self.settings, self.load = timer, pool, settings, load
        self.now_s = 0.0
        self.step_index = 0
        self.step_s = 0.0  # the latest iteration
        self.next_index = 0
        self.users: deque[float] = deque()  # when each free user of a closed loop sends
        self.waiting: deque[_Run] = deque()
        self.prefilling: list[_Run] = []
        self.decoding: list[tuple[int, int, _Run]] = []  # heap by last step
        self.stack: list[_Run] = []  # decoding, in order of admission; finished ones are dropped lazily
        self.num_decoding = 0
        self.context_sum = 0.0
        self.measured_left = load.last_measured - load.first_measured
        self.preemptions = 0
        self.reserved = 0.0  # blocks that running requests may come to hold
        self.pushes = 0  # breaks ties of the heap
        longest = max(it.input_tokens + it.output_tokens for it in load.requests)
        # So many requests fit whatever happens; below, nobody needs to count blocks.
        self.always_fit = pool.num_blocks / max(pool.of_request(longest), 1e-9)
        self.max_kv_fraction = 0.0
        self.running_time = 0.0
        self.samples = _Samples()
        # When the scheduler may first see each request, after it came.
        overheads = [timer.request_overhead_s(it.input_tokens) for it in load.requests]
        arrivals = load.arrivals_s or (0.0,) * len(overheads)
        self.known_s = [at + overhead for at, overhead in zip(arrivals, overheads, strict=True)]
        self.planned_ahead = timer.steps_planned_ahead
        if load.concurrency is not None:
            self.users.extend([0.0] * min(load.concurrency, len(load.requests)))

    def run(self) -> None:
        """Serve until every measured request is answered, or too many of them break a limit."""
        while self.measured_left and self.broken is None:
            if self._next_arrival_s() <= self.now_s:
                self._admit_arrivals()
            chunks = self._chunks() if self.waiting or self.prefilling else None
            if chunks:
                self._mixed_step(chunks)
            elif self.num_decoding:
                self._decode_steps()
            else:
                self.step_s = 0.0
                self.now_s = max(self.now_s, self._next_arrival_s())

    # -- arrivals --------------------------------------------------------------------------------

    def _next_arrival_s(self) -> float:
        """Return when the scheduler first sees the next request: it plans one iteration ahead."""
        if self.next_index >= len(self.known_s):
            return inf
        known_s = self.known_s[self.next_index] + self.planned_ahead * self.step_s
        if self.load.concurrency is None:
            return known_s
        return self.users[0] + known_s if self.users else inf

    def _admit_arrivals(self) -> None:
        while self._next_arrival_s() <= self.now_s:
            index, load = self.next_index, self.load
            request = load.requests[index]
            self.waiting.append(
                _Run(
                    index=index,
                    arrival_s=load.arrivals_s[index] if load.concurrency is None else self.users.popleft(),
                    prompt_tokens=request.input_tokens,
                    steps_left=max(round(request.output_tokens / self.settings.tokens_per_step), 1),
                    output_tokens=request.output_tokens,
                    cached_tokens=request.cached_tokens,
                )
            )
            self.next_index += 1

    # -- blocks ----------------------------------------------------------------------------------

    def _blocks_in_use(self, later_steps: float = 0.0) -> float:
        """Return the blocks held so many steps from now, by the mean length of decoding requests."""
        used = 0.0
        if self.num_decoding:
            later = later_steps * self.settings.tokens_per_step
            used = self.num_decoding * self.pool.of_request(self.context_sum / self.num_decoding + later)
        for run in self.prefilling:
            used += self.pool.of_request(run.prompt_tokens)
        return used

    def _make_room(self) -> None:
        """Send back the latest requests until every decoding one finds its next block."""
        if self.num_decoding + len(self.prefilling) < self.always_fit:
            return
        used = self._blocks_in_use(1.0)
        while used > self.pool.num_blocks and self.num_decoding + len(self.prefilling) > 1:
            run = self.prefilling.pop() if self.prefilling else self._stop_latest()
            run.computed_tokens = run.cached_tokens = 0
            self.preemptions += 1
            self.waiting.appendleft(run)
            used = self._blocks_in_use(1.0)

    def _stop_latest(self) -> _Run:
        """Return the decoding request that joined last, as a prompt of everything it has so far."""
        run = self.stack.pop()
        while not run.is_decoding:
            run = self.stack.pop()
        context = run.context_tokens + (self.step_index - run.joined_step) * self.settings.tokens_per_step
        self.context_sum -= context
        self.num_decoding -= 1
        run.steps_left = run.finish_step - self.step_index
        run.prompt_tokens = int(context)
        run.is_decoding = False
        return run

    # -- scheduling ------------------------------------------------------------------------------

    def _chunks(self) -> list[tuple[_Run, int]]:
        """Return the prompts to compute in this step: (request, tokens)."""
        budget = self.settings.max_num_batched_tokens - self.num_decoding * self.settings.tokens_scheduled
        chunks: list[tuple[_Run, int]] = []
        for run in self.prefilling:
            count = min(run.prompt_tokens - run.computed_tokens, budget)
            if count > 0:
                chunks.append((run, count))
                budget -= count
        if self.waiting:
            self._join(chunks, budget)
        return chunks

    def _join(self, chunks: list[tuple[_Run, int]], budget: int) -> None:
        """Let waiting requests join while slots, blocks and budget last."""
        waiting, settings = self.waiting, self.settings
        reserves = settings.reserves_output
        if not reserves and self.num_decoding + len(self.prefilling) + len(waiting) < self.always_fit:
            self._join_all(chunks, budget)
            return
        free = self.pool.num_blocks - (self.reserved if reserves else self._blocks_in_use(1.0))
        while waiting and budget > 0 and self.num_decoding + len(self.prefilling) < settings.max_num_seqs:
            run = waiting[0]
            last_token = run.steps_left * settings.tokens_per_step if reserves else 0
            needed = self.pool.of_request(run.prompt_tokens + last_token)
            if needed > free and (self.num_decoding or self.prefilling):
                break
            budget -= self._start_prefill(chunks, budget)
            free -= needed
            if reserves:
                run.reserved_blocks = needed
                self.reserved += needed

    def _join_all(self, chunks: list[tuple[_Run, int]], budget: int) -> None:
        """Let waiting requests join where there are blocks for all of them."""
        while self.waiting and budget > 0 and self.num_decoding + len(self.prefilling) < self.settings.max_num_seqs:
            budget -= self._start_prefill(chunks, budget)

    def _start_prefill(self, chunks: list[tuple[_Run, int]], budget: int) -> int:
        """Take the first waiting request into the step; return the tokens it takes of the budget."""
        run = self.waiting.popleft()
        hit = max(int(run.prompt_tokens * self.settings.prefix_cache_hit_fraction), run.cached_tokens)
        run.computed_tokens = min(hit, run.prompt_tokens - 1)
        count = min(run.prompt_tokens - run.computed_tokens, budget)
        self.prefilling.append(run)
        chunks.append((run, count))
        return count

    def _mixed_step(self, chunks: list[tuple[_Run, int]]) -> None:
        """Compute prompt chunks, and one token of every decoding request."""
        tokens = 0
        pairs = 0.0
        for run, count in chunks:
            tokens += count
            pairs += count * (run.computed_tokens + 0.5 * count)
        decoding = self.num_decoding
        context = self.context_sum / decoding if decoding else 0.0
        self._pass(self.timer.mixed_s(tokens, pairs / tokens, decoding, context), 1)
        for run, count in chunks:
            run.computed_tokens += count
            if run.computed_tokens >= run.prompt_tokens:
                self._start_decoding(run)
        self.prefilling = [run for run in self.prefilling if run.computed_tokens < run.prompt_tokens]
        self.max_kv_fraction = max(self.max_kv_fraction, self._blocks_in_use() / self.pool.num_blocks)
        self._finish()
        if self.num_decoding:
            self._make_room()

    def _start_decoding(self, run: _Run) -> None:
        if run.first_token_s < 0:
            run.first_token_s = self.now_s
        run.steps_left -= 1
        run.joined_step = self.step_index
        run.context_tokens = run.prompt_tokens + 1
        run.finish_step = self.step_index + run.steps_left
        run.is_decoding = True
        self.num_decoding += 1
        self.context_sum += run.context_tokens
        self.stack.append(run)
        self.pushes += 1
        heappush(self.decoding, (run.finish_step, self.pushes, run))

    def _pass(self, step_s: float, steps: int) -> None:
        """Let time pass: every decoding request makes its tokens of each step."""
        seconds = steps * step_s
        self.now_s += seconds
        self.step_s = step_s
        self.step_index += steps
        self.running_time += seconds * (self.num_decoding + len(self.prefilling))
        if self.num_decoding:
            self.context_sum += steps * self.num_decoding * self.settings.tokens_per_step
            self.samples.intervals.append((step_s, steps * self.num_decoding))

    def _decode_steps(self) -> None:
        """Skip to the next step in which something changes."""
        self._drop_preempted()
        decoding, grown = self.num_decoding, self.settings.tokens_per_step
        context = self.context_sum / decoding
        steps = min(self.decoding[0][0] - self.step_index, LONGEST_SKIP)
        roomy = self.num_decoding < self.always_fit and not self.prefilling
        if steps > 1 and not roomy and self._blocks_in_use(steps) > self.pool.num_blocks:
            steps = self._steps_with_room(steps)
        step_s = self.timer.decode_s(decoding, context + 0.5 * (steps - 1) * grown)
        self.step_s = step_s  # what a request that comes meanwhile sits out
        until = self._next_arrival_s() - self.now_s
        # Behind requests that wait already, a new one changes nothing.
        if until < steps * step_s and not self.waiting:
            steps = max(min(steps, int(until / step_s) + 1), 1)
            step_s = self.timer.decode_s(decoding, context + 0.5 * (steps - 1) * grown)
        self._pass(step_s, steps)
        self._finish()
        if self.num_decoding:
            self._make_room()

    def _steps_with_room(self, steps: int) -> int:
        low, high = 1, steps
        while high - low > 1:
            middle = (low + high) // 2
            if self._blocks_in_use(middle) > self.pool.num_blocks:
                high = middle
            else:
                low = middle
        return low

    def _drop_preempted(self) -> None:
        heap = self.decoding
        while heap and not (heap[0][2].is_decoding and heap[0][2].finish_step == heap[0][0]):
            heappop(heap)

    def _finish(self) -> None:
        """Let requests go that have made their last token; in a closed loop their users send the next."""
        heap = self.decoding
        while heap and heap[0][0] <= self.step_index:
            finish_step, _, run = heappop(heap)
            if not run.is_decoding or run.finish_step != finish_step:
                continue
            run.is_decoding = False
            self.num_decoding -= 1
            self.reserved -= run.reserved_blocks
            self.context_sum -= run.context_tokens + (self.step_index - run.joined_step) * self.settings.tokens_per_step
            self._record(run)
            if self.load.concurrency is not None:
                self.users.append(self.now_s)
        if len(self.stack) > 4 * self.num_decoding + 64:
            self.stack = [run for run in self.stack if run.is_decoding]

    def _record(self, run: _Run) -> None:
        if not self.load.first_measured <= run.index < self.load.last_measured:
            return
        samples = self.samples
        self.measured_left -= 1
        samples.output_tokens += run.output_tokens
        samples.arrived.append(run.arrival_s)
        samples.finished.append(self.now_s)
        ttft_s, tpot_s = run.first_token_s - run.arrival_s, 0.0
        samples.ttft_s.append(ttft_s)
        samples.end_to_end_s.append(self.now_s - run.arrival_s)
        if run.output_tokens > 1:
            tpot_s = (self.now_s - run.first_token_s) / (run.output_tokens - 1)
            samples.tpot_s.append(tpot_s)
        if self.watch is not None:
            self.broken = self.broken or self.watch.answered(ttft_s, tpot_s)


def simulate(timer: StepTimer, load: SimulatedLoad, *, pool: BlockPool, settings: SchedulerSettings) -> ScheduleResult:
    """Return what the measured requests of a load see on one engine.

    Args:
        timer: seconds of one iteration.
        load: the requests, open or closed loop.
        pool: the cache of one rank.
        settings: budget and caps of a batch.
    """
    simulation = _Simulation(timer, load, pool, settings)
    simulation.run()
    return _result(simulation, load)


def simulate_within(
    timer: StepTimer, load: SimulatedLoad, *, pool: BlockPool, settings: SchedulerSettings, limits: Limits
) -> ScheduleResult | LatencyLimit:
    """Return what `simulate` does where limits are kept at their percentile, or a limit that is not: sooner.

    Args:
        timer: seconds of one iteration.
        load: the requests, open or closed loop.
        pool: the cache of one rank.
        settings: budget and caps of a batch.
        limits: latency at a percentile.
    """
    simulation = _Simulation(timer, load, pool, settings, _Watch(load, limits))
    simulation.run()
    return simulation.broken or _result(simulation, load)


def _result(simulation: _Simulation, load: SimulatedLoad) -> ScheduleResult:
    samples = simulation.samples
    rate = _rate(load, samples)
    return ScheduleResult(
        ttft_s=Sample(array("d", sorted(samples.ttft_s))),
        tpot_s=Sample(array("d", sorted(samples.tpot_s))),
        itl_s=weighted_distribution(samples.intervals),
        end_to_end_s=Sample(array("d", sorted(samples.end_to_end_s))),
        requests_per_s=rate,
        output_tokens_per_s=rate * samples.output_tokens / len(samples.finished),
        queue_growth_per_s=0.0 if load.concurrency is not None else _growth(samples),
        mean_running=simulation.running_time / simulation.now_s,
        max_kv_fraction=min(simulation.max_kv_fraction, 1.0),
        preemptions=simulation.preemptions,
        duration_s=max(samples.finished) - min(samples.arrived),
    )


def _rate(load: SimulatedLoad, samples: _Samples) -> float:
    """Return requests answered per second.

    A benchmark that measures every request divides by its whole duration. In a steady closed loop
    users and mean duration tell it (Little's law); in an open one arrivals less those that pile up.
    """
    count = len(samples.finished)
    if load.request_rate_per_s is not None:
        return max(load.request_rate_per_s - _growth(samples), 0.0)
    if load.first_measured and load.concurrency is not None:
        return load.concurrency * count / sum(samples.end_to_end_s)
    return count / (max(samples.finished) - min(samples.arrived))


def _growth(samples: _Samples) -> float:
    """Return how many more requests wait every second: answers per second x the rise of the wait over time."""
    by_arrival = sorted(zip(samples.arrived, samples.ttft_s, strict=True))
    quarter = len(by_arrival) // 4
    first_s, last_s = min(samples.finished), max(samples.finished)
    if not quarter or by_arrival[-1][0] <= by_arrival[0][0] or last_s <= first_s:
        return 0.0
    early, late = by_arrival[:quarter], by_arrival[-quarter:]
    rise_s = sum(wait for _, wait in late) / quarter - sum(wait for _, wait in early) / quarter
    apart_s = sum(at for at, _ in late) / quarter - sum(at for at, _ in early) / quarter
    answered_per_s = (len(by_arrival) - 1) / (last_s - first_s)
    return max(answered_per_s * rise_s / apart_s, 0.0)


def weighted_distribution(values: Sequence[tuple[float, float]]) -> Distribution:
    """Return mean and percentiles of (value, weight) pairs."""
    total = sum(weight for _, weight in values)
    if not total:
        return Distribution(mean=0.0, p50=0.0, p95=0.0, p99=0.0)
    ordered = sorted(values)
    marks = []
    passed = 0.0
    targets = [0.5 * total, 0.95 * total, 0.99 * total]
    for value, weight in ordered:
        passed += weight
        while targets and passed >= targets[0]:
            marks.append(value)
            targets.pop(0)
    marks += [ordered[-1][0]] * (3 - len(marks))
    mean = sum(value * weight for value, weight in values) / total
    return Distribution(mean=mean, p50=marks[0], p95=marks[1], p99=marks[2])
