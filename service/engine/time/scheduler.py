"""Continuous batching, iteration by iteration, as the engine schedules it.

Running requests each take one token of the step's budget; what is left goes to prompts, first come
first served, in chunks. A request joins when a slot and the blocks of its prompt are free. Equal
iterations are skipped over in one go.

Sources:
    vLLM 0.33, vllm/v1/core/sched/scheduler.py (Scheduler.schedule) and SchedulerConfig.
    TensorRT-LLM, CapacitySchedulerPolicy.GUARANTEED_NO_EVICT.
"""

from collections import deque
from math import inf

from service.engine.inputs import Limits
from service.engine.time.batching import BlockPool, SchedulerSettings
from service.engine.time.running import Run, Running
from service.engine.time.samples import Measurements, ScheduleResult, sample_of, weighted_distribution
from service.engine.time.steps import Timing
from service.engine.time.traffic import SimulatedLoad
from service.engine.time.watch import LatencyLimit, Watch

# Kernels are nearly linear in context meanwhile.
LONGEST_SKIP = 512


class _Simulation(Running):
    """One engine over time; one iteration at a time, or many equal ones at once."""

    def __init__(
        self,
        timing: Timing,
        load: SimulatedLoad,
        pool: BlockPool,
        settings: SchedulerSettings,
        watch: Watch | None = None,
    ) -> None:
        super().__init__(pool, settings, load.requests)
        self.watch = watch
        self.broken: LatencyLimit | None = None
        self.steps, self.load = timing.steps, load
        self.now_s = 0.0
        self.step_s = 0.0  # the latest iteration
        self.next_index = 0
        self.users: deque[float] = deque()  # when each free user of a closed loop sends
        self.measured_left = load.last_measured - load.first_measured
        self.max_kv_fraction = 0.0
        self.running_time = 0.0
        self.measurements = Measurements()
        # When the scheduler may first see each request, after it came.
        overheads = [timing.request_overhead.of_prompt(request.input_tokens) for request in load.requests]
        arrivals = load.arrivals_s or (0.0,) * len(overheads)
        self.known_s = [at + overhead for at, overhead in zip(arrivals, overheads, strict=True)]
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
        known_s = self.known_s[self.next_index] + self.settings.steps_planned_ahead * self.step_s
        if self.load.concurrency is None:
            return known_s
        return self.users[0] + known_s if self.users else inf

    def _admit_arrivals(self) -> None:
        while self._next_arrival_s() <= self.now_s:
            index, load = self.next_index, self.load
            request = load.requests[index]
            self.waiting.append(
                Run(
                    index=index,
                    arrival_s=load.arrivals_s[index] if load.concurrency is None else self.users.popleft(),
                    prompt_tokens=request.input_tokens,
                    steps_left=max(round(request.output_tokens / self.settings.tokens_per_step), 1),
                    output_tokens=request.output_tokens,
                    cached_tokens=request.cached_tokens,
                )
            )
            self.next_index += 1

    # -- scheduling ------------------------------------------------------------------------------

    def _chunks(self) -> list[tuple[Run, int]]:
        """Return the prompts to compute in this step: (request, tokens)."""
        budget = self.settings.max_num_batched_tokens - self.num_decoding * self.settings.tokens_scheduled
        chunks: list[tuple[Run, int]] = []
        for run in self.prefilling:
            count = min(run.prompt_tokens - run.computed_tokens, budget)
            if count > 0:
                chunks.append((run, count))
                budget -= count
        if self.waiting:
            self._join(chunks, budget)
        return chunks

    def _join(self, chunks: list[tuple[Run, int]], budget: int) -> None:
        """Let waiting requests join while slots, blocks and budget last."""
        waiting, settings = self.waiting, self.settings
        reserves = settings.reserves_output
        if not reserves and self.num_decoding + len(self.prefilling) + len(waiting) < self.always_fit:
            self._join_all(chunks, budget)
            return
        free = self.pool.num_blocks - (self.reserved if reserves else self.blocks_in_use(1.0))
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

    def _join_all(self, chunks: list[tuple[Run, int]], budget: int) -> None:
        """Let waiting requests join where there are blocks for all of them."""
        while self.waiting and budget > 0 and self.num_decoding + len(self.prefilling) < self.settings.max_num_seqs:
            budget -= self._start_prefill(chunks, budget)

    def _start_prefill(self, chunks: list[tuple[Run, int]], budget: int) -> int:
        """Take the first waiting request into the step; return the tokens it takes of the budget."""
        run = self.waiting.popleft()
        hit = max(int(run.prompt_tokens * self.settings.prefix_cache_hit_fraction), run.cached_tokens)
        run.computed_tokens = min(hit, run.prompt_tokens - 1)
        count = min(run.prompt_tokens - run.computed_tokens, budget)
        self.prefilling.append(run)
        chunks.append((run, count))
        return count

    # -- iterations ------------------------------------------------------------------------------

    def _mixed_step(self, chunks: list[tuple[Run, int]]) -> None:
        """Compute prompt chunks, and one token of every decoding request."""
        tokens = 0
        pairs = 0.0
        for run, count in chunks:
            tokens += count
            pairs += count * (run.computed_tokens + 0.5 * count)
        decoding = self.num_decoding
        context = self.context_sum / decoding if decoding else 0.0
        self._pass(self.steps.mixed_s(tokens, pairs / tokens, decoding, context), 1)
        for run, count in chunks:
            run.computed_tokens += count
            if run.computed_tokens >= run.prompt_tokens:
                if run.first_token_s < 0:
                    run.first_token_s = self.now_s
                self.start_decoding(run)
        self.prefilling = [run for run in self.prefilling if run.computed_tokens < run.prompt_tokens]
        self.max_kv_fraction = max(self.max_kv_fraction, self.blocks_in_use() / self.pool.num_blocks)
        self._finish()

    def _decode_steps(self) -> None:
        """Skip to the next step in which something changes."""
        steps = self.steps_with_room(min(self.steps_to_next_finish(), LONGEST_SKIP))
        step_s = self.step_s = self._decode_s(steps)  # what a request that comes meanwhile sits out
        until = self._next_arrival_s() - self.now_s
        # Behind requests that wait already, a new one changes nothing.
        if until < steps * step_s and not self.waiting:
            steps = max(min(steps, int(until / step_s) + 1), 1)
            step_s = self._decode_s(steps)
        self._pass(step_s, steps)
        self._finish()

    def _decode_s(self, steps: int) -> float:
        """Return the seconds of each of so many iterations that only decode: of the one in the middle. [s]."""
        context = self.context_sum / self.num_decoding
        return self.steps.decode_s(self.num_decoding, context + 0.5 * (steps - 1) * self.settings.tokens_per_step)

    def _pass(self, step_s: float, steps: int) -> None:
        """Let time pass: every decoding request makes its tokens of each step."""
        seconds = steps * step_s
        self.now_s += seconds
        self.step_s = step_s
        self.step_index += steps
        self.running_time += seconds * (self.num_decoding + len(self.prefilling))
        if self.num_decoding:
            self.context_sum += steps * self.num_decoding * self.settings.tokens_per_step
            self.measurements.intervals.append((step_s, steps * self.num_decoding))

    def _finish(self) -> None:
        """Let requests go that have made their last token; in a closed loop their users send the next."""
        for run in self.finished():
            self._record(run)
            if self.load.concurrency is not None:
                self.users.append(self.now_s)
        if self.num_decoding:
            self.make_room()

    def _record(self, run: Run) -> None:
        if not self.load.first_measured <= run.index < self.load.last_measured:
            return
        self.measured_left -= 1
        seen = self.measurements.answered(run.arrival_s, run.first_token_s, self.now_s, run.output_tokens)
        if self.watch is not None:
            self.broken = self.broken or self.watch.answered(*seen)

    def result(self) -> ScheduleResult:
        """Return what the measured requests saw."""
        measured = self.measurements
        rate = measured.requests_per_s(self.load)
        return ScheduleResult(
            ttft_s=sample_of(measured.ttft_s),
            tpot_s=sample_of(measured.tpot_s),
            itl_s=weighted_distribution(measured.intervals),
            end_to_end_s=sample_of(measured.end_to_end_s),
            requests_per_s=rate,
            output_tokens_per_s=rate * measured.output_tokens / len(measured.finished),
            queue_growth_per_s=0.0 if self.load.concurrency is not None else measured.queue_growth_per_s(),
            mean_running=self.running_time / self.now_s,
            max_kv_fraction=min(self.max_kv_fraction, 1.0),
            preemptions=self.preemptions,
            duration_s=measured.duration_s,
        )


def simulate(timing: Timing, load: SimulatedLoad, *, pool: BlockPool, settings: SchedulerSettings) -> ScheduleResult:
    """Return what the measured requests of a load see on one engine.

    Args:
        timing: seconds of one iteration, and of what a request waits outside them.
        load: the requests, open or closed loop.
        pool: the cache of one rank.
        settings: budget and caps of a batch.
    """
    simulation = _Simulation(timing, load, pool, settings)
    simulation.run()
    return simulation.result()


def simulate_within(
    timing: Timing, load: SimulatedLoad, *, pool: BlockPool, settings: SchedulerSettings, limits: Limits
) -> ScheduleResult | LatencyLimit:
    """Return what `simulate` does where limits are kept at their percentile, or a limit that is not: sooner.

    Args:
        timing: seconds of one iteration, and of what a request waits outside them.
        load: the requests, open or closed loop.
        pool: the cache of one rank.
        settings: budget and caps of a batch.
        limits: latency at a percentile.
    """
    simulation = _Simulation(timing, load, pool, settings, Watch(load, limits))
    simulation.run()
    return simulation.broken or simulation.result()
