"""How much is asked of replicas: users who always have one request in flight, or arrivals that come on their own."""

from dataclasses import dataclass, field
from math import ceil, floor, inf, nextafter
from typing import ClassVar, Final

from service.engine.arithmetic import whole
from service.engine.errors import InvalidQuestionError
from service.engine.inputs import Alike, Headroom, Limits, Load
from service.engine.time.batching import Serving
from service.engine.time.carrier import Carrier, Demand
from service.engine.time.estimate import SAFE, in_flight, kept_pace, least_throughput, read_rate, throughput
from service.engine.time.grid import Grid, rate_grid, rate_upto, user_grid, users_upto
from service.engine.time.results import GROWING, Violation
from service.engine.time.samples import ScheduleResult
from service.engine.time.traffic import Sender, SimulatedLoad

__all__ = ["Arrivals", "Demand", "Users", "demand_of", "kind_of", "users_of", "wanted_of"]

# Requests that come before the measured ones, for each of those.
WARM_UP_FRACTION: Final = 1 / 8
LONG_WARM_UP_FRACTION: Final = 1.0
# Beyond this many users per slot a closed loop only queues, and its queue is known without simulating it.
MOST_USERS_PER_SLOT: Final = 2
# Arrivals that are carried are about this share of what the estimate says at the pace of a limit.
GUESSED_SHARE: Final = 0.75


@dataclass(frozen=True, slots=True)
class Users(Demand):
    """Users of a closed loop, who always have one request in flight.

    >>> Users(10).per_replica(3)
    Users(concurrent_requests=4)
    """

    concurrent_requests: int
    alike: Alike | None = field(default=None, repr=False, compare=False)
    may_queue: ClassVar[bool] = False

    @classmethod
    def of(cls, amount: float) -> "Users":
        """Return so many users. [count]."""
        return cls(int(amount))

    @classmethod
    def above(cls, amount: float) -> "Users":
        """Return one more user."""
        return cls(floor(amount) + 1)

    @property
    def amount(self) -> float:
        """Return the users. [count]."""
        return self.concurrent_requests

    def per_replica(self, replicas: int) -> "Users":
        """Return the users of the fullest replica."""
        return Users(ceil(self.concurrent_requests / replicas))

    def shares(self, replicas: int, streams: int) -> tuple[tuple[float, "Users"], ...]:
        """Return the fullest streams, and those with one user less.

            full = users - streams x (most - 1), of all streams of all replicas

        >>> Users(5).shares(replicas=1, streams=4)
        ((0.4, Users(concurrent_requests=5)), (0.75, Users(concurrent_requests=4)))
        """
        fullest, every = self.per_replica(replicas), replicas * streams
        most = ceil(self.concurrent_requests / every)
        full = self.concurrent_requests - every * (most - 1)
        first = (full * most / fullest.concurrent_requests, fullest)
        if full == every or most == 1:
            return (first,)
        return first, ((every - full) / streams, Users((most - 1) * streams))

    def planned(self, headroom: Headroom) -> "Users":
        """Return ceil(users x (1 + headroom)), at least 1."""
        return Users(max(whole(self.concurrent_requests * (1 + headroom.headroom_fraction)), 1), self.alike)

    def replicas(self, of_one: float) -> int:
        """Return the replicas that carry these users, and take note of the fewest users who take as many.

        >>> alike = Alike()
        >>> Users(10, alike).replicas(4), alike.fewest
        (3, 9)
        """
        needed = max(ceil(self.concurrent_requests / of_one), 1)
        if self.alike is not None:
            self.alike.looked_at(floor((needed - 1) * of_one) + 1)
        return needed

    @classmethod
    def grid(cls, carrier: Carrier, limits: Limits) -> Grid:
        """Return numbers of users; without limits the slots decide."""
        return user_grid(carrier.serving.slots, is_limited=limits.are_stated)

    @classmethod
    def guessed(cls, carrier: Carrier, limits: Limits) -> float:
        """Return the users who keep the limit on pace; all slots without one. [count]."""
        return max(kept_pace(carrier.serving, limits.tpot_s), 1)

    def rounded_up(self, carrier: Carrier) -> "Users":
        """Return the next number of users that searches visit, at most all slots."""
        return Users(min(users_upto(self.concurrent_requests), max(self.concurrent_requests, carrier.serving.slots)))

    def has_room(self, carrier: Carrier) -> bool:
        """Return whether each user has a slot."""
        return self.concurrent_requests <= carrier.serving.slots

    @classmethod
    def hoped(cls, serving: Serving, users: int, hope: float) -> float:  # noqa: ARG003 - users are hoped for already
        """Return the users themselves."""
        return users

    def users_in_flight(self, serving: Serving) -> int:  # noqa: ARG002 - whatever serves them
        """Return all users: each has one request in flight."""
        return self.concurrent_requests

    def simulated(
        self,
        serving: Serving,
        sender: Sender,
        measured: int,
        *,
        has_settled: bool = True,  # noqa: ARG002 - users begin in their steady state
    ) -> SimulatedLoad:
        """Return the users of the fullest stream, as far as they need simulating; each is measured once at least."""
        users = self._simulated_users(serving)
        decoding, share = serving.decoding_of_group, serving.cache_share(self.concurrent_requests)
        return sender.steady_users(serving.traffic, users, max(measured, users), decoding, share)

    def benchmark(self, serving: Serving, sender: Sender, num_prompts: int) -> SimulatedLoad:
        """Return users who all begin at once, each with the next prompt as soon as the last is answered."""
        count = ceil(num_prompts / serving.groups)
        users = self._users_of_stream(serving)
        others = max(self.concurrent_requests - users, 0)
        share = serving.cache_share(self.concurrent_requests)
        return sender.burst_of_users(serving.traffic, users, count, others, share)

    def seen(self, result: ScheduleResult, serving: Serving) -> ScheduleResult:
        """Return the steady state of more users than were simulated: all of them wait longer, by Little's law.

        wait = (users - simulated) / requests_per_s
        """
        users, simulated = self._users_of_stream(serving), self._simulated_users(serving)
        if users > simulated:
            result = result.waiting_longer((users - simulated) / result.requests_per_s)
        return result.side_by_side(self.concurrent_requests / users)  # not every stream is as full

    def broken(self, result: ScheduleResult, limits: Limits) -> Violation | None:
        """Return the latency limit that is broken."""
        return result.violates(limits)

    def _users_of_stream(self, serving: Serving) -> int:
        return ceil(self.concurrent_requests / serving.groups)

    def _simulated_users(self, serving: Serving) -> int:
        return min(self._users_of_stream(serving), MOST_USERS_PER_SLOT * serving.slots_of_group)


