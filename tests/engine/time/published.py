"""Questions whose answers somebody else printed: benchmarks of SGLang with drafts, as its cookbook ran them."""

from service.catalog.snapshot import Snapshot
from service.engine.answers.results import Capacity
from service.engine.time.drafting import tokens_per_step
from service.questions.asked import Desk
from service.questions.capacity import CAPACITY, CapacityAnswer
from tests.conftest import shared_timers


def benchmarked(catalog: Snapshot, *, users: int, gpus: int, drafted: int, kept: float, **stated: object) -> Capacity:
    """Return what `sglang.bench_serving` prints of prompts of 8,192 tokens and answers of 1,024.

    Args:
        catalog: models and GPUs.
        users: who begin at once.
        gpus: that layers are split over.
        drafted: tokens in each step.
        kept: tokens of each step, with the model's own.
        stated: the rest of the question.
    """
    fields = {
        "engine": "sglang", "input_tokens": 8_192, "output_tokens": 1_024, "length_distribution": "fixed",
        "concurrent_requests": users, "num_prompts": max(8, 4 * users), "gpu_count": gpus,
        "tensor_parallel_size": gpus, "num_speculative_tokens": drafted,
        "speculative_acceptance_fraction": accepted(drafted, kept), "max_num_batched_tokens": 8_192,
    }  # fmt: skip
    question = CAPACITY.body.model_validate(fields | stated)
    answer = Desk(shared_timers()).answer(CAPACITY, question, catalog)
    assert isinstance(answer, CapacityAnswer)
    return answer.result


def accepted(drafted: int, kept: float) -> float:
    """Return the chance of a draft with which a step keeps so many tokens."""
    low, high = 0.0, 1.0
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (middle, high) if tokens_per_step(drafted, middle) < kept else (low, middle)
    return low
