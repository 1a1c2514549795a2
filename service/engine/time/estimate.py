"""What can be told of a replica without simulating it: its pace, and the loads it may hope to carry."""

from collections.abc import Sequence
from math import ceil, inf
from typing import Final

from service.engine.inputs import Limits
from service.engine.time.batching import Serving
from service.engine.time.carrier import Demand
from service.engine.time.records import CEILING, SHARES, Records, new_records
from service.engine.time.shared import Reach
from service.engine.time.steps import StepTimer, Timing
from service.engine.time.traffic import Traffic

# An estimate this many times beyond a limit, or this far below it, needs no simulation: it was 0.65 to 1.63 times
# what is simulated, for answers of 32 to 381 tokens on eight GPUs. Of shorter answers it tells less (42 times, of two
# tokens): whose prompts are read together see few prompts beside their own tokens.
HOPELESS, SAFE = 1.8, 0.4
SHORTEST_TOLD_TOKENS: Final = 32
# What a sample shows is so near to a ceiling on it.
SLACK: Final = 1.05
# No step holds so many times the tokens of a mean one, and a prompt.
CROWDED: Final = 4
MOST_REPLICAS: Final = 1 << 24
RAREST: Final = 0.999  # of lengths
# The 95th percentile of a sample of 2,000, less three errors of chance.
LONG_ANSWER: Final = 0.935
# What comes with its cache is read at once.
SHORTEST_READ_S: Final = 1e-6


def pace_s(serving: Serving, users: int) -> float:
    """Return the mean time per output token that users in flight see in the fullest stream, which is simulated. [s].

        tpot = min(decode(n, context) + (n - 1) / output x prompt, fullest),  n = ceil(users / streams)

    n requests decode side by side; for each token that one of them makes, the engine also reads its
    share of the prompts that take the others' places, and no more of them than its fullest step holds:
    where answers are short, most prompts are read while nobody who reads them has a token yet.
    """
    from service.engine.time import pace  # noqa: PLC0415 - loading the compiler takes half a second

    return float(pace.pace_s(*serving.estimated, serving.in_every_stream(users)))


def reach_of(serving: Serving, users: int) -> Reach:
    """Return what users in flight use of an engine's bounds: hardly more than this, where an estimate tells enough."""
    traffic, decoding = serving.traffic, ceil(users / serving.streams)
    read = 0.0 if traffic.arrives_read else traffic.inputs.mean()
    answered = max(traffic.outputs.mean() / serving.settings.tokens_per_step, 1.0)
    tokens = read + CROWDED * decoding * (serving.settings.tokens_scheduled + read / answered)
    running = serving.settings.copies * decoding
    return Reach(tokens=ceil(tokens), running=running, longest_tokens=ceil(read + traffic.outputs.mean()))


def kept_pace(serving: Serving, tpot_s: float | None) -> int:
    """Return the most users whose estimated time per output token is no longer than so much; all slots for None."""
    from service.engine.time import pace  # noqa: PLC0415 - as above

    return serving.slots if tpot_s is None else int(pace.users_at_pace(*serving.estimated, tpot_s))


def read_rate(serving: Serving, ttft_s: float) -> float:
    """Return about the arrivals whose prompts are read within a limit for nineteen of twenty of them. [1/s].

        rate = share / read,  share = 2 slack / (3 + 2 slack),  slack = ttft / read - 1

    Who waits for a server that reads one prompt after another waits share / (2 (1 - share)) reads on average, and
    one of twenty three times as long: ln 20 = 3.

    Source:
        the mean wait of a queue M/D/1, and an exponential tail.
    """
    read_s = max(reading_s(serving.timing, serving.traffic), SHORTEST_READ_S)
    return serving.streams * _busy_share(max(ttft_s / read_s - 1, 0.0)) / read_s


