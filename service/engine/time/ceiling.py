"""What no replica exceeds, told from its step times without simulating it, compiled.

A state in which load and limits agree needs, with d requests decoding beside prompts on average,

    step    T = decode(d) + others x prompt x T x m(d),  m(d) = min over q of (mixed(q, d) - decode(d)) / q
            users x prompt x m(d) <= wait + steps of an answer x (T - decode(d)), where answers are short
    tokens  d = rate x steps of an answer x T,   d + rate x prompt x T <= max_num_batched_tokens
    pace    T / tokens per step <= tpot_s
    wait    the chunks of a prompt beside d others, and the prompts before it, <= ttft_s

where q are the tokens of prompts that share a step, as many as suit it best, and others = rate x (1 - 1 / slots), slots
at least d: nobody waits between tokens for a prompt of the own slot, and a cap may leave no more. What is read is read
at the best of all rates, one prompt after another, so that a queue M/D/1 waits no longer than the engine's: where even
this breaks a limit, so does the engine. A prompt that one copy of the attention reads takes its own share of a step.

Users with short answers may have their prompts read in bunches, while nobody decodes: but everybody's is read between
two requests of one's own, before one's first token or beside the others.

Source:
    the tail of the wait of M/D/1: A. K. Erlang (1909), and its decay as in H. C. Tijms, Stochastic Models (1994), 4.4:
    P(wait > x) = (1 - rho) / (rho exp(t) - 1) exp(-t x), with rho (exp(t) - 1) = t, in service times.
"""

from math import ceil, exp, inf

from service.engine.time.compiled import compiled
from service.engine.time.interpolation import decode_step_s, mixed_step_s
from service.engine.time.records import SHARES, Record, Records

ROUNDS = 40
PACES = 24  # step times of a closed loop that are looked at, from one request's to the longest that is allowed
SETTLED = 1e-3
# A simulated queue was let grow, and a rate rounded, so that up to so many times what a ceiling allows was carried.
CARRIED = 1.1
DECAY_ROUNDS = 24
FEWEST_READ = 32.0  # tokens of prompts that share a step: fewer share its overhead among too few
# Of answers this long every pace has its share of steps that read prompts; of shorter ones many have none.
SHORTEST_ANSWER_STEPS = 32.0


@compiled
def fewest_replicas(steps_of: Records, ceilings_of: Records, amount: float, at_most: int) -> int:
    """Return the fewest replicas that may carry a demand under any of some settings; 0 where so many may not.

    Args:
        steps_of: an array of one record of `records.STEPS`.
        ceilings_of: an array of `records.CEILING`: means and limits under each of the settings.
        amount: users or arrivals. [count, 1/s]
        at_most: the most replicas of interest. [replicas]
    """
    fewest = 0
    for place in range(len(ceilings_of)):
        ceiling = ceilings_of[place]
        enough = fewest - 1 if fewest > 0 else at_most
        if enough >= 1 and may_carry(steps_of[0], ceiling, amount, enough):
            fewest = _fewest_under(steps_of[0], ceiling, amount, enough)
    return fewest


@compiled
def _fewest_under(steps: Record, ceiling: Record, amount: float, enough: int) -> int:
    """Return the fewest replicas that may carry a demand, of which so many may: in growing strides, then by halves."""
    too_few, stride = 0, 1
    while stride < enough and not may_carry(steps, ceiling, amount, stride):
        too_few, stride = stride, 2 * stride
    enough = min(enough, stride)
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        if may_carry(steps, ceiling, amount, middle):
            enough = middle
        else:
            too_few = middle
    return enough


@compiled
def may_carry(steps: Record, ceiling: Record, amount: float, replicas: int) -> bool:
    """Return whether so many replicas may carry a demand: the fullest stream keeps its limits."""
    if ceiling.is_of_users:
        return may_keep_users(steps, ceiling, float(ceil(ceil(amount / replicas) / ceiling.streams)))
    return may_keep_rate(steps, ceiling, amount / replicas / (CARRIED * ceiling.streams))


