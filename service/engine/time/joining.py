"""Who is read in the next iteration: prompts under way, then those that wait; compiled."""

from math import inf

from service.engine.time.compiled import compiled
from service.engine.time.records import Record, Records
from service.engine.time.room import MOST_EXPECTED_TOKENS, blocks_expected, blocks_in_use, blocks_of


@compiled
def plan_chunks(engine: Record, state: Record, runs: Records, places: Records) -> None:
    """Choose the prompts to compute in this step, and tokens of each."""
    decoding = 0 if engine.reads_alone else of_copy(engine, state.num_decoding)
    most = engine.max_num_batched_tokens - decoding * engine.tokens_scheduled  # of one copy, and of one prompt
    budget = engine.copies * most
    for place in range(state.num_prefilling):
        index = places[place].prefilling
        tokens = min(runs[index].prompt_tokens - runs[index].computed_tokens, most, budget)
        if tokens > 0:
            budget -= _take(state, places, index, tokens)
    if state.num_waiting > 0 and budget > 0:
        _join(engine, state, runs, places, budget, most)


@compiled
def of_copy(engine: Record, amount: int) -> int:
    """Return what the fullest copy of the attention has of an amount. [count]."""
    return int((amount + engine.copies - 1) // engine.copies)


@compiled
def _take(state: Record, places: Records, index: int, tokens: int) -> int:
    chunk = places[state.num_chunks]
    chunk.chunk_of, chunk.chunk_tokens = index, tokens
    state.num_chunks += 1
    return tokens


@compiled
def _join(engine: Record, state: Record, runs: Records, places: Records, budget: int, most: int) -> None:
    """Let waiting requests join while slots, blocks and budget last."""
    reserves = engine.reserves_output
    is_roomy = not reserves and state.num_decoding + state.num_prefilling + state.num_waiting < state.always_fit
    free = inf
    if reserves:
        free = engine.num_blocks - state.reserved
    elif not is_roomy:
        free = engine.num_blocks - blocks_in_use(engine, state, runs, places, 1.0)
        if engine.expects_output:
            free -= blocks_expected(engine, state)
    while state.num_waiting > 0 and budget > 0 and state.num_decoding + state.num_prefilling < engine.max_num_seqs:
        index = places[state.first_waiting].waiting
        run = runs[index]
        if not is_roomy:
            needed = blocks_of(engine, run.prompt_tokens + _written(engine, run))
            if needed > free and state.num_decoding + state.num_prefilling > 0:
                break
            free -= needed
            if reserves:
                run.reserved_blocks = needed
                state.reserved += needed
        budget -= _start_prefill(engine, state, run, places, index, min(most, budget))


@compiled
def _written(engine: Record, run: Record) -> float:
    """Return the tokens of an answer that a request must find room for as it joins."""
    answer = run.steps_left * engine.tokens_per_step
    if engine.reserves_output:
        return float(answer)
    return min(float(answer), MOST_EXPECTED_TOKENS) if engine.expects_output else 0.0


@compiled
def _start_prefill(engine: Record, state: Record, run: Record, places: Records, index: int, budget: int) -> int:
    """Take the first waiting request into the step; return the tokens it takes of the budget."""
    state.first_waiting = (state.first_waiting + 1) & (len(places) - 1)
    state.num_waiting -= 1
    hit = max(int(run.prompt_tokens * engine.prefix_cache_hit_fraction), run.cached_tokens)
    run.computed_tokens = min(hit, run.prompt_tokens - 1)
    places[state.num_prefilling].prefilling = index
    state.num_prefilling += 1
    return _take(state, places, index, min(run.prompt_tokens - run.computed_tokens, budget))
