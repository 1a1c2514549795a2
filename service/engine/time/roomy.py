"""A replica with all the room it could wish for: what it cannot do in time, no choice of its settings can.

    slots  as many as any settings give its layout; of arrivals more run for a while, who hold their prompts so far
    cache  without end: nobody waits for blocks, nobody is sent back

It is asked of a small sample, at a percentile so far below the stated one that chance does not tell against it.
"""

from collections.abc import Iterator
from dataclasses import replace
from math import ceil, inf, sqrt
from typing import Final

from service.engine.inputs import Limits
from service.engine.time.batching import BlockPool, Serving
from service.engine.time.chance import MEASURED, ROUGHLY_MEASURED
from service.engine.time.demand import Arrivals, Demand, Users
from service.engine.time.estimate import throughput
from service.engine.time.results import Violation
from service.engine.time.search import falling_to_most
from service.engine.time.server import Server
from service.engine.time.simulations import Simulations

# A small sample's share beyond a limit may be off by so many standard errors, neighbours in a queue being alike.
FORGIVEN: Final = 3.0
# A small sample of arrivals was up to 1.04 times as slow as a large one; of users with 22 tokens each, who wait in
# bunches, 1.06 times as long for the first.
LONGER: Final = 1.05
WAITS_LONGER: Final = 1.1
# A rate is carried where so many users as have slots are answered as often; of fewer, hardly fewer are.
ANSWERED: Final = 1.03
MOST_LOOKS: Final = 6  # for users who answer a rate
BOUNDLESS: Final = BlockPool(num_blocks=1e15, tokens=(1.0, 2.0), blocks=(1.0, 2.0))


