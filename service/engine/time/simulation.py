"""A load simulated on one engine: what goes into the compiled loop, and what comes out."""

from math import inf
from threading import local
from typing import Final

import numpy as np

from service.engine.errors import InvalidQuestionError
from service.engine.inputs import Limits
from service.engine.patience import go_on
from service.engine.time.batching import BlockPool, SchedulerSettings
from service.engine.time.records import (
    BREAKS_TPOT,
    BREAKS_TTFT,
    ENGINE,
    ENTRY,
    HEAP_SLACK,
    PLACE,
    RUN,
    STATE,
    TOO_LONG,
    Records,
    new_records,
)
from service.engine.time.samples import ScheduleResult, schedule_result
from service.engine.time.shared import Reach, Told
from service.engine.time.steps import Timing
from service.engine.time.traffic import SimulatedLoad

# A context may grow by this share in iterations that are taken for alike; kernels are nearly linear meanwhile.
SKIP_FRACTION: Final = 1 / 8
# So many tokens of decoding requests are nearly nothing, whatever their context.
LONGEST_SKIP: Final = 512
# The work of one simulation: about two seconds.
MOST_ITERATIONS: Final = 10_000_000
# Requests of one simulation: about 40 MB.
MOST_REQUESTS: Final = 131_072
LAST_STEPS: Final = 2  # may round an answer up, and look for the next token's block
FEWEST_BLOCKS: Final = 1e-9  # of a request, as the loop counts them


class Machine:
    """One engine ready to serve: its settings, cache and step times as records."""

    def __init__(self, timing: Timing, pool: BlockPool, settings: SchedulerSettings) -> None:
        """Write everything down that does not change with the load.

        Args:
            timing: seconds of one iteration, and of what a request waits outside them.
            pool: the cache of one rank.
            settings: budget and caps of a batch.
        """
        self.timing, self.pool, self.settings = timing, pool, settings
        self._engine = _engine_of(pool, settings)
        self.iterations = 0  # of the latest simulation

    def take_each_step(self) -> None:
        """Simulate one iteration at a time from now on: to see what taking like ones together changes."""
        self._engine["skip_fraction"], self._engine["longest_skip"] = 0.0, 1

    @property
    def bounds(self) -> tuple[int, int]:
        """Return its token budget and the requests that it runs at once."""
        return self.settings.max_num_batched_tokens, self.settings.max_num_seqs

    def always_fits(self, reach: Reach) -> bool:
        """Return whether its cache holds so many requests and one more, whatever their length."""
        longest = reach.longest_tokens + LAST_STEPS * self.settings.tokens_per_step
        blocks = max(self.pool.of_request(longest), FEWEST_BLOCKS)
        return reach.running + 1 < self.pool.num_blocks / blocks

    def leaves_room(self, reach: Reach) -> tuple[bool, bool]:
        """Return whether steps would have room for more tokens, and for more requests."""
        settings = self.settings
        tokens = max(reach.tokens, reach.running * settings.tokens_scheduled)
        return tokens < settings.max_num_batched_tokens, reach.running < settings.max_num_seqs

    def simulated(
        self, load: SimulatedLoad, limits: Limits | None = None, *, is_verdict: bool = False
    ) -> ScheduleResult | Told:
        """Return what the measured requests of a load see, or a limit that they see broken, sooner.

        Args:
            load: the requests, open or closed loop.
            limits: latency at a percentile; None: serve to the end.
            is_verdict: nobody asks what they see where no limit is broken, but for that. [yes or no]

        Raises:
            InvalidQuestionError: the simulation would take too long, or too many requests at once.
        """
        go_on()
        count = len(load.requests)
        if count > MOST_REQUESTS:
            raise too_much(f"it takes {count:,} requests, and at most {MOST_REQUESTS:,} are simulated")
        from service.engine.time.loop import as_compiled, serve  # noqa: PLC0415 - loading the compiler takes half a second

        state, runs, places, heap = _workspace(count)
        engine = _own.engine_like(self._engine)
        engine["users"], engine["request_rate_per_s"] = load.concurrency or 0, load.request_rate_per_s or 1.0
        engine["together"], engine["num_blocks"] = load.together, self.pool.num_blocks * load.cache_share
        engine["first_measured"], engine["last_measured"] = load.first_measured, load.last_measured
        if limits is not None:
            _write_limits(engine, state, load, limits)
        serve(*as_compiled(load.requests, self.timing.records, engine, state, runs, places, heap))
        self.iterations = int(state["iterations"][0])
        ended = int(state["ended"][0])
        if ended == TOO_LONG:
            raise too_much(f"it takes more than {MOST_ITERATIONS:,} steps")
        used = state[0]
        reach = Reach(int(used["most_tokens"]), int(used["most_running"]), int(used["longest_tokens"]))
        if ended in (BREAKS_TTFT, BREAKS_TPOT):
            return Told("ttft" if ended == BREAKS_TTFT else "tpot", reach)
        if is_verdict:
            return Told(None, reach)
        return schedule_result(load, used, runs, self.pool.num_blocks * load.cache_share, reach)