@dataclass(frozen=True, slots=True)
class Arrivals(Demand):
    """Requests that come on their own at a mean rate, whatever the engine does."""

    request_rate_per_s: float
    may_queue: ClassVar[bool] = True

    @classmethod
    def of(cls, amount: float) -> "Arrivals":
        """Return so many arrivals. [1/s]."""
        return cls(amount)

    @classmethod
    def above(cls, amount: float) -> "Arrivals":
        """Return hardly more arrivals. [1/s]."""
        return cls(nextafter(amount, inf))

    @property
    def amount(self) -> float:
        """Return the arrivals. [1/s]."""
        return self.request_rate_per_s

    def per_replica(self, replicas: int) -> "Arrivals":
        """Return an even share of the arrivals."""
        return Arrivals(self.request_rate_per_s / replicas)

    def shares(self, replicas: int, streams: int) -> tuple[tuple[float, "Arrivals"], ...]:  # noqa: ARG002 - all even
        """Return an even share for each."""
        return ((float(replicas), self.per_replica(replicas)),)

    def planned(self, headroom: Headroom) -> "Arrivals":
        """Return rate x (1 + headroom)."""
        return Arrivals(self.request_rate_per_s * (1 + headroom.headroom_fraction))

    @classmethod
    def grid(cls, carrier: Carrier, limits: Limits) -> Grid:  # noqa: ARG003 - the same whatever the limits
        """Return rates up to saturation."""
        return rate_grid(carrier.saturation_rate)

    @classmethod
    def guessed(cls, carrier: Carrier, limits: Limits) -> float:
        """Return most of the throughput of users who keep the limit on pace. [1/s]."""
        serving = carrier.serving
        users = max(kept_pace(serving, limits.tpot_s), 1)
        paced = GUESSED_SHARE * throughput(serving, users)
        return paced if limits.ttft_s is None else min(paced, read_rate(serving, limits.ttft_s))

    def rounded_up(self, carrier: Carrier) -> "Arrivals":  # noqa: ARG002 - rates are the same for all
        """Return the next rate that searches visit. [1/s]."""
        return Arrivals(rate_upto(self.request_rate_per_s))

    def has_room(self, carrier: Carrier) -> bool:
        """Return whether the queue does not grow without end."""
        serving, rate = carrier.serving, self.request_rate_per_s
        safe = SAFE * least_throughput(serving, serving.slots) if serving.settings.copies == 1 else 0.0
        return rate <= safe or rate <= carrier.saturation_rate

    @classmethod
    def hoped(cls, serving: Serving, users: int, hope: float) -> float:
        """Return the throughput of so many users, faster by the factor. [1/s]."""
        return hope * throughput(serving, users)

    def users_in_flight(self, serving: Serving) -> int:
        """Return about how many requests are in flight, over all streams."""
        return serving.streams * in_flight(serving, self.request_rate_per_s)

    def simulated(self, serving: Serving, sender: Sender, measured: int, *, has_settled: bool = True) -> SimulatedLoad:
        """Return one stream's arrivals, behind those that are in flight when they begin."""
        warm_up = WARM_UP_FRACTION if has_settled else LONG_WARM_UP_FRACTION
        return sender.open_loop(
            serving.traffic,
            self.request_rate_per_s / serving.groups,
            ceil(warm_up * measured),
            measured,
            serving.settings.copies * in_flight(serving, self.request_rate_per_s),
        )

    def benchmark(self, serving: Serving, sender: Sender, num_prompts: int) -> SimulatedLoad:
        """Return arrivals at an engine that has nothing to do when the first one comes."""
        rate = self.request_rate_per_s / serving.groups
        return sender.burst(serving.traffic, rate, ceil(num_prompts / serving.groups))

    def seen(self, result: ScheduleResult, serving: Serving) -> ScheduleResult:
        """Return all streams together."""
        return result.side_by_side(serving.groups)

    def broken(self, result: ScheduleResult, limits: Limits) -> Violation | None:
        """Return the latency limit that is broken, or that the queue grows."""
        grows = result.queue_growth_per_s > GROWING * self.request_rate_per_s
        return result.violates(limits) or ("throughput" if grows else None)


