"""What picks blocks of the cache, or single tokens, that a query of softmax heads attends to, by small keys of its own.

    blocks (MiniMax M3)               elements of a key x b bytes per token
    tokens (Qwen 3.8 Flash Next), by keys that stand for several each:

    bytes per token     = elements of a key x b / tokens of a key
    bytes per request   = ring x (elements of a key x b + 3 positions of 8 bytes)
    ring                = tokens of a key x ceil((tokens of a key + drafted) / tokens of a key)

with b the bytes of an element of the model.

Sources:
    vLLM 0.33 `models/minimax_m3/`; `models/qwen4_exp/common/qsa_cache.py` (`QSAKeyStateCache`,
    `QSACompressedKeyCache`), `models/qwen4_exp/nvidia/`: indexer_qsa.py, qsa.py.
"""

from dataclasses import dataclass
from typing import Final, Protocol

from service.engine.arithmetic import round_up
from service.engine.formats.elements import HALF_BYTES
from service.engine.layers.base import ANY_PAGE, FLOP_PER_MULTIPLICATION, UNBOUNDED
from service.engine.layers.cache import DEFAULT_BLOCK_SIZE, CacheSpec, Sharding, heads_per_rank

POSITION_BYTES: Final = 3 * 8  # of a raw key: one 64-bit number for each axis of an image
INDEX_BYTES: Final = 4  # of one selected token


@dataclass(frozen=True, slots=True, kw_only=True)
class Reads:
    """What a selector leaves to be read, and what selecting takes."""

    longest: float = UNBOUNDED  # tokens a query attends to at most
    scan_bytes: float = 0.0  # of every token of the context
    scan_flop_per_pair: float = 0.0
    buffer_bytes: int = 0  # that loading makes, for each token of a batch
    is_on_one_rank: bool = False  # no ranks may hold the context in turn
    page_size: int | None = ANY_PAGE  # in SGLang's pool; None without a rule [tokens]


class Selector(Protocol):
    """What picks the tokens or blocks that a query of softmax heads attends to."""

    @property
    def head_dim(self) -> int:
        """Return the elements of one key or query."""

    @property
    def block_size(self) -> int:
        """Return what the kernel's blocks are whole multiples of. [tokens]."""

    @property
    def reads(self) -> Reads:
        """Return what is left to be read."""

    def caches(self, sharding: Sharding, /) -> tuple[CacheSpec, ...]:
        """Return what it keeps for itself."""

    def rows(self, tensor_parallel_size: int, /) -> int:
        """Return its rows in the attention's projection."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockSelector:
    """What picks the cache blocks a query attends to (MiniMax M3); it keeps a small key of its own per token."""

    num_heads: int
    head_dim: int
    block_size: int  # [tokens]

    def caches(self, sharding: Sharding) -> tuple[CacheSpec, ...]:
        """Return its key, in the model's dtype whatever the cache has."""
        key = CacheSpec(
            kind="mla_attention",
            block_size=sharding.block_size,
            token_bytes=self.head_dim * sharding.model_element_bytes,
            shape=(1, self.head_dim, 0),
            context_ranks=sharding.context_ranks,
        )
        return (key,)

    @property
    def reads(self) -> Reads:
        """Return that nothing bounds what its kernel reads here."""
        return Reads()

    def rows(self, tensor_parallel_size: int) -> int:
        """Return its queries and one key, which come out of the attention's projection."""
        return (heads_per_rank(self.num_heads, tensor_parallel_size) + 1) * self.head_dim


@dataclass(frozen=True, slots=True, kw_only=True)
class KeySelector:
    """What picks single tokens for softmax heads, by one key for several tokens; the last ones' lie in a ring."""

    num_heads: int
    head_dim: int
    pool: int  # tokens behind one key
    top_k: int  # tokens a query attends to at most, beside those without a key

    @property
    def block_size(self) -> int:
        """Return that its kernels read any block that heads' kernels do. [tokens]."""
        return DEFAULT_BLOCK_SIZE

    def caches(self, sharding: Sharding) -> tuple[CacheSpec, ...]:
        """Return the ring of raw keys with their positions, and the keys of several tokens; whole on every rank.

        Qwen3.8-Flash-Next: a ring of four keys of 128 elements and 24 bytes, and 64 bytes for each token.

        >>> selector = KeySelector(num_heads=4, head_dim=128, pool=4, top_k=2_048)
        >>> rank = Sharding(tensor_parallel_size=8, cache_element_bytes=1, model_element_bytes=2, block_size=400)
        >>> [(spec.kind, spec.block_size, spec.page_size_bytes) for spec in selector.caches(rank)]
        [('circular_buffer', 4, 1120), ('mla_attention', 400, 25600)]
        """
        ring = round_up(self.pool + sharding.num_speculative_tokens, self.pool)
        raw_bytes = self.head_dim * HALF_BYTES + POSITION_BYTES
        raw = CacheSpec(
            kind="circular_buffer",
            block_size=ring,
            token_bytes=0,
            state_bytes=ring * raw_bytes,
            shape=(1, raw_bytes // HALF_BYTES, 0),
        )
        keys = CacheSpec(
            kind="mla_attention",
            block_size=sharding.block_size,
            token_bytes=self.head_dim * HALF_BYTES // self.pool,
            shape=(1, self.head_dim, self.pool),
        )
        return raw, keys

    def rows(self, _tensor_parallel_size: int) -> int:
        """Return its queries and one key, which come out of the attention's projection, whole on every rank."""
        return (self.num_heads + 1) * self.head_dim

    @property
    def reads(self) -> Reads:
        """Return the tokens that are left, and what scoring keys takes.

        Loading makes a buffer of the selected tokens and their number, in every layer:

        >>> KeySelector(num_heads=4, head_dim=128, pool=4, top_k=2_048).reads.buffer_bytes // 4
        2052
        """
        return Reads(
            longest=float(self.top_k + self.pool - 1),
            scan_bytes=self.head_dim * HALF_BYTES / self.pool,
            scan_flop_per_pair=FLOP_PER_MULTIPLICATION * self.num_heads * self.head_dim / self.pool,
            buffer_bytes=(self.top_k + self.pool) * INDEX_BYTES,
            is_on_one_rank=True,
            page_size=None,
        )