def roomy(serving: Serving, simulations: Simulations, max_num_batched_tokens: int) -> Server:
    """Return a server without bounds on its cache.

    Args:
        serving: how it serves; its slots as many as any settings give it.
        simulations: the store of what is found about it.
        max_num_batched_tokens: in the place of its own. [tokens]
    """
    settings = serving.settings
    # Beside others no more run than a step has tokens, which open settings let run; those that read alone, as many as
    # are stated or the engine's own.
    most = ceil(max_num_batched_tokens / settings.tokens_scheduled)
    most = max(most, settings.max_num_seqs // settings.copies) if settings.reads_alone else most
    of_stream = serving.slots_of_stream
    running = _running(of_stream, serving.traffic.inputs.mean(), serving.traffic.outputs.mean())
    seqs = settings.copies * min(running, most)
    served = replace(
        serving,
        settings=replace(settings, max_num_batched_tokens=max_num_batched_tokens, max_num_seqs=seqs),
        slots=min(serving.slots, min(of_stream, most) * serving.streams),
    )
    return Server(serving=served, pool=BOUNDLESS, simulations=simulations)


def _running(slots: int, prompt_tokens: float, answer_tokens: float) -> int:
    """Return how many requests run at once for a while, in a cache that has room for so many whole ones.

        running = slots x (prompt + answer) / prompt

    Whoever is let in holds blocks of a prompt, and those of an answer as it grows.

    >>> _running(26, prompt_tokens=4_059.0, answer_tokens=1_184.0)
    34
    """
    return ceil(slots * (prompt_tokens + answer_tokens) / prompt_tokens)


def forgiving(limits: Limits) -> Limits:
    """Return limits at a percentile that a small sample breaks only where a large one surely breaks the stated one.

    p - 3 sqrt(p (1 - p) / n), and longer: whoever is in flight beside others sees the same steps as they do
    """
    share = limits.percentile / 100
    error = sqrt(share * (1 - share) / ROUGHLY_MEASURED)
    return replace(
        limits,
        percentile=max(limits.percentile - 100 * FORGIVEN * error, 0.0),
        ttft_s=limits.ttft_s and WAITS_LONGER * limits.ttft_s,
        tpot_s=limits.tpot_s and LONGER * limits.tpot_s,
    )


def may_carry(replica: Server, demand: Demand, limits: Limits, *, is_paced: bool) -> bool:
    """Return whether a demand may be carried, were there room for it.

    Args:
        replica: with all the room it could wish for.
        demand: its share of the load, or a single user.
        limits: latency at a percentile.
        is_paced: a cap may keep pace, and let arrivals wait. [yes or no]
    """
    broken = _broken(replica, demand, forgiving(limits))
    if broken != "tpot":  # who waits too long without a cap waits no less under one
        return broken is None
    return is_paced and isinstance(demand, Arrivals) and may_be_paced(replica, demand, limits)


def may_be_paced(replica: Server, share: Arrivals, limits: Limits) -> bool:
    """Return whether a cap on running requests may let arrivals keep both limits.

    A cap that does keeps pace in a closed loop, carries the rate, and lets none wait too long; of all that keep pace,
    the largest lets requests wait least.

    Args:
        replica: with the engine's own cap, or with all the room it could wish for.
        share: its arrivals.
        limits: latency at a percentile, the time per output token among them.
    """
    return _may_wait_in_time(replica, share, limits) and _may_answer_in_pace(replica, share, limits)


def _may_wait_in_time(replica: Server, share: Arrivals, limits: Limits) -> bool:
    """Return whether arrivals may keep the limit on TTFT with the largest cap that keeps pace.

    Under a larger cap they wait less, and least under none: where they wait too long under one that breaks pace, no
    other is looked for.
    """
    if limits.ttft_s is None:  # they may wait as long as they do
        return True
    waiting = forgiving(replace(limits, tpot_s=None))
    caps = (capped(replica, users) for users in _falling_to_pace(replica, limits))
    return all(cap.seen(share, ROUGHLY_MEASURED).violates(waiting) is None for cap in caps)


def _may_answer_in_pace(replica: Server, share: Arrivals, limits: Limits) -> bool:
    """Return whether users of a closed loop may answer a rate and see their tokens in time.

    More users are answered more, and each of them later: where so many are answered less than the rate, and see their
    tokens too late, no cap on running requests answers it in time. A small sample tells of most; a large one of users
    who are hardly answered as often, and hardly in time.
    """
    rate, pace = share.request_rate_per_s / ANSWERED, replace(limits, ttft_s=None)
    likely, too_few, enough = rate, 0, inf
    for _ in range(MOST_LOOKS):
        fewest = max(Arrivals(likely).users_in_flight(replica.serving), too_few + 1)
        users = int(min(fewest, enough - 1, replica.slots))
        if users <= too_few:
            break
        seen = replica.seen(Users(replica.serving.in_every_stream(users)), ROUGHLY_MEASURED)
        if seen.requests_per_s >= rate:
            if seen.violates(pace) is None:
                return True
            enough = users
        elif seen.violates(forgiving(pace)) is not None:
            return False
        else:
            too_few = users
        likely = rate * throughput(replica.serving, users) / seen.requests_per_s
    if too_few >= replica.slots:
        replica.simulations.shared.note(None)  # more slots may serve more
        return False
    return replica.breaks(Users(too_few + 1), pace, MEASURED) is None


def _falling_to_pace(replica: Server, limits: Limits) -> Iterator[int]:
    """Yield users of a closed loop, falling to about the most who see their tokens in time."""
    alone = _pace_alone(limits)
    guess = Users.guessed(replica, alone)
    loads = falling_to_most(Users.grid(replica, alone), guess, lambda users: _broken(replica, Users.of(users), alone))
    for users in map(int, loads):
        if users >= replica.slots:
            replica.simulations.shared.note(None)  # more slots may serve more
        yield users


def _pace_alone(limits: Limits) -> Limits:
    return replace(forgiving(limits), ttft_s=None)


def capped(replica: Server, users: int) -> Server:
    """Return the same replica, which runs no more than so many requests at once."""
    serving = replica.serving
    of_copy = max(ceil(users / serving.streams), 1)
    seqs = min(serving.settings.copies * of_copy, serving.settings.max_num_seqs)
    fewer = replace(serving, settings=replace(serving.settings, max_num_seqs=seqs), slots=min(users, serving.slots))
    return replace(replica, serving=fewer)


def _broken(replica: Server, demand: Demand, limits: Limits) -> Violation | None:
    """Return the latency limit that a small sample breaks; whether a queue grows is nothing that so few tell."""
    broken = replica.breaks(demand, limits, ROUGHLY_MEASURED)
    if broken == "ttft" and demand.may_queue:
        # It is told before all are answered, of a sample that may tell of its beginning alone. What all see is soon
        # known; whether a queue grows takes as many users as have slots, and is asked where it would decide.
        seen = replica.seen(demand, ROUGHLY_MEASURED).violates(limits)
        return seen or (None if demand.has_room(replica) else broken)
    return None if broken == "throughput" else broken


def share_of(wanted: Demand, replicas: float) -> Demand:
    """Return what the fullest of so many replicas carries; a single user where none or any number may be."""
    return Users(1) if replicas == inf or replicas < 1 else wanted.per_replica(int(replicas))
