"""How long prompts and completions are: distributions of lengths in tokens."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import exp, log
from statistics import NormalDist


class Length(ABC):
    """A distribution of lengths."""

    __slots__ = ()

    @abstractmethod
    def at(self, quantile: float) -> int:
        """Return the length at a quantile of the distribution, at least 1. [tokens]."""

    @abstractmethod
    def mean(self) -> float:
        """Return the mean of the distribution. [tokens]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedLength(Length):
    """Every request has the same length."""

    tokens: int

    def at(self, quantile: float) -> int:  # noqa: ARG002 - alike at every quantile
        """Return the one length there is."""
        return max(self.tokens, 1)

    def mean(self) -> float:
        """Return the one length there is."""
        return float(self.tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class UniformLength(Length):
    """Every length between two bounds is as likely.

    >>> UniformLength(shortest_tokens=80, longest_tokens=100).mean()
    90.0
    """

    shortest_tokens: int
    longest_tokens: int

    def at(self, quantile: float) -> int:
        """Return the bound below, and its share of the way to the one above."""
        width = self.longest_tokens - self.shortest_tokens + 1
        return max(self.shortest_tokens + int(quantile * width), 1)

    def mean(self) -> float:
        """Return the middle of the bounds."""
        return (self.shortest_tokens + self.longest_tokens) / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class LogNormalLength(Length):
    """Many short and a few very long requests: log-normal with the given mean and coefficient of variation."""

    mean_tokens: float
    variation: float

    def at(self, quantile: float) -> int:
        """Return exp(mu + sigma x normal quantile), with the mean as stated.

        sigma^2 = ln(1 + variation^2),  mu = ln(mean) - sigma^2 / 2
        """
        spread = log(1 + self.variation * self.variation)
        if spread <= 0:
            return max(round(self.mean_tokens), 1)
        return max(round(self.mean_tokens * exp(NormalDist().inv_cdf(quantile) * spread**0.5 - spread / 2)), 1)

    def mean(self) -> float:
        """Return the mean as stated."""
        return self.mean_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class EmpiricalLength(Length):
    """Lengths drawn from a list, each entry as likely."""

    tokens: tuple[int, ...]

    def at(self, quantile: float) -> int:
        """Return the entry at this place of the sorted list."""
        ordered = sorted(self.tokens)
        return max(ordered[min(int(quantile * len(ordered)), len(ordered) - 1)], 1)

    def mean(self) -> float:
        """Return the mean of the entries."""
        return sum(self.tokens) / len(self.tokens)