def too_much(reason: str) -> InvalidQuestionError:
    """Return the refusal of a load that takes too long to simulate."""
    return InvalidQuestionError(
        f"this load is too much work to simulate: {reason}",
        field="max_num_batched_tokens",
        accepted="a larger max_num_batched_tokens, a smaller max_num_seqs, or shorter requests",
    )


def _engine_of(pool: BlockPool, settings: SchedulerSettings) -> Records:
    engine, knots = new_records(1, ENGINE), len(pool.tokens)
    for name in (
        "max_num_batched_tokens",
        "max_num_seqs",
        "steps_planned_ahead",
        "tokens_scheduled",
        "reserves_output",
        "expects_output",
        "reads_alone",
        "read_every",
        "copies",
        "own_share",
        "tokens_per_step",
        "steps_spread",
        "prefix_cache_hit_fraction",
    ):
        engine[name] = getattr(settings, name)
    engine["num_blocks"], engine["knots"] = pool.num_blocks, knots
    engine["knot_tokens"][0, :knots], engine["knot_blocks"][0, :knots] = pool.tokens, pool.blocks
    engine["skip_fraction"], engine["longest_skip"] = SKIP_FRACTION, LONGEST_SKIP
    engine["most_iterations"] = MOST_ITERATIONS
    engine["ttft_limit_s"] = engine["tpot_limit_s"] = inf
    return engine


def _write_limits(engine: Records, state: Records, load: SimulatedLoad, limits: Limits) -> None:
    """Say how many measured requests may miss each limit before its percentile does."""
    if limits.ttft_s is not None:
        engine["ttft_limit_s"] = limits.ttft_s
        state["ttft_left"] = _too_many(load.last_measured - load.first_measured, limits.percentile)
    if limits.tpot_s is not None:
        engine["tpot_limit_s"] = limits.tpot_s
        longer = load.requests["output_tokens"][load.first_measured : load.last_measured] > 1
        state["tpot_left"] = _too_many(int(np.count_nonzero(longer)), limits.percentile)


def _too_many(count: int, percent: float) -> int:
    """Return how many values beyond a limit put the percentile, by nearest rank, beyond it."""
    return count - min(int(percent / 100 * count), count - 1)


class _Workspace(local):
    """Each thread's own records, as large as its largest simulation so far: new memory has its price."""

    def __init__(self) -> None:
        self.state, self.engine = new_records(1, STATE), new_records(1, ENGINE)
        self._state_bytes, self._engine_bytes = self.state.view(np.uint8), self.engine.view(np.uint8)
        self.room = 0
        self.runs: Records = None
        self.places: Records = None
        self.heap: Records = None

    def begin(self) -> None:
        """Forget the state; field by field, as records are filled and copied, takes ten times as long as in bytes."""
        self._state_bytes.fill(0)

    def engine_like(self, engine: Records) -> Records:
        self._engine_bytes[:] = engine.view(np.uint8)
        return self.engine

    def grow(self, count: int) -> None:
        self.room = 1 << (count - 1).bit_length()
        self.runs, self.places = new_records(self.room, RUN), new_records(self.room, PLACE)
        self.heap = new_records(2 * self.room + HEAP_SLACK, ENTRY)


_own = _Workspace()


def _workspace(count: int) -> tuple[Records, Records, Records, Records]:
    """Return records for so many requests; the state is zero, the rest holds what was there before."""
    if count > _own.room:
        _own.grow(count)
    _own.begin()
    ring = 1 << (count - 1).bit_length()
    return _own.state, _own.runs[:count], _own.places[:ring], _own.heap[: 2 * count + HEAP_SLACK]
