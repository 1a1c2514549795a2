"""The token selector of sparse attention, which keeps a small key of its own per token, or one for several.

    bytes per token     = (elements of a key + one fp32 scale) / tokens of a key
    bytes per request   = ring x 2 x elements x 2            where a key has several tokens: raw keys and gates
    ring                = tokens of a key x (1, and 2, 4, ... so that drafted tokens fit beside an open key)

Sources:
    DeepSeek-AI, DeepSeek-V3.2-Exp (github.com/deepseek-ai/DeepSeek-V3.2-Exp); vLLM 0.33
    `models/deepseek_v32/attention.py`, `models/glm5next/common/attention.py` (`Glm5NextIndexerCache`,
    `Glm5NextTailCache`), `v1/attention/backends/mla/indexer.py`.
"""

from dataclasses import dataclass
from math import gcd
from typing import Final

from service.engine.arithmetic import ceil_div
from service.engine.formats.elements import BYTE, HALF_BYTES
from service.engine.formats.matrix import Matrix, single, vector
from service.engine.layers.base import FLOP_PER_MULTIPLICATION, KernelNeed
from service.engine.layers.cache import CacheSpec, Sharding

INDEXER_BLOCK_SIZE: Final = 64  # of the kernel that scores keys [keys]
SCALE_BYTES: Final = 4  # one fp32 scale for each key
KEY_AND_GATE: Final = 2  # of a token whose key is not complete


@dataclass(frozen=True, slots=True, kw_only=True)
class SparseIndexer:
    """The token selector of sparse attention; it keeps a small key of its own per token, or one for several."""

    num_heads: int
    head_dim: int
    top_k: int
    q_lora_rank: int
    pool: int = 1  # tokens behind one key
    is_kept: bool = False  # in the model's dtype, however a checkpoint stores the rest

    @property
    def key_bytes(self) -> int:
        """Return its key: one byte per element and one scale. [bytes].

        DeepSeek-V3.2: 128 values and one scale (github.com/deepseek-ai/DeepSeek-V3.2-Exp).

        >>> SparseIndexer(num_heads=64, head_dim=128, top_k=2_048, q_lora_rank=1_536).key_bytes
        132
        """
        return self.head_dim * BYTE + SCALE_BYTES

    def caches(self, sharding: Sharding) -> tuple[CacheSpec, ...]:
        """Return its keys, the same on every rank, and the tokens of a key that is not complete, whole on each.

        GLM-5.3-Flash: a key for four tokens, and a ring of four tokens with 128 values and gates in bf16.

        >>> indexer = SparseIndexer(num_heads=32, head_dim=128, top_k=2_048, q_lora_rank=1_536, pool=4)
        >>> rank = Sharding(tensor_parallel_size=1, cache_element_bytes=2, model_element_bytes=2, block_size=1_152)
        >>> [(spec.kind, spec.page_size_bytes) for spec in indexer.caches(rank)]
        [('mla_attention', 38016), ('circular_buffer', 2048)]
        """
        keys = CacheSpec(
            kind="mla_attention",
            block_size=sharding.block_size,
            token_bytes=self.key_bytes // self.pool,
            stride_alignment=self._stride_alignment(sharding.block_size),
            shape=(1, self.key_bytes, self.pool) if self.pool > 1 else (1, self.key_bytes, 0),
            context_ranks=sharding.context_ranks,
        )
        return (keys,) if self.pool == 1 else (keys, self._open(sharding.num_speculative_tokens))

    def _stride_alignment(self, block_size: int) -> int:
        """Return what blocks beside other pages are whole multiples of: keys that the kernel reads at once. [bytes].

        Source: vLLM 0.33 `v1/worker/utils.py` (`customize_attention_spec`).
        """
        read = gcd(INDEXER_BLOCK_SIZE * self.pool, block_size)
        return 1 if read == block_size else read // self.pool * self.key_bytes

    def _open(self, drafted: int) -> CacheSpec:
        """Return a ring for the tokens of a key that is not complete, and for drafted ones behind it."""
        keys = ceil_div(self.pool + drafted, self.pool)
        ring = self.pool * (1 << (keys - 1).bit_length())
        return CacheSpec(
            kind="circular_buffer",
            block_size=ring,
            token_bytes=0,
            state_bytes=ring * KEY_AND_GATE * self.head_dim * HALF_BYTES,
            shape=(KEY_AND_GATE, self.head_dim, 0),
        )

    @property
    def kernel_need(self) -> KernelNeed:
        """Return the kernel that scores keys, in blocks of tokens."""
        return KernelNeed(kind="indexer", block_size=INDEXER_BLOCK_SIZE * self.pool)

    @property
    def scan_bytes(self) -> float:
        """Return what scoring one token of the context reads. [bytes]."""
        return self.head_dim * BYTE / self.pool

    @property
    def scan_flop_per_pair(self) -> float:
        """Return what scoring one token of the context takes. [flop]."""
        return FLOP_PER_MULTIPLICATION * self.num_heads * self.head_dim / self.pool

    def matrices(self, hidden_size: int, prefix: str) -> list[Matrix]:
        """Return its queries, key with head weights, and norm, whole on every rank; and what makes one key of several.

        Of a key for several tokens, a gate of each token, and where in the key it stands.
        """
        rows = self.head_dim + self.num_heads
        pooled = [
            single(prefix + "indexer.index_kpool_compress_ape", self.pool * self.head_dim),
            vector(prefix + "indexer.index_kpool_compress_gate", self.head_dim * hidden_size),
        ]
        return [
            Matrix(
                module=prefix + "indexer.wq_b",
                rows=self.num_heads * self.head_dim,
                columns=self.q_lora_rank,
                is_kept=self.is_kept,
            ),
            Matrix(module=prefix + "indexer.wk", rows=rows, columns=hidden_size, is_linear=False),
            single(prefix + "indexer.k_norm", 2 * self.head_dim),
            *(pooled if self.pool > 1 else ()),
        ]
