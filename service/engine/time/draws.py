"""Random numbers of a seed, kept: every load begins with the same ones, so that curves over loads are smooth."""

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from service.engine.kept import Kept

Floats = NDArray[np.float64]

PROMPTS, COMPLETIONS, UNDER_WAY, GAPS, DRAFTS = 0, 1, 2, 3, 4  # what they are for
MOST_EVEN: Final = 1e6  # a stream of arrivals this even comes by the clock
FEWEST: Final = 4_096
MOST_KEPT: Final = 64  # streams of numbers, about 32 kB each


class Draws:
    """Streams of random numbers, one for each seed and purpose; a longer one begins as a shorter one does."""

    def __init__(self) -> None:
        """Start with nothing drawn."""
        self._streams: Kept[Floats] = Kept(MOST_KEPT)

    def uniform(self, seed: int, purpose: int, count: int) -> Floats:
        """Return numbers from 0 to 1."""
        return self._stream((seed, purpose, "uniform"), count, lambda random, many: random.random(many))

    def normal(self, seed: int, purpose: int, count: int) -> Floats:
        """Return standard normal numbers."""
        return self._stream((seed, purpose, "normal"), count, lambda random, many: random.standard_normal(many))

    def arrivals(self, seed: int, burstiness: float, count: int) -> Floats:
        """Return arrivals at a mean rate of one: gaps are Gamma(shape) / shape, or by the clock where that is even."""

        def drawn(random: np.random.Generator, many: int) -> Floats:
            if burstiness > MOST_EVEN:
                return np.arange(1.0, many + 1)
            if burstiness == 1.0:
                return np.cumsum(random.standard_exponential(many))
            if burstiness > 1:
                return np.cumsum(random.standard_gamma(burstiness, many) / burstiness)
            return np.cumsum(_bursts(burstiness, np.exp(-random.standard_exponential(many))))

        return self._stream((seed, GAPS, burstiness), count, drawn)

    def _stream(
        self, key: tuple[int, int, str | float], count: int, drawn: Callable[[np.random.Generator, int], Floats]
    ) -> Floats:
        stream = self._streams.get(key)
        if stream is None or len(stream) < count:
            random = np.random.Generator(np.random.PCG64(key[:2]))
            stream = drawn(random, max(FEWEST, 1 << (count - 1).bit_length()))
            self._streams.put(key, stream)
        return stream[:count]


def _bursts(burstiness: float, shares: Floats) -> Floats:
    """Return the gaps that such shares of all gaps exceed: Poisson's own at 1, and others by little for a little less.

    >>> [round(float(gap), 3) for gap in _bursts(0.5, np.array([0.5, 0.1]))]  # of half a chi-squared
    [0.455, 2.706]
    """
    from scipy.special import gammainccinv  # noqa: PLC0415 - 27 MB that only bursts need

    return np.asarray(gammainccinv(burstiness, shares) / burstiness, dtype=np.float64)