def kind_of(load: Load) -> type[Demand]:
    """Return the terms of a load: arrivals where their time in the system is for us to find, else users."""
    return Arrivals if load.request_rate_per_s is not None and load.request_duration_s is None else Users


def demand_of(load: Load) -> Demand:
    """Return what a load asks for.

    Raises:
        InvalidQuestionError: no load was stated.
    """
    if load.request_rate_per_s is not None and load.request_duration_s is None:
        return Arrivals(load.request_rate_per_s)
    return users_of(load)


def wanted_of(load: Load, headroom: Headroom) -> Demand:
    """Return the demand to plan for, with the share that is kept free."""
    return demand_of(load).planned(headroom)


def users_of(load: Load) -> Users:
    """Return the requests in flight: as asked, or by Little's law from rate and stated duration.

        concurrent_requests = ceil(request_rate_per_s x request_duration_s)

    J. D. C. Little, S. C. Graves, Little's Law (2008): 50 mails come a day, and each waits 3 days: 150 wait.

    >>> day_s = 86_400
    >>> mail = Load(
    ...     concurrent_requests=None, request_rate_per_s=50 / day_s, request_duration_s=3 * day_s, input_tokens=1,
    ...     output_tokens=1)
    >>> users_of(mail)
    Users(concurrent_requests=150)

    Raises:
        InvalidQuestionError: neither was stated.
    """
    if load.concurrent_requests is not None:
        return Users(load.concurrent_requests, load.alike)
    if load.request_rate_per_s is None or load.request_duration_s is None:
        raise InvalidQuestionError(
            "no load was stated",
            field="concurrent_requests",
            accepted="concurrent_requests, or request_rate_per_s",
        )
    return Users(max(whole(load.request_rate_per_s * load.request_duration_s), 1))
