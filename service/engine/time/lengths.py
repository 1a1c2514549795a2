"""How long prompts and completions are: distributions of lengths in tokens."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import exp, log
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from service.engine.time.draws import Draws

Integers = NDArray[np.int64]


class Length(ABC):
    """A distribution of lengths."""

    __slots__ = ()

    @abstractmethod
    def drawn(self, draws: Draws, seed: int, purpose: int, count: int) -> Integers:
        """Return so many lengths, each at least 1; more of them begin with the same ones. [tokens].

        Args:
            draws: random numbers.
            seed: which of them.
            purpose: prompts or completions.
            count: how many lengths.
        """

    @abstractmethod
    def mean(self) -> float:
        """Return the mean of the distribution. [tokens]."""

    @abstractmethod
    def quantile(self, share: float) -> float:
        """Return the length that such a share of all are no longer than. [tokens].

        Args:
            share: above 0 and below 1.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedLength(Length):
    """Every request has the same length."""

    tokens: int

    def drawn(self, draws: Draws, seed: int, purpose: int, count: int) -> Integers:  # noqa: ARG002 - no chance in it
        """Return the one length there is."""
        return np.full(count, max(self.tokens, 1))

    def mean(self) -> float:
        """Return the one length there is."""
        return float(self.tokens)

    def quantile(self, share: float) -> float:  # noqa: ARG002 - no chance in it
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

    def drawn(self, draws: Draws, seed: int, purpose: int, count: int) -> Integers:
        """Return the bound below, and a share of the way to the one above."""
        width = self.longest_tokens - self.shortest_tokens + 1
        lengths: Integers = self.shortest_tokens + (width * draws.uniform(seed, purpose, count)).astype(np.int64)
        return np.maximum(lengths, 1)

    def mean(self) -> float:
        """Return the middle of the bounds."""
        return (self.shortest_tokens + self.longest_tokens) / 2

    def quantile(self, share: float) -> float:
        """Return the share of the way from the bound below to the one above."""
        return self.shortest_tokens + share * (self.longest_tokens - self.shortest_tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogNormalLength(Length):
    """Many short and a few very long requests: log-normal with the given mean and coefficient of variation.

    Half of all are shorter than exp(mu), which is the mean for no variation (NIST/SEMATECH e-Handbook, 1.3.6.6.9):

    >>> round(LogNormalLength(mean_tokens=100.0, variation=1.0).quantile(0.5) * 2**0.5, 6)
    100.0
    """

    mean_tokens: float
    variation: float

    def drawn(self, draws: Draws, seed: int, purpose: int, count: int) -> Integers:
        """Return exp(mu + sigma x normal), with the mean as stated.

        sigma^2 = ln(1 + variation^2),  mu = ln(mean) - sigma^2 / 2
        """
        spread = log(1 + self.variation * self.variation)
        lengths = self.mean_tokens * np.exp(draws.normal(seed, purpose, count) * spread**0.5 - spread / 2)
        rounded: Integers = np.maximum(np.rint(lengths), 1).astype(np.int64)
        return rounded

    def mean(self) -> float:
        """Return the mean as stated."""
        return self.mean_tokens

    def quantile(self, share: float) -> float:
        """Return exp(mu + sigma x that of a normal variable)."""
        spread = log(1 + self.variation * self.variation)
        return self.mean_tokens * exp(NormalDist().inv_cdf(share) * spread**0.5 - spread / 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class EmpiricalLength(Length):
    """Lengths drawn from a list, each entry as likely."""

    tokens: tuple[int, ...]

    def drawn(self, draws: Draws, seed: int, purpose: int, count: int) -> Integers:
        """Return entries of the list."""
        ordered = np.array(sorted(self.tokens))
        entries: Integers = ordered[(len(ordered) * draws.uniform(seed, purpose, count)).astype(np.int64)]
        return np.maximum(entries, 1)

    def mean(self) -> float:
        """Return the mean of the entries."""
        return sum(self.tokens) / len(self.tokens)

    def quantile(self, share: float) -> float:
        """Return the entry that such a share of all are no longer than."""
        return float(sorted(self.tokens)[min(int(share * len(self.tokens)), len(self.tokens) - 1)])
