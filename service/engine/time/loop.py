"""Continuous batching, iteration by iteration, as the engine schedules it: compiled, over arrays.

Running requests each take their tokens of the step's budget; what is left goes to prompts, first come
first served, in chunks. Engines that read prompts alone let running requests wait meanwhile. A request
joins when a slot and the blocks of its prompt are free; when a decoding request finds no block, the
latest one is sent back to compute everything again. Like iterations are skipped over in one go.

Sources:
    vLLM 0.33, vllm/v1/core/sched/scheduler.py (Scheduler.schedule) and SchedulerConfig.
    TensorRT-LLM, CapacitySchedulerPolicy.GUARANTEED_NO_EVICT.
    SGLang 0.5.10, sglang/srt/managers/scheduler.py (Scheduler.get_next_batch_to_run).
"""

from collections.abc import Iterator
from math import frexp, inf

import numpy as np

from service.engine.time.compiled import IS_PLAIN, compiled
from service.engine.time.decoding import drop_preempted, finish, start_decoding
from service.engine.time.interpolation import decode_step_s, mixed_step_s
from service.engine.time.joining import of_copy, plan_chunks
from service.engine.time.records import BINS, BINS_PER_OCTAVE, LOWEST_OCTAVE, SERVED, TOO_LONG, Record, Records
from service.engine.time.room import EXPECTED_ANEW, blocks_in_use, blocks_of, make_room, steps_with_room


def as_compiled(*records: Records) -> Iterator[Records]:
    """Yield arrays as `serve` takes them: in plain Python their rows need names."""
    yield from (each.view(np.recarray) for each in records) if IS_PLAIN else records


@compiled
def serve(
    requests: Records, steps_of: Records, engine_of: Records, state_of: Records, runs: Records, places: Records,
    heap: Records,
) -> None:  # fmt: skip
    """Serve until every measured request is answered, or too many of them break a limit."""
    steps, engine, state = steps_of[0], engine_of[0], state_of[0]
    _begin(requests, steps, engine, state, runs, places)
    while state.measured_left > 0 and state.ended == SERVED:
        state.iterations += 1
        if state.iterations > engine.most_iterations:
            state.ended = TOO_LONG
        if _next_arrival_s(engine, state, runs, places) <= state.now_s:
            _admit_arrivals(requests, engine, state, runs, places)
        state.num_chunks = 0
        if state.num_waiting + state.num_prefilling > 0 and _may_read(engine, state):
            plan_chunks(engine, state, runs, places)
        if state.num_chunks > 0:
            _mixed_steps(steps, engine, state, runs, places, heap)
        elif state.num_decoding > 0:
            _decode_steps(steps, engine, state, runs, places, heap)
        else:
            state.step_s = 0.0
            state.busy_since = state.step
            state.now_s = max(state.now_s, _next_arrival_s(engine, state, runs, places))


@compiled
def _begin(requests: Records, steps: Record, engine: Record, state: Record, runs: Records, places: Records) -> None:
    longest = 0
    for index in range(len(requests)):
        request, run = requests[index], runs[index]
        longest = max(longest, request.input_tokens + request.output_tokens)
        overhead_s = steps.request_overhead_s + steps.tokenizer_s_per_token * request.input_tokens
        run.came_s = request.arrival / engine.request_rate_per_s if engine.users == 0 else 0.0
        run.known_s = run.came_s + overhead_s
        if index < min(engine.together, engine.users):
            run.known_s += engine.together * steps.let_in_s
        run.first_token_s = -1.0
        run.reserved_blocks = 0.0
        run.is_decoding = False
    state.longest_tokens = longest
    state.always_fit = engine.num_blocks / max(blocks_of(engine, float(longest)), 1e-9)
    state.measured_left = engine.last_measured - engine.first_measured
    state.num_users = min(engine.users, len(requests))
    for place in range(state.num_users):
        places[place].user_s = 0.0


# -- arrivals ------------------------------------------------------------------------------------


@compiled
def _next_arrival_s(engine: Record, state: Record, runs: Records, places: Records) -> float:
    """Return when the scheduler first sees the next request: it plans one iteration ahead."""
    if state.next_request >= len(runs):
        return inf
    known_s = runs[state.next_request].known_s + engine.steps_planned_ahead * state.step_s
    if engine.users == 0:
        return float(known_s)
    if state.num_users == 0:
        return inf
    return float(places[state.first_user].user_s + known_s)