@compiled
def may_keep_rate(steps: Record, ceiling: Record, request_rate_per_s: float) -> bool:
    """Return whether one stream may keep its limits at a rate of arrivals."""
    decoding, step_s = 0.0, 0.0
    for _ in range(ROUNDS):
        reading = request_rate_per_s * ceiling.new_tokens * _least_read_s(steps, ceiling, decoding)
        if reading >= 1.0:
            return False
        of_others = 1.0 - 1.0 / max(ceil(decoding), 1)
        step_s = _decode_s(steps, ceiling, decoding) / (1.0 - of_others * reading)
        before = decoding
        decoding = request_rate_per_s * ceiling.answer_steps * step_s
        if not _is_room(ceiling, decoding, request_rate_per_s, step_s):
            return False
        if decoding - before <= SETTLED * decoding:
            break
    return _is_in_pace(steps, ceiling, decoding, step_s) and _is_in_time(steps, ceiling, decoding, request_rate_per_s)


@compiled
def may_keep_users(steps: Record, ceiling: Record, users: float) -> bool:
    """Return whether one stream may keep its limits for users of a closed loop."""
    longest_s = ceiling.tpot_s * ceiling.tokens_per_step
    if longest_s == inf:
        longest_s = ceiling.ttft_s
    least_s = _decode_s(steps, ceiling, 1.0)
    if least_s > longest_s:
        return False
    if ceiling.ttft_s == inf and _full_step_s(steps, ceiling) <= longest_s:
        return True  # whoever is too many waits for the first token, as long as that takes
    ratio = (longest_s / least_s) ** (1.0 / PACES)
    step_s = least_s
    for _ in range(PACES + 1):
        step_s = min(step_s * ratio, longest_s)
        if _is_state(steps, ceiling, users, step_s, ratio):
            return True
    return False


@compiled
def _full_step_s(steps: Record, ceiling: Record) -> float:
    """Return the seconds of a step whose budget is full of what comes and of what decodes it."""
    share = ceiling.answer_steps * ceiling.tokens_scheduled / max(ceiling.answer_steps + ceiling.new_tokens, 1.0)
    decoding = min(ceiling.max_num_batched_tokens * share, ceiling.slots)
    return _mixed_s(steps, ceiling, _budget_left(ceiling, decoding), decoding)


@compiled
def _is_state(steps: Record, ceiling: Record, users: float, step_s: float, ratio: float) -> bool:
    """Return whether users may see so long a step: who waits for a first token waits as long as the limit allows."""
    chunks = ceiling.new_tokens / max(ceiling.max_num_batched_tokens, 1.0)
    waits_s = ceiling.ttft_s if ceiling.ttft_s < inf else 4.0 * (chunks + 2.0) * step_s
    rate = users / (waits_s + ceiling.answer_steps * step_s)
    decoding = rate * ceiling.answer_steps * step_s
    if not _is_room(ceiling, decoding, rate, step_s / ratio):
        return False
    needed_s, read_s = _decode_s(steps, ceiling, decoding), ceiling.new_tokens * _least_read_s(steps, ceiling, decoding)
    if ceiling.answer_steps >= SHORTEST_ANSWER_STEPS:
        others = rate * (1.0 - 1.0 / max(users, 1.0))  # nobody waits for a prompt of one's own between tokens
        needed_s += others * step_s / ratio * read_s
    elif ceiling.ttft_s < inf and users * read_s > waits_s + ceiling.answer_steps * (step_s - needed_s):
        return False  # between two of one's own requests everybody's prompt is read, before one's answer or beside it
    return needed_s <= step_s and _own_read_s(steps, ceiling, decoding) <= ceiling.ttft_s


@compiled
def _is_room(ceiling: Record, decoding: float, rate: float, step_s: float) -> bool:
    """Return whether requests have slots, and tokens a place in the budget: prompts that are read alone take any."""
    if ceiling.reads_alone:
        return bool(decoding <= ceiling.slots)
    tokens = decoding * ceiling.tokens_scheduled + rate * ceiling.new_tokens * step_s
    return bool(decoding <= ceiling.slots and tokens <= ceiling.max_num_batched_tokens)


@compiled
def _decode_s(steps: Record, ceiling: Record, decoding: float) -> float:
    return float(decode_step_s(steps, max(decoding, 1.0), ceiling.context_tokens))


@compiled
def _mixed_s(steps: Record, ceiling: Record, tokens: float, decoding: float) -> float:
    beside = 0.0 if ceiling.reads_alone else decoding
    return float(mixed_step_s(steps, tokens, ceiling.input_tokens / 2, beside, ceiling.context_tokens))