def _busy_share(slack: float) -> float:
    """Return for which share of the time a server may be busy: one of twenty waits `slack` reads or longer.

    A. K. Erlang, The theory of probabilities and telephone conversations (1909): at 0.8 the mean wait for a server
    of constant pace is twice a read, of which three times as much is the tail's.

    >>> _busy_share(3 * 2.0)
    0.8
    """
    return 2 * slack / (3 + 2 * slack)


def reading_s(timing: Timing, traffic: Traffic, max_num_batched_tokens: float = inf) -> float:
    """Return the time to read what is new of a mean prompt, on an idle engine. [s].

    Copies of the attention that meet in experts read it in no less than takes a copy's own share of a step.
    """
    prompt = traffic.inputs.mean()
    chunk = min(prompt, max_num_batched_tokens)
    new_share = 0.0 if traffic.arrives_read else 1 - traffic.prefix_cache_hit_fraction
    return prompt / chunk * timing.steps.mixed_s(chunk * timing.own_share, prompt / 2, 0.0, 0.0) * new_share


def token_s(timing: Timing, traffic: Traffic, streams: int) -> float:
    """Return the time per output token of a user alone, as `pace_s` does; 0 of answers too short to tell it. [s].

    Args:
        timing: of each of its streams.
        traffic: what the user asks for.
        streams: side by side, that share a user. [count]
    """
    if traffic.outputs.mean() < SHORTEST_TOLD_TOKENS:
        return 0.0
    return timing.steps.decode_s(1 / streams, traffic.inputs.mean() + traffic.outputs.mean() / 2)


def alone_s(serving: Serving) -> float:
    """Return the time to the last token on an idle engine, as one request of twenty sees it. [s].

    A mean prompt is read in chunks, behind its overhead, and a long answer made token by token: a load adds to that.
    One answer of twenty is as long; how long prompts are, which is drawn by itself, makes one of
    twenty wait no less: the share of answers beyond a length is a convex function of it there (Jensen's inequality).
    """
    timing, traffic = serving.timing, serving.traffic
    read_s = timing.request_overhead.of_prompt(int(traffic.inputs.mean()))
    if not traffic.arrives_read:
        read_s += reading_s(timing, traffic, serving.settings.max_num_batched_tokens)
    return read_s + _answered_s(timing.steps, traffic)


def alone_by(timing: Timing, traffic: Traffic) -> float:
    """Return the same of a prompt read at once, by step times that tell of a single request at least. [s]."""
    return reading_s(timing, traffic) + _answered_s(timing.steps, traffic)


def _answered_s(steps: StepTimer, traffic: Traffic) -> float:
    inputs, outputs = traffic.inputs.mean(), traffic.outputs.quantile(LONG_ANSWER)
    return max(outputs - 1, 0.0) * steps.decode_s(1.0, inputs + outputs / 2)


def throughput(serving: Serving, users: int) -> float:
    """Return the requests that so many users see answered, by the work of all their steps. [1/s].

    throughput = n / (output x (decode(n, context) + (n - 1) / output x prompt))
    """
    from service.engine.time import pace  # noqa: PLC0415 - as above

    return users / (max(serving.traffic.outputs.mean(), 1.0) * float(pace.work_s(*serving.estimated, users)))


def least_throughput(serving: Serving, users: int) -> float:
    """Return the same were one's own prompt read alone, which it leaves out: most of the time with few slots. [1/s]."""
    read_s = reading_s(serving.timing, serving.traffic)
    return users / (users / throughput(serving, users) + read_s) if users else 0.0


