"""Random numbers that are the same for the same seed, everywhere."""

from itertools import accumulate
from math import log, sqrt
from statistics import NormalDist

_MULTIPLIER, _INCREMENT, _MODULUS = 6364136223846793005, 1442695040888963407, 1 << 64
MOST_EVEN = 1e6  # a stream of arrivals this even comes by the clock


class Draws:
    """Uniform numbers in (0, 1) of a linear congruential generator.

    x = 6364136223846793005 x + 1442695040888963407 mod 2^64; the upper 53 bits are used.

    Sources:
        D. E. Knuth, The Art of Computer Programming 2, section 3.3.4 (MMIX).
    """

    def __init__(self, seed: int) -> None:
        self._state = (2 * seed + 1) * _MULTIPLIER % _MODULUS

    def uniform(self) -> float:
        """Return the next number in (0, 1)."""
        self._state = (self._state * _MULTIPLIER + _INCREMENT) % _MODULUS
        return ((self._state >> 11) + 0.5) / (1 << 53)

    def gap(self, shape: float) -> float:
        """Return a gap between arrivals of mean 1: Gamma(shape) / shape.

        Sources:
            G. Marsaglia and W. W. Tsang, A simple method for generating gamma variables (2000).
        """
        if shape == 1.0:
            return -log(self.uniform())
        if shape > MOST_EVEN:
            return 1.0
        boost = float(self.uniform() ** (1 / shape)) if shape < 1 else 1.0
        d: float = (shape if shape >= 1 else shape + 1) - 1 / 3
        c = 1 / sqrt(9 * d)
        normal = NormalDist()
        while True:
            x = normal.inv_cdf(self.uniform())
            v = (1 + c * x) * (1 + c * x) * (1 + c * x)
            if v > 0 and log(self.uniform()) < 0.5 * x * x + d - d * v + d * log(v):
                return boost * d * v / shape


def arrivals_at_mean_one(seed: int, burstiness: float, count: int) -> tuple[float, ...]:
    """Return so many arrivals at a mean rate of one per second. [s]."""
    draws = Draws(seed)
    return tuple(accumulate(draws.gap(burstiness) for _ in range(count)))