@compiled
def _budget_left(ceiling: Record, decoding: float) -> float:
    taken = 0.0 if ceiling.reads_alone else decoding * ceiling.tokens_scheduled
    return float(max(ceiling.max_num_batched_tokens - taken, 1.0))


@compiled
def _least_read_s(steps: Record, ceiling: Record, decoding: float) -> float:
    """Return the seconds that a prompt's token adds to a step at least."""
    if ceiling.new_tokens == 0:
        return 0.0
    most = _budget_left(ceiling, decoding)
    alone = 0.0 if ceiling.reads_alone else _decode_s(steps, ceiling, decoding)
    least, tokens = inf, most
    while least == inf or tokens >= FEWEST_READ:
        least = min(least, max(_mixed_s(steps, ceiling, tokens, decoding) - alone, 0.0) / tokens)
        tokens /= 2.0
    return float(least)


@compiled
def _fastest_read_s(steps: Record, ceiling: Record, decoding: float) -> float:
    """Return the seconds of a prompt whose every step reads as many tokens as suits it best."""
    least, tokens = inf, _budget_left(ceiling, decoding)
    while least == inf or tokens >= FEWEST_READ:
        least = min(least, _mixed_s(steps, ceiling, tokens * ceiling.own_share, decoding) / tokens)
        tokens /= 2.0
    return float(least * ceiling.new_tokens)


@compiled
def _own_read_s(steps: Record, ceiling: Record, decoding: float) -> float:
    """Return the seconds until a prompt is read that waits for nobody, and is as long as the tail's are at least."""
    if ceiling.new_tokens == 0:
        return 0.0
    return _read_in_chunks_s(steps, ceiling, ceiling.own_tokens, decoding)


@compiled
def _read_in_chunks_s(steps: Record, ceiling: Record, tokens: float, decoding: float) -> float:
    chunk = min(max(tokens, 1.0), _budget_left(ceiling, decoding))
    return float(ceiling.overhead_s + _mixed_s(steps, ceiling, chunk * ceiling.own_share, decoding) * tokens / chunk)


@compiled
def _is_in_pace(steps: Record, ceiling: Record, decoding: float, step_s: float) -> bool:
    if ceiling.answer_steps < SHORTEST_ANSWER_STEPS:
        step_s = _decode_s(steps, ceiling, decoding)
    return bool(step_s <= ceiling.tpot_s * ceiling.tokens_per_step)


@compiled
def _is_in_time(steps: Record, ceiling: Record, decoding: float, rate: float) -> bool:
    if ceiling.ttft_s == inf or ceiling.new_tokens == 0:
        return True
    if _own_read_s(steps, ceiling, decoding) > ceiling.ttft_s:
        return False
    if ceiling.waits_as_poisson == 0:
        return True
    read_s = _fastest_read_s(steps, ceiling, decoding)
    busy = rate * read_s
    if busy >= 1.0:
        return False
    decay, late = decay_of_wait(busy), 0.0
    for place in range(SHARES):
        own_s = _read_in_chunks_s(steps, ceiling, ceiling.prompt_shares[place] * ceiling.new_tokens, decoding)
        late += tail_of_wait(busy, decay, (ceiling.ttft_s - own_s) / read_s) / SHARES
    return bool(late <= ceiling.tail_fraction)


@compiled
def decay_of_wait(busy_fraction: float) -> float:
    """Return t with rho (exp(t) - 1) = t, by which the tail of a wait falls for each service time."""
    low, high = 0.0, 1.0
    while busy_fraction * (exp(high) - 1.0) < high:
        low, high = high, 2.0 * high
    for _ in range(DECAY_ROUNDS):
        middle = 0.5 * (low + high)
        if busy_fraction * (exp(middle) - 1.0) < middle:
            low = middle
        else:
            high = middle
    return high


@compiled
def tail_of_wait(busy_fraction: float, decay: float, wait: float) -> float:
    """Return the share of arrivals that wait longer for a server of constant pace, in its service times."""
    if wait < 0.0:
        return 1.0
    if wait == 0.0:
        return busy_fraction
    scale = (1.0 - busy_fraction) / (busy_fraction * exp(decay) - 1.0)
    return float(min(scale * exp(-decay * wait), busy_fraction))
