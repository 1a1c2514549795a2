"""What a quick estimate says of one request alone, before anything is simulated."""

from service.engine.fleet.questions import SizeQuestion
from service.engine.memory.plan import MemoryPlan
from service.engine.time.replica import quickly_timed


def alone_s(question: SizeQuestion, plan: MemoryPlan) -> float:
    """Return the time of one request by a quick estimate; 0 where nobody tells it. [s]."""
    serving = None if question.timers is None else quickly_timed(plan, question.timers, question.load)
    if serving is None:
        return 0.0
    steps, load = serving.timing.steps, question.load
    new = load.input_tokens * (1 - load.prefix_cache_hit_fraction)
    decode_s = steps.decode_s(1.0, load.input_tokens + load.output_tokens / 2)
    return steps.mixed_s(new, load.input_tokens / 2, 0.0, 0.0) + load.output_tokens * decode_s


def estimated_excess(question: SizeQuestion, plan: MemoryPlan) -> float:
    """Return how many times one request takes what the tighter limit allows."""
    limits, load = question.limits, question.load
    if question.timers is None or not plan.holds_one_request:
        return 0.0
    serving = quickly_timed(plan, question.timers, load)
    if serving is None:
        return 0.0
    steps, prompt = serving.timing.steps, float(load.input_tokens)
    ttft = steps.mixed_s(prompt, prompt / 2, 0.0, 0.0) / limits.ttft_s if limits.ttft_s else 0.0
    tpot = steps.decode_s(1.0, prompt + load.output_tokens / 2) / limits.tpot_s if limits.tpot_s else 0.0
    return max(ttft, tpot)
