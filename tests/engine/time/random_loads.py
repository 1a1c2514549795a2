"""Random loads on random engines, simulated: run as a program, it prints what plain Python makes of them."""

import hashlib
import json
import random
import sys

import numpy as np

from service.engine.inputs import Limits
from service.engine.time.batching import BlockPool, SchedulerSettings
from service.engine.time.drafting import DraftingSteps, steps_spread, tokens_per_step
from service.engine.time.lengths import FixedLength, Length, LogNormalLength, UniformLength
from service.engine.time.records import ATTENDED, CONTEXTS, REQUESTS, TOKENS
from service.engine.time.results import Basis
from service.engine.time.samples import ScheduleResult
from service.engine.time.simulation import Machine
from service.engine.time.steps import RequestOverhead, StepTimer, Timing
from service.engine.time.traffic import Sender, SimulatedLoad, Traffic
from service.performance.tables import Curve, Row, Surface, TabledSteps, rising_rows

BASIS = Basis(
    name="random", is_measured=False, source="a seed", note="", overhead_source="a seed", expected_error_fraction=0.0
)


def rising(draw: random.Random, count: int, first: float, growth: float) -> tuple[float, ...]:
    values = [first]
    for _ in range(count - 1):
        values.append(values[-1] + draw.random() * growth)
        growth *= 1.7
    return tuple(values)


def random_steps(draw: random.Random) -> StepTimer:
    rows = [
        rising(draw, len(CONTEXTS), first, 1e-4)
        for first in rising(draw, len(REQUESTS), draw.uniform(0.001, 0.02), 1e-4)
    ]
    return TabledSteps(
        decode=Surface(rows=REQUESTS, columns=CONTEXTS, values=Row(rising_rows(np.array(rows)))),
        tokens=Curve(knots=TOKENS, values=Row(rising(draw, len(TOKENS), 0.001, 1e-4))),
        attention=Curve(knots=ATTENDED, values=Row(rising(draw, len(ATTENDED), 1e-9, 1e-8))),
        step_overhead_s=draw.choice([0.0, 0.0005]),
        sequence_overhead_s=draw.choice([0.0, 1e-5]),
        mixed_overhead_s=draw.choice([0.0, 0.003]),
    )


def random_length(draw: random.Random) -> Length:
    return draw.choice(
        (
            FixedLength(tokens=draw.choice([1, 2, 17, 500, 3_000])),
            UniformLength(shortest_tokens=draw.randint(1, 300), longest_tokens=draw.randint(300, 3_000)),
            LogNormalLength(mean_tokens=draw.uniform(5, 2_000), variation=draw.uniform(0, 1.5)),
        )
    )


def random_load(draw: random.Random, traffic: Traffic, most_requests: int) -> SimulatedLoad:
    sender, count = Sender(), draw.randint(1, most_requests)
    users = draw.randint(1, most_requests)
    return draw.choice(
        (
            lambda: sender.burst_of_users(traffic, users, count),
            lambda: sender.steady_users(traffic, users, count, draw.randint(1, users)),
            lambda: sender.open_loop(
                traffic, 10 ** draw.uniform(-1.5, 2), draw.randint(0, 5), count, draw.randint(0, 5)
            ),
            lambda: sender.burst(traffic, 10 ** draw.uniform(-1.5, 2), count),
        )
    )()


def random_case(seed: int, most_requests: int = 12) -> tuple[Machine, SimulatedLoad, Limits | None]:
    """Return an engine, a load and limits; the cache of every other engine holds only few requests."""
    draw = random.Random(seed)
    drafted = draw.choice([0, 0, 0, 1, 3, 5])
    steps = random_steps(draw)
    if drafted:
        steps = DraftingSteps(steps=steps, num_speculative_tokens=drafted, drafter_fraction=draw.choice([0.02, 0.3]))
    traffic = Traffic(
        inputs=random_length(draw),
        outputs=random_length(draw),
        prefix_cache_hit_fraction=draw.choice([0.0, 0.0, 0.5, 0.9]),
        burstiness=draw.choice([0.3, 1.0, 1.0, 1e9]),
        arrives_read=draw.random() < 0.1,
        speculative_acceptance_fraction=(accepted := draw.choice([0.0, 0.5, 0.9]) if drafted else 0.0),
        seed=draw.randint(0, 9),
    )
    load = random_load(draw, traffic, most_requests)
    longest = int((load.requests["input_tokens"] + load.requests["output_tokens"]).max())
    settings = SchedulerSettings(
        max_num_batched_tokens=draw.choice([1, 2, 16, 64, 512, 2_048, 8_192]),
        max_num_seqs=draw.choice([1, 2, 8, 64, 1_024]),
        prefix_cache_hit_fraction=traffic.prefix_cache_hit_fraction,
        reserves_output=draw.random() < 0.25,
        tokens_per_step=tokens_per_step(drafted, accepted) if drafted else 1.0,
        steps_spread=steps_spread(drafted, accepted) if drafted else 0.0,
        tokens_scheduled=drafted + 1,
        steps_planned_ahead=draw.choice([0, 1]),
        reads_alone=draw.random() < 0.25,
        expects_output=draw.random() < 0.25,
    )
    pool = BlockPool(
        num_blocks=draw.choice([1e9, longest / 16 * draw.uniform(1, 3), longest / 16 * draw.uniform(3, 8)]),
        tokens=(16.0, 1_024.0, 1_048_576.0),
        blocks=(1.0, 64.0, 65_536.0 * draw.choice([1, 0.5])),
    )
    overhead = RequestOverhead(base_s=draw.choice([0.0, 0.012]), s_per_prompt_token=draw.choice([0.0, 1e-6]))
    limits = Limits(
        ttft_s=draw.choice([None, 0.05, 0.5, 5.0]),
        tpot_s=draw.choice([None, 0.01, 0.05, 0.2]),
        percentile=draw.choice([50.0, 95.0, 99.0]),
    )
    machine = Machine(Timing(steps=steps, request_overhead=overhead, basis=BASIS), pool, settings)
    return machine, load, limits if draw.random() < 0.4 else None


def digest(seed: int) -> str:
    """Return a hash of every bit of what a case's users see, or the limit that it breaks."""
    machine, load, limits = random_case(seed)
    outcome = machine.simulated(load, limits)
    if not isinstance(outcome, ScheduleResult):
        return str(outcome.verdict)
    samples = (outcome.ttft_s, outcome.tpot_s, outcome.end_to_end_s)
    figures = (outcome.requests_per_s, outcome.mean_running, outcome.max_kv_fraction, outcome.itl_s.p99)
    whole = b"".join(each.values.tobytes() for each in samples) + np.array(figures).tobytes()
    return f"{hashlib.sha256(whole).hexdigest()} {outcome.preemptions}"


def digests(first: int, last: int) -> list[str]:
    return [digest(seed) for seed in range(first, last)]


if __name__ == "__main__":
    sys.stdout.write(json.dumps(digests(int(sys.argv[1]), int(sys.argv[2]))))
