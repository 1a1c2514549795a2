"""Speculative decoding with a draft layer, as MTP heads and EAGLE have: pace and price of a step.

Sources:
    Y. Leviathan, M. Kalman, Y. Matias, Fast inference from transformers via speculative decoding (2023), equation 1.
    vLLM 0.33 `v1/spec_decode/eagle.py`: the drafter runs once for each token it proposes.
"""

from dataclasses import dataclass, replace

from service.engine.memory.drafts import drafter_fraction
from service.engine.memory.plan import MemoryPlan
from service.engine.time.records import Records
from service.engine.time.steps import StepTimer, Timing


def tokens_per_step(num_speculative_tokens: int, acceptance_fraction: float) -> float:
    """Return the tokens that an iteration makes for each request.

        tokens = (1 - a^(k + 1)) / (1 - a)

    Args:
        num_speculative_tokens: k, drafted tokens. [tokens]
        acceptance_fraction: a, chance that a drafted token is accepted, alike for each. [fraction]

    >>> tokens_per_step(1, 0.5)
    1.5
    """
    drafted, accepted = num_speculative_tokens, acceptance_fraction
    if accepted >= 1:
        return float(drafted + 1)
    return float((1 - accepted ** (drafted + 1)) / (1 - accepted))


def steps_spread(num_speculative_tokens: int, acceptance_fraction: float) -> float:
    """Return how far the iterations of an answer spread by the chance of its drafts. [fraction].

        standard deviation(iterations) = spread x sqrt(iterations),  spread = sigma / mu of the tokens of one

    An iteration makes at least j tokens with chance a^(j - 1), up to k + 1; of answers of many iterations their number
    is normal: D. R. Cox, Renewal Theory (1962), 3.3. One draft that is a toss makes one token or two:

    >>> round(steps_spread(1, 0.5), 6) == round(0.5 / 1.5, 6)
    True

    Args:
        num_speculative_tokens: k, drafted tokens. [tokens]
        acceptance_fraction: a, chance that a drafted token is accepted, alike for each. [fraction]
    """
    mean = tokens_per_step(num_speculative_tokens, acceptance_fraction)
    square = sum((2 * made + 1) * acceptance_fraction**made for made in range(num_speculative_tokens + 1))
    return float(max(square - mean**2, 0.0) ** 0.5 / mean)


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftingSteps:
    """Step times of a model that verifies drafts; implements `StepTimer`.

    step = decode((k + 1) x requests, context / (k + 1)) + k x decode(requests, context) x drafter's layers / layers

    Every request passes k + 1 tokens through the model, and its cache is read once; the drafter runs once
    for each drafted token.
    """

    steps: StepTimer
    num_speculative_tokens: int
    drafter_fraction: float  # of the model's layers

    def decode_s(self, requests: float, context_tokens: float) -> float:
        """Return the seconds of an iteration that only decodes. [s]."""
        verified = self.num_speculative_tokens + 1
        verify_s = self.steps.decode_s(verified * requests, context_tokens / verified)
        return verify_s + self._draft_s(requests, context_tokens)

    def mixed_s(self, prefill_tokens: float, attended_tokens: float, requests: float, context_tokens: float) -> float:
        """Return the seconds of an iteration that reads prompts and decodes. [s]."""
        verified = self.num_speculative_tokens + 1
        mixed_s = self.steps.mixed_s(
            prefill_tokens, attended_tokens, verified * requests, context_tokens / verified if requests else 0.0
        )
        return mixed_s + (self._draft_s(requests, context_tokens) if requests else 0.0)

    def alone(self) -> "DraftingSteps":
        """Return the same: one request passes several tokens, as several requests do."""
        return self

    def write(self, records: Records) -> None:
        """Write the times without drafts, and what drafts make of them."""
        self.steps.write(records)
        records["drafted_tokens"], records["drafter_fraction"] = self.num_speculative_tokens, self.drafter_fraction

    def _draft_s(self, requests: float, context_tokens: float) -> float:
        return self.num_speculative_tokens * self.steps.decode_s(requests, context_tokens) * self.drafter_fraction


def with_drafts(timing: Timing, plan: MemoryPlan) -> Timing:
    """Return the times of a plan's model with the drafts of its settings; the same times without any."""
    drafted = plan.settings.num_speculative_tokens
    if not drafted:
        return timing
    fraction = drafter_fraction(plan.model.architecture, plan.settings)
    steps = DraftingSteps(steps=timing.steps, num_speculative_tokens=drafted, drafter_fraction=fraction)
    return replace(timing, steps=steps)