@compiled
def _admit_arrivals(requests: Records, engine: Record, state: Record, runs: Records, places: Records) -> None:
    mask = len(places) - 1
    while _next_arrival_s(engine, state, runs, places) <= state.now_s:
        request, run = requests[state.next_request], runs[state.next_request]
        if engine.users > 0:
            run.came_s = places[state.first_user].user_s
            state.first_user = (state.first_user + 1) & mask
            state.num_users -= 1
        run.prompt_tokens = request.input_tokens
        run.output_tokens = request.output_tokens
        run.cached_tokens = request.cached_tokens
        run.steps_left = _steps_of(engine, request)
        places[(state.first_waiting + state.num_waiting) & mask].waiting = state.next_request
        state.num_waiting += 1
        state.next_request += 1


@compiled
def _steps_of(engine: Record, request: Record) -> int:
    """Return the iterations of an answer: with drafts about as many more or fewer as chance rejects and accepts."""
    steps = request.output_tokens / engine.tokens_per_step
    if engine.steps_spread > 0:
        steps += request.drafts_missed * engine.steps_spread * steps**0.5
        steps = min(max(steps, request.output_tokens / engine.tokens_scheduled), float(request.output_tokens))
    return max(int(np.rint(steps)), 1)


# -- iterations ----------------------------------------------------------------------------------


@compiled
def _may_read(engine: Record, state: Record) -> bool:
    """Return whether an iteration may read prompts; one in so many does where ranks wait to read together."""
    return bool(state.num_decoding == 0 or state.step % engine.read_every == 0)


@compiled
def _mixed_steps(steps: Record, engine: Record, state: Record, runs: Records, places: Records, heap: Records) -> None:
    """Compute prompt chunks, and one token of every decoding request; like iterations in one go."""
    many = _like_chunks(engine, state, runs, places, heap) if state.num_chunks == 1 else 1
    tokens, longest, pairs = 0, 0, 0.0
    for place in range(state.num_chunks):
        chunk = places[place]
        tokens += chunk.chunk_tokens
        longest = max(longest, chunk.chunk_tokens)
        pairs += chunk.chunk_tokens * (runs[chunk.chunk_of].computed_tokens + 0.5 * (many * chunk.chunk_tokens))
    decoding, context = 0.0 if engine.reads_alone else float(state.num_decoding), 0.0
    fullest, read = float(tokens), float(tokens)
    if engine.copies > 1:
        fullest = max(float(longest), tokens / engine.copies)
        read = engine.own_share * fullest + (1.0 - engine.own_share) * tokens / engine.copies
    most_tokens = int(fullest) + of_copy(engine, int(decoding)) * engine.tokens_scheduled
    state.most_tokens = max(state.most_tokens, most_tokens)
    state.most_running = max(state.most_running, state.num_decoding + state.num_prefilling)
    if decoding > 0:
        context = state.context_sum / decoding + 0.5 * (many - 1) * engine.tokens_per_step
    step_s = mixed_step_s(steps, read, pairs / tokens, decoding / engine.copies, context)
    if engine.reads_alone and not _decodes_beside(engine, state):
        _hold(state, step_s, many)
    else:
        _pass(engine, state, step_s, many)
    for place in range(state.num_chunks):
        chunk = places[place]
        run = runs[chunk.chunk_of]
        run.computed_tokens += many * chunk.chunk_tokens
        if run.computed_tokens >= run.prompt_tokens:
            start_decoding(state, runs, places, heap, chunk.chunk_of)
    _drop_read(state, runs, places)
    state.most_blocks = max(state.most_blocks, blocks_in_use(engine, state, runs, places, 0.0))
    finish(engine, state, runs, places, heap)
    if state.num_decoding > 0:
        make_room(engine, state, runs, places)


@compiled
def _decodes_beside(engine: Record, state: Record) -> bool:
    """Return whether those decode a token meanwhile whose copies read no prompt: all of them, as often as those do."""
    state.passed += 1.0 - min(state.num_chunks, engine.copies) / engine.copies
    if state.passed < 1.0:
        return False
    state.passed -= 1.0
    return True


