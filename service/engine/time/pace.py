"""The pace of a replica by an estimate, compiled: what searches ask for before they simulate."""

import numpy as np

from service.engine.time.compiled import compiled
from service.engine.time.interpolation import decode_step_s, mixed_step_s
from service.engine.time.records import Record, Records

IN_FLIGHT_ROUNDS = 12


@compiled
def pace_s(steps_of: Records, pace_of: Records, users: int) -> float:
    """Return the mean time per output token that users in flight see; see `estimate.pace_s`. [s]."""
    return _seen_s(steps_of[0], pace_of[0], users)


@compiled
def work_s(steps_of: Records, pace_of: Records, users: int) -> float:
    """Return the time a replica takes per output token of users in flight; see `estimate.throughput`. [s]."""
    return _work_s(steps_of[0], pace_of[0], users)


@compiled
def _seen_s(steps: Record, pace: Record, users: int) -> float:
    prompts = _prompts_s(steps, pace, users)
    if prompts == 0.0:
        return _decoding_s(steps, pace, users)
    decode = _decoding_s(steps, pace, users)
    context = pace.input_tokens + pace.output_tokens / 2
    fullest = mixed_step_s(steps, pace.max_num_batched_tokens, pace.input_tokens / 2, users / pace.streams, context)
    return float(decode + min(prompts, max(fullest / pace.tokens_per_step - decode, 0.0)))


@compiled
def _work_s(steps: Record, pace: Record, users: int) -> float:
    return _decoding_s(steps, pace, users) + _prompts_s(steps, pace, users)


@compiled
def _decoding_s(steps: Record, pace: Record, users: int) -> float:
    decoding = users / pace.streams
    return float(decode_step_s(steps, decoding, pace.input_tokens + pace.output_tokens / 2) / pace.tokens_per_step)


@compiled
def _prompts_s(steps: Record, pace: Record, users: int) -> float:
    if pace.new_tokens == 0:
        return 0.0
    decoding, budget = users / pace.streams, pace.max_num_batched_tokens
    batch = min(max(pace.new_tokens, min(decoding * pace.new_tokens, budget) / 2), budget)
    prompt = mixed_step_s(steps, batch, pace.input_tokens / 2, 0.0, 0.0) * pace.new_tokens / batch
    return float(max(decoding - 1.0, 0.0) / max(pace.output_tokens, 1.0) * prompt)


@compiled
def users_in_flight(steps_of: Records, pace_of: Records, request_rate_per_s: float) -> int:
    """Return about how many requests of a rate all streams have in flight: n = rate x output x tpot(n)."""
    steps, pace = steps_of[0], pace_of[0]
    users = 1
    for _ in range(IN_FLIGHT_ROUNDS):
        lives_s = pace.output_tokens * _work_s(steps, pace, users)
        before = users
        users = min(max(int(np.rint(request_rate_per_s * lives_s)), 1), max(pace.slots, 1))
        if users == before:
            break
    return int(users)


@compiled
def users_at_pace(steps_of: Records, pace_of: Records, tpot_s: float) -> int:
    """Return the most users whose estimated time per output token is no longer than so much. [s]."""
    steps, pace = steps_of[0], pace_of[0]
    low, high = 0, pace.slots + 1
    while high - low > 1:
        middle = (low + high) // 2
        if _seen_s(steps, pace, middle) > tpot_s:
            high = middle
        else:
            low = middle
    return int(low)