def fewest_at_best(serving: Serving, budgets: Sequence[int], wanted: Demand, limits: Limits, at_most: float) -> float:
    """Return the fewest replicas that may carry a demand within limits, by a ceiling on what step times allow.

    Args:
        serving: how one replica serves; its slots as many as any settings give it.
        budgets: values of `max_num_batched_tokens` in question, of which the best counts. [tokens]
        wanted: users or arrivals.
        limits: latency at a percentile.
        at_most: the most replicas of interest. [replicas]

    Returns:
        The count; infinite where so many are not enough, or not even a single user is served in time.
    """
    from service.engine.time import ceiling  # noqa: PLC0415 - as above

    if not serving.slots:
        return inf
    amount, steps = wanted.amount, serving.timing.records
    records = _ceilings(serving, budgets, wanted, limits)
    fewest = ceiling.fewest_replicas(steps, records, amount, int(min(at_most, MOST_REPLICAS)))
    return float(fewest) or inf


def budgets_at_best(serving: Serving, budgets: Sequence[int], share: Demand, limits: Limits) -> tuple[int, ...]:
    """Return the values of `max_num_batched_tokens` with which a replica may carry its share, as above. [tokens]."""
    from service.engine.time import ceiling  # noqa: PLC0415 - as above

    if not serving.slots:
        return ()
    records, steps = _ceilings(serving, budgets, share, limits), serving.timing.records
    return tuple(
        tokens
        for place, tokens in enumerate(budgets)
        if ceiling.fewest_replicas(steps, records[place : place + 1], share.amount, 1)
    )


def _ceilings(serving: Serving, budgets: Sequence[int], demand: Demand, limits: Limits) -> Records:
    """Return the means of one stream and its limits under each token budget, as compiled ceilings read them."""
    traffic, settings, timing = serving.traffic, serving.settings, serving.timing
    inputs, outputs = traffic.inputs.mean(), traffic.outputs.mean()
    new_share = 1 - traffic.prefix_cache_hit_fraction
    records = new_records(len(budgets), CEILING)
    records["input_tokens"] = inputs
    records["new_tokens"] = 0.0 if traffic.arrives_read else max(inputs * new_share, 1.0)
    records["own_tokens"] = max(traffic.inputs.quantile(min(limits.percentile / 100, RAREST)) * new_share, 1.0)
    records["prompt_shares"] = [traffic.inputs.quantile((place + 0.5) / SHARES) / inputs for place in range(SHARES)]
    records["answer_steps"] = max(outputs - 1, 0.0) / settings.tokens_per_step
    records["context_tokens"] = inputs + outputs / 2
    records["max_num_batched_tokens"] = budgets
    records["tokens_per_step"], records["tokens_scheduled"] = settings.tokens_per_step, settings.tokens_scheduled
    records["streams"], records["is_of_users"] = serving.streams, not demand.may_queue
    records["slots"], records["reads_alone"] = serving.slots_of_stream, settings.reads_alone
    records["waits_as_poisson"] = traffic.burstiness <= 1
    records["own_share"] = timing.own_share
    records["overhead_s"] = timing.request_overhead.of_prompt(int(inputs))
    records["ttft_s"] = inf if limits.ttft_s is None else SLACK * limits.ttft_s
    records["tpot_s"] = inf if limits.tpot_s is None else SLACK * limits.tpot_s
    records["tail_fraction"] = 1 - limits.percentile / 100
    return records


def in_flight(serving: Serving, request_rate_per_s: float) -> int:
    """Return about how many requests of a rate one stream has in flight: n = rate x output x tpot(n)."""
    from service.engine.time import pace  # noqa: PLC0415 - as above

    return int(pace.users_in_flight(*serving.estimated, request_rate_per_s)) // serving.streams


def hoped_users(serving: Serving, limits: Limits, hope: float) -> int:
    """Return users that a quickly timed replica would not exceed within limits, were it faster by a factor."""
    if limits.ttft_s is not None and reading_s(serving.timing, serving.traffic) > hope * limits.ttft_s:
        return 0
    limit_s = limits.tpot_s if tells_pace(serving) else None
    return kept_pace(serving, None if limit_s is None else hope * limit_s)


def tells_pace(serving: Serving) -> bool:
    """Return whether answers are long enough for their pace to be estimated."""
    return serving.traffic.outputs.mean() >= SHORTEST_TOLD_TOKENS