@compiled
def _like_chunks(engine: Record, state: Record, runs: Records, places: Records, heap: Records) -> int:
    """Return how many iterations in a row read as much of one long prompt while nothing else changes."""
    run, tokens = runs[places[0].chunk_of], places[0].chunk_tokens
    decoding = 0 if engine.reads_alone else state.num_decoding
    is_alone = engine.copies == 1 and engine.read_every == 1
    if tokens < engine.max_num_batched_tokens - decoding * engine.tokens_scheduled or not is_alone:
        return 1  # what is left of the budget is for who comes next
    left = (run.prompt_tokens - run.computed_tokens - 1) // tokens  # the last chunk is an iteration of its own
    many = min(left, int(engine.skip_fraction * run.computed_tokens) // tokens)
    if many > 1 and decoding > 0:
        drop_preempted(state, runs, heap)
        many = min(many, heap[0].last_step - state.step)
        if state.num_decoding + state.num_prefilling >= state.always_fit:
            many = steps_with_room(engine, state, runs, places, many)
    return int(max(many, 1))


@compiled
def _drop_read(state: Record, runs: Records, places: Records) -> None:
    """Let go of prompts that were read to their end."""
    left = 0
    for place in range(state.num_prefilling):
        index = places[place].prefilling
        if runs[index].computed_tokens < runs[index].prompt_tokens:
            places[left].prefilling = index
            left += 1
    state.num_prefilling = left


@compiled
def _pass(engine: Record, state: Record, step_s: float, steps: int) -> None:
    """Let time pass: every decoding request makes its tokens of each step."""
    _elapse(state, step_s, steps)
    state.step += steps
    if state.num_decoding > 0:
        state.context_sum += steps * state.num_decoding * engine.tokens_per_step
        state.steps_left_sum -= steps * state.num_decoding
        if state.held_s > 0:  # the first of these steps ends the wait for prompts
            _note_gaps(state, step_s, steps - 1)
            _note_gaps(state, step_s + state.held_s, 1)
        else:
            _note_gaps(state, step_s, steps)
    state.held_s = 0.0


@compiled
def _hold(state: Record, step_s: float, steps: int) -> None:
    """Let time pass in which prompts alone are read: who decodes waits for it."""
    _elapse(state, step_s, steps)
    if state.num_decoding > 0:
        state.held_s += steps * step_s


@compiled
def _elapse(state: Record, step_s: float, steps: int) -> None:
    state.now_s += steps * step_s
    state.step_s = step_s
    state.running_time += steps * step_s * (state.num_decoding + state.num_prefilling)


@compiled
def _note_gaps(state: Record, gap_s: float, steps: int) -> None:
    """Count a gap between tokens for every decoding request, so many times."""
    made, place = steps * state.num_decoding, gap_bin(gap_s)
    state.gap_tokens[place] += made
    state.gap_time[place] += made * gap_s


@compiled
def gap_bin(seconds: float) -> int:
    """Return the bin of a gap between tokens."""
    mantissa, exponent = frexp(seconds)
    place = (exponent - LOWEST_OCTAVE) * BINS_PER_OCTAVE + int((mantissa - 0.5) * 2 * BINS_PER_OCTAVE)
    return max(min(place, BINS - 1), 0)


@compiled
def _decode_steps(steps: Record, engine: Record, state: Record, runs: Records, places: Records, heap: Records) -> None:
    """Skip to the next step in which something changes."""
    drop_preempted(state, runs, heap)
    decoding, grown = float(state.num_decoding), engine.tokens_per_step
    context = state.context_sum / decoding
    many = min(heap[0].last_step - state.step, max(engine.longest_skip, int(engine.skip_fraction * context)))
    if state.num_prefilling > 0 or decoding >= max(state.always_fit, 2.0):  # one alone is never sent back
        many = steps_with_room(engine, state, runs, places, many)
    if engine.expects_output and state.num_waiting > 0:
        many = min(many, EXPECTED_ANEW)
    if engine.read_every > 1 and state.num_waiting + state.num_prefilling > 0:
        many = min(many, engine.read_every - state.step % engine.read_every)
    step_s = decode_step_s(steps, decoding / engine.copies, context + 0.5 * (many - 1) * grown)
    state.step_s = step_s  # what a request that comes meanwhile sits out
    until = _next_arrival_s(engine, state, runs, places) - state.now_s
    # Behind requests that wait already, a new one changes nothing.
    if until < many * step_s and state.num_waiting == 0:
        many = max(min(many, int(until / step_s) + 1), 1)
        step_s = decode_step_s(steps, decoding / engine.copies, context + 0.5 * (many - 1) * grown)
    _pass(engine, state, step_s, many)
    finish(engine, state, runs, places, heap)
    if state.num_decoding > 0:
        make_room(engine, state, runs, places)
