"""Copies of the attention that take every step together, beside each of them followed by itself."""

from dataclasses import replace
from math import ceil

import numpy as np
import pytest
from numpy.typing import NDArray

from service.catalog.engine_rules import rules_for
from service.catalog.snapshot import Snapshot
from service.engine import StatedSettings, StepTimers, deployed, plan_replica
from service.engine.inputs import EngineName, Layout, Load
from service.engine.memory.plan import MemoryPlan
from service.engine.time.batching import Serving, block_pool, serving_of
from service.engine.time.demand import Arrivals
from service.engine.time.server import Server
from service.engine.time.simulations import Simulations
from service.engine.time.steps import StepTimer
from service.engine.time.traffic import traffic_of
from tests.conftest import shared_timers

COPIES, PROMPT, ANSWER = 8, 2_000, 1_000
RATE = 4.0


def planned(catalog: Snapshot, engine: EngineName = "vllm", model: str = "deepseek-r1") -> MemoryPlan:
    layout = Layout(data_parallel_size=COPIES, expert_parallel=engine != "tensorrt-llm")
    stated = StatedSettings(max_model_len=4_352)
    return plan_replica(catalog.model(model), catalog.gpu("h200"), layout, stated, rules_for(engine))


def serving(plan: MemoryPlan, timers: StepTimers, tokens: int) -> Serving:
    timing = timers.timer(deployed(plan))
    assert timing is not None
    load = Load(
        concurrent_requests=None, request_rate_per_s=RATE, input_tokens=PROMPT, output_tokens=ANSWER,
        length_distribution="fixed",
    )  # fmt: skip
    return serving_of(
        replace(plan, settings=replace(plan.settings, max_num_batched_tokens=tokens)), timing, traffic_of(load)
    )


class Followed:
    """Arrivals at copies that are followed one by one, in steps that all of them take."""

    def __init__(self, steps: StepTimer, tokens: int, own_share: float, count: int = 1_600) -> None:
        self.steps, self.tokens, self.own_share, self.count = steps, tokens, own_share, count
        self.arrivals = np.cumsum(np.random.default_rng(1).exponential(1 / RATE, count))
        self.prompts: list[list[list[int]]] = [[] for _ in range(COPIES)]
        self.answers: list[list[list[int]]] = [[] for _ in range(COPIES)]
        self.first, self.last = np.zeros(count), np.zeros(count)
        self.now, self.come = 0.0, 0

    def tpot_s(self) -> NDArray[np.float64]:
        """Return the time per output token of the middle half."""
        while not self.last.all():
            self.let_in()
            if any(self.prompts) or any(self.answers):
                self.step([self.chunks_of(copy) for copy in range(COPIES)])
            else:
                self.now = self.arrivals[self.come]
        return ((self.last - self.first) / (ANSWER - 1))[self.count // 4 : self.count * 3 // 4]

    def let_in(self) -> None:
        """Let who came go to the copy with the fewest."""
        while self.come < self.count and self.arrivals[self.come] <= self.now:
            least = min(range(COPIES), key=lambda copy: (len(self.prompts[copy]), len(self.answers[copy])))
            self.prompts[least].append([self.come, PROMPT])
            self.come += 1

    def chunks_of(self, copy: int) -> list[int]:
        """Return what a copy reads of each of its prompts, beside its answers."""
        budget, taken = self.tokens - len(self.answers[copy]), []
        for _, left in self.prompts[copy]:
            taken.append(min(left, budget))
            budget -= taken[-1]
        return taken

    def step(self, chunks: list[list[int]]) -> None:
        """Take a step that lasts as long as its fullest copy's, and by the tokens of all as far as they meet."""
        decoding, context, read = sum(map(len, self.answers)) / COPIES, PROMPT + ANSWER / 2, [*map(sum, chunks)]
        mixed = self.own_share * max(read) + (1 - self.own_share) * sum(read) / COPIES
        steps = self.steps
        self.now += steps.mixed_s(mixed, PROMPT / 2, decoding, context) if mixed else steps.decode_s(decoding, context)
        for copy in range(COPIES):
            for answer in self.answers[copy]:
                answer[1] -= 1
                self.last[answer[0]] = 0.0 if answer[1] else self.now
            self.answers[copy] = [answer for answer in self.answers[copy] if answer[1]]
            for prompt, taken in zip(self.prompts[copy], chunks[copy], strict=True):
                prompt[1] -= taken
            begun = [prompt[0] for prompt in self.prompts[copy] if not prompt[1]]
            self.first[begun] = self.now
            self.answers[copy].extend([index, ANSWER - 1] for index in begun)
            self.prompts[copy] = [prompt for prompt in self.prompts[copy] if prompt[1]]


@pytest.mark.parametrize("tokens", [256, 512, 8_192])
def test_steps_that_all_take_last_as_long_as_where_each_copy_is_followed(catalog: Snapshot, tokens: int) -> None:
    """vLLM 0.33 `v1/worker/dp_utils.py` (`coordinate_batch_across_dp`): no copy begins a step before all do."""
    timers, plan = shared_timers(), planned(catalog)
    served = serving(plan, timers, tokens)
    together = Server(serving=served, pool=block_pool(plan), simulations=Simulations()).seen(Arrivals(RATE), 2_000)
    each = Followed(served.timing.steps, tokens, served.settings.own_share).tpot_s()

    assert together.tpot_s.percentile(95) == pytest.approx(float(np.percentile(each, 95)), rel=0.1)


def test_prompts_of_one_copy_hold_up_the_others(catalog: Snapshot) -> None:
    timers, plan = shared_timers(), planned(catalog)
    served = serving(plan, timers, 8_192)
    apart = replace(served, settings=replace(served.settings, copies=1, own_share=1.0, max_num_seqs=256))
    of_one = replace(block_pool(plan), num_blocks=block_pool(plan).num_blocks / COPIES)
    together, alone = (
        Server(serving=each, pool=pool, simulations=Simulations()).seen(Arrivals(RATE), 2_000).tpot_s.percentile(95)
        for each, pool in ((served, block_pool(plan)), (apart, of_one))
    )

    assert together > 1.4 * alone


@pytest.mark.parametrize(
    ("engine", "model", "copies"),
    [("vllm", "deepseek-r1", COPIES), ("sglang", "deepseek-r1", COPIES), ("tensorrt-llm", "deepseek-r1", 1)],
)
def test_copies_of_the_attention_are_one_stream_where_they_step_together(
    catalog: Snapshot, engine: EngineName, model: str, copies: int
) -> None:
    """TensorRT-LLM `AttentionDpConfig`: its copies wait to read prompts together."""
    served = serving(planned(catalog, engine, model), shared_timers(), 2_048)

    assert served.settings.copies == copies
    assert served.groups * copies == served.streams == COPIES
    assert served.slots_of_group == copies * ceil(served.slots / COPIES)
