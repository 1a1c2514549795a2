"""What a layer adds to the streams by the last few tokens: a table of n-grams, gates, and a convolution with a state.

    state = ((k - 1) x n + drafted) x streams x hidden x b
    table = heads x (n - 1) x rows of a head, in the host's memory
    gate  = (streams + 1) x hidden x entries of a token, and two norms of all streams       without a convolution

with k the convolution's kernel, n the longest n-gram, whose length the convolution also steps by, and b the bytes of an
element of the model. A head's rows are a prime number of their own, so that tables of several heads collide elsewhere.

Source:
    vLLM 0.33 `models/qwen4_exp/nvidia/`: ple_layer.py (`Qwen4ExpPLELayer`), ngram_embedding.py; `config/engram.py`
    ("cpu_offload: bool = True"); `models/deepseek_v41/common/engram.py` (`Engram`).
"""

from dataclasses import dataclass
from typing import Final

from service.engine.formats.matrix import Matrix, vector
from service.engine.inputs import Layout
from service.engine.layers.base import Divisor, LiveElements
from service.engine.layers.cache import Checkpoint, Sharding
from service.engine.layers.dense import takes_own_tokens
from service.engine.layers.nothing import NoAttention
from service.engine.layers.recurrent import RecurrentMixer

NORMS: Final = 3  # of keys, of what they are compared with, and before the convolution
WITNESSES: Final = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)


@dataclass(frozen=True, slots=True, kw_only=True)
class NgramMemory(RecurrentMixer):
    """What a layer adds by the last few tokens, whole on every rank (Qwen 3.8 Flash Next)."""

    num_streams: int
    hidden_size: int
    embedding_size: int  # of all heads' entries of one token
    longest_ngram: int  # [tokens]
    conv_kernel_size: int
    beside: Checkpoint | None  # how the recurrence of the same layer keeps states on the way

    @property
    def width(self) -> int:
        """Return the elements of all streams."""
        return self.num_streams * self.hidden_size

    def state_bytes(self, sharding: Sharding) -> int:
        """Return the convolution's last inputs, which lie as far apart as the longest n-gram. [bytes].

        Qwen3.8-Flash-Next: nine inputs of four streams of 2,560.

        >>> layer = NgramMemory(
        ...     num_streams=4, hidden_size=2_560, embedding_size=2_560, longest_ngram=3, conv_kernel_size=4, beside=None
        ... )
        >>> layer.state_bytes(Sharding(tensor_parallel_size=8, cache_element_bytes=2, model_element_bytes=2))
        184320
        """
        inputs = (self.conv_kernel_size - 1) * self.longest_ngram + sharding.num_speculative_tokens
        return inputs * self.width * sharding.state_element_bytes

    @property
    def checkpoint(self) -> Checkpoint | None:
        """Return that of the recurrence beside: a window is kept wherever a state is."""
        return self.beside

    def matrices(self, _hidden_size: int, _layout: Layout, prefix: str) -> list[Matrix]:
        """Return keys of all streams and one value, norms and the convolution; the table lies in the host."""
        prefix += "ple."
        return [
            Matrix(
                module=prefix + "kv_proj",
                rows=self.width + self.hidden_size,
                columns=self.embedding_size,
                parts=2,
            ),
            vector(prefix + "norms", NORMS * self.width),
            Matrix(module=prefix + "conv1d", rows=self.width, columns=self.conv_kernel_size, is_linear=False),
        ]

    @property
    def divisors(self) -> tuple[Divisor, ...]:
        """Return that nothing is cut."""
        return ()

    def live(self, tensor_parallel_size: int) -> LiveElements:
        """Return entries, keys and values, the gated values and what is convolved, whole on every rank. [elements]."""
        whole = self.embedding_size + 3 * self.width + self.hidden_size
        return LiveElements(per_token=tensor_parallel_size * whole)


@dataclass(frozen=True, slots=True, kw_only=True)
class NgramGate(NoAttention):
    """What a layer adds to the streams by the last few tokens, without a state (DeepSeek V4.1).

    Ranks split its columns, but where they have tokens of their own. By it tokens of a sequence do not see one another.
    """

    num_streams: int
    hidden_size: int
    embedding_size: int  # of all heads' entries of one token

    def matrices(self, _hidden_size: int, layout: Layout, prefix: str) -> list[Matrix]:
        """Return keys of all streams and one value, and the norms of keys and of what they are compared with.

        DeepSeek-V4.1-Flash, as its files state it: `engram.wkv` of 25,600 rows and 6,144 columns, two norms of
        4 x 5,120.

        >>> gate = NgramGate(num_streams=4, hidden_size=5_120, embedding_size=6_144)
        >>> [(it.rows, it.columns) for it in gate.matrices(5_120, Layout(), "model.layers.1.")]
        [(25600, 6144), (40960, 1)]
        """
        prefix += "engram."
        ranks = 1 if takes_own_tokens(layout) else layout.tensor_parallel_size
        rows = (self.num_streams + 1) * self.hidden_size // ranks
        return [
            Matrix(module=prefix + "wkv", rows=rows, columns=self.embedding_size, scale_bytes=1),
            vector(prefix + "norms", 2 * self.num_streams * self.hidden_size),
        ]

    def live(self, tensor_parallel_size: int) -> LiveElements:
        """Return entries, keys and the value, whole on every rank. [elements]."""
        whole = self.embedding_size + (self.num_streams + 1) * self.hidden_size
        return LiveElements(per_token=tensor_parallel_size * whole)


def prime_rows(first: int, count: int) -> int:
    """Return the rows of so many tables, each the next prime number from the first on.

    >>> prime_rows(20, 3) == 23 + 29 + 31
    True
    """
    rows, candidate = 0, first
    while count:
        if _is_prime(candidate):
            rows, count = rows + candidate, count - 1
        candidate += 1
    return rows


def _is_prime(number: int) -> bool:
    """Return whether a number is prime, by as many of Miller and Rabin's witnesses as leave no doubt below 3 x 10^24.

    Source: J. Sorenson, J. Webster, Strong pseudoprimes to twelve prime bases (arXiv:1509.00864).
    """
    if number in WITNESSES or number < 2 or any(number % prime == 0 for prime in WITNESSES):
        return number in WITNESSES
    twos = ((number - 1) & (1 - number)).bit_length() - 1
    return all(_passes(number, witness, twos) for witness in WITNESSES)


def _passes(number: int, witness: int, twos: int) -> bool:
    power = pow(witness, (number - 1) >> twos, number)
    return power == 1 or any(pow(power, 1 << square, number) == number - 1 for square in range(twos))
