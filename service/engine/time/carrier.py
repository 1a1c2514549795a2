"""The terms in which load is asked of replicas: what users and arrivals have in common."""

from abc import ABC, abstractmethod
from typing import ClassVar, Protocol, Self

from service.engine.arithmetic import whole
from service.engine.inputs import Headroom, Limits
from service.engine.time.batching import Serving
from service.engine.time.grid import Grid
from service.engine.time.results import Violation
from service.engine.time.samples import ScheduleResult
from service.engine.time.traffic import Sender, SimulatedLoad


class Carrier(Protocol):
    """What a demand must know of the replica that is to carry it."""

    @property
    def serving(self) -> Serving:
        """Return what serves, and what is served."""
        ...

    @property
    def saturation_rate(self) -> float:
        """Return the rate at which the queue grows without end. [1/s]."""
        ...


class Demand(ABC):
    """Requests asked of one replica or of several: how many, and in which terms."""

    __slots__ = ()
    may_queue: ClassVar[bool]  # the queue may grow at any pace, so that pace alone tells of no limit kept

    @classmethod
    @abstractmethod
    def of(cls, amount: float) -> Self:
        """Return so much of it."""

    @classmethod
    @abstractmethod
    def above(cls, amount: float) -> Self:
        """Return the least of it that is more."""

    @property
    @abstractmethod
    def amount(self) -> float:
        """Return how much it is: users, or arrivals per second."""

    @abstractmethod
    def per_replica(self, replicas: int) -> Self:
        """Return the share of the fullest of so many equal replicas."""

    @abstractmethod
    def shares(self, replicas: int, streams: int) -> tuple[tuple[float, Self], ...]:
        """Return replicas that are asked alike, the fullest first: how many, in parts of one, and the share of each.

        Args:
            replicas: that share the demand. [count]
            streams: of each. [count]
        """

    @abstractmethod
    def planned(self, headroom: Headroom) -> Self:
        """Return the demand to plan for, with the share that is kept free on top of it."""

    def replicas(self, of_one: float) -> int:
        """Return the replicas that carry this: ceil(amount / amount of one), at least 1.

        llmtco.com, throughput planner: "10,000 aggregate tokens/second at 2,000 tok/s per GPU" take 5 GPUs, "with 30%
        peak headroom, plan for 7":

        >>> from service.engine.inputs import Headroom
        >>> from service.engine.time.demand import Arrivals
        >>> asked = Arrivals(10_000.0)
        >>> asked.replicas(2_000.0), asked.planned(Headroom(headroom_fraction=0.3)).replicas(2_000.0)
        (5, 7)
        """
        return max(whole(self.amount / of_one), 1)

    @classmethod
    @abstractmethod
    def grid(cls, carrier: Carrier, limits: Limits) -> Grid:
        """Return the amounts that a search for the largest one visits."""

    @classmethod
    @abstractmethod
    def guessed(cls, carrier: Carrier, limits: Limits) -> float:
        """Return about the largest amount within limits, by an estimate: where a search begins."""

    @abstractmethod
    def rounded_up(self, carrier: Carrier) -> Self:
        """Return the next amount that searches of a replica visit: this one, or a little more."""

    @abstractmethod
    def has_room(self, carrier: Carrier) -> bool:
        """Return whether it is no more than a replica carries without any limit."""

    @classmethod
    @abstractmethod
    def hoped(cls, serving: Serving, users: int, hope: float) -> float:
        """Return the amount that so many users are, were the replica faster than its estimate by a factor."""

    @abstractmethod
    def users_in_flight(self, serving: Serving) -> int:
        """Return about how many requests are in flight at once."""

    @abstractmethod
    def simulated(self, serving: Serving, sender: Sender, measured: int, *, has_settled: bool = True) -> SimulatedLoad:
        """Return what one stream sees of it.

        Args:
            serving: what serves it.
            sender: what draws requests.
            measured: requests that are measured. [count]
            has_settled: a short warm-up is enough. [yes or no]
        """

    @abstractmethod
    def benchmark(self, serving: Serving, sender: Sender, num_prompts: int) -> SimulatedLoad:
        """Return what one stream sees of a benchmark with so many prompts."""

    @abstractmethod
    def seen(self, result: ScheduleResult, serving: Serving) -> ScheduleResult:
        """Return what users of the whole replica see, given what one simulated stream shows."""

    @abstractmethod
    def broken(self, result: ScheduleResult, limits: Limits) -> Violation | None:
        """Return the limit that a simulated schedule breaks."""
