"""Multi-head latent attention: one latent per token, the same on every rank.

    bytes per token        = (kv_lora_rank + qk_rope_head_dim) x element bytes
    flop per pair, decode  = 2 x heads x (latent + kv_lora_rank)              queries and outputs absorbed into latents
    flop per pair, prefill = 2 x heads x (key width + value width)            keys and values expanded

Sources:
    DeepSeek-AI, DeepSeek-V2 (arXiv:2405.04434), section 2.1; DeepSeek-AI, Insights into DeepSeek-V3
    (arXiv:2505.09343), table 1; vLLM 0.33 `model_executor/layers/attention/mla_attention.py`,
    `model_executor/models/deepseek_v2.py`, `v1/attention/backends/mla/`, `platforms/interface.py`
    (`_align_hybrid_block_size`).
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from service.engine.arithmetic import ceil_div
from service.engine.formats.matrix import LATENT_CACHE_SCALES, Matrix, as_kept, cache_scales, single, vector
from service.engine.inputs import Layout
from service.engine.layers.base import (
    ANY_PAGE,
    FLOP_PER_MULTIPLICATION,
    UNBOUNDED,
    DetailRule,
    Divisor,
    KernelNeed,
    LiveElements,
    Mixer,
    Role,
    Spread,
    Work,
)
from service.engine.layers.cache import CacheSharing, CacheSpec, Sharding, heads_per_rank
from service.engine.layers.indexer import SparseIndexer
from service.engine.layers.rotary import Rotated

SPARSE_PAGE_SIZE: Final = 64  # of SGLang's sparse latent kernels [tokens]
PACKED_LATENT_BYTES: Final = 656  # 512 fp8 values, 4 fp32 scales and 64 bf16 rotary values


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentAttention(Mixer):
    """Multi-head latent attention: one latent per token, replicated on every rank."""

    num_attention_heads: int
    q_lora_rank: int | None
    kv_lora_rank: int
    qk_nope_head_dim: int
    qk_rope_head_dim: int
    v_head_dim: int
    has_output_gate: bool = False  # one gate per value element
    has_head_gate: bool = False  # one gate per head
    has_sinks: bool = False  # one learnt fp32 logit per head
    is_kept: bool = False  # in the model's dtype, however a checkpoint stores the rest
    keeps_heads: bool = False  # keeps every head's key and value, not the latent (MiniCPM3)
    kept_width: int = 0  # of each of them; 0: as wide as a key
    is_sparse: bool = False  # attends to selected tokens only
    top_k: int = 0  # so many of them
    indexer: SparseIndexer | None = None  # None in sparse layers that reuse another layer's selection

    @property
    def latent_width(self) -> int:
        """Return the elements of one latent with its rotary part."""
        return self.kv_lora_rank + self.qk_rope_head_dim

    @property
    def key_width(self) -> int:
        """Return the elements of one head's key."""
        return self.qk_nope_head_dim + self.qk_rope_head_dim

    @property
    def sharing(self) -> CacheSharing | None:
        """Return what one latent saves: 1 - (latent + rotary) / (query heads x (key + value elements of one head))."""
        heads = self.num_attention_heads
        if self.keeps_heads:
            return CacheSharing(query_heads=heads, key_value_heads=heads, saved_fraction=0.0)
        whole = heads * (self.key_width + self.v_head_dim)
        return CacheSharing(query_heads=heads, key_value_heads=1, saved_fraction=1 - self.latent_width / whole)

    @property
    def role(self) -> Role:
        """Return that cached tokens are attended to."""
        return "attention"

    def caches(self, sharding: Sharding) -> tuple[CacheSpec, ...]:
        """Return the latent, the same on every rank, and the indexer's key where the layer has one.

        DeepSeek-V3: 70.272 KB (of 1,000 bytes) a token (arXiv:2505.09343, table 1).

        >>> attention = LatentAttention(
        ...     num_attention_heads=128, q_lora_rank=1_536, kv_lora_rank=512, qk_nope_head_dim=128,
        ...     qk_rope_head_dim=64, v_head_dim=128,
        ... )
        >>> rank = Sharding(tensor_parallel_size=8, cache_element_bytes=2, model_element_bytes=2)
        >>> 61 * attention.caches(rank)[0].token_bytes
        70272

        Source: vLLM 0.33 `layers/attention/mla_attention.py` (`_canonicalize_sparse_mla_kv_cache_dtype`).
        """
        if self.keeps_heads:
            return (self._kept_heads(sharding),)
        is_packed = self.is_sparse and sharding.packs_latents
        token_bytes = PACKED_LATENT_BYTES if is_packed else self.latent_width * sharding.cache_element_bytes
        latent = CacheSpec(
            kind="mla_attention",
            block_size=sharding.block_size,
            token_bytes=token_bytes,
            plain_token_bytes=self.latent_width * sharding.cache_element_bytes if is_packed else 0,
            stride_alignment=self._stride_alignment(token_bytes, sharding) if self.is_sparse else 1,
            shape=(1, self.latent_width, 0),
            context_ranks=sharding.context_ranks,
        )
        return (latent,) if self.indexer is None else (*self.indexer.caches(sharding), latent)

    def indexed_like(self, others: Iterable[Mixer], /) -> Mixer:
        """Return it with another layer's indexer, where it reuses a selection; else itself."""
        if not self.is_sparse or self.indexer is not None:
            return self
        indexers = (mixer.indexer for mixer in others if isinstance(mixer, LatentAttention) and mixer.indexer)
        return replace(self, indexer=next(indexers, None))

    def with_heads(self, width: int, /) -> Mixer:
        """Return it with every head's key and value in its cache, so wide at least. [elements]."""
        return self if self.keeps_heads else replace(self, keeps_heads=True, kept_width=max(width, self.key_width))

    def _stride_alignment(self, token_bytes: int, sharding: Sharding) -> int:
        """Return what blocks beside other pages are whole multiples of: rows that the kernel reads at once. [bytes].

        Sources:
            vLLM 0.33 `v1/attention/backends/mla/` (`customize_spec` of each), `sparse_utils.py`
            (`align_blocks_to_rows`).
        """
        if token_bytes == PACKED_LATENT_BYTES and sharding.packs_latents:
            return 1 if sharding.block_size == SPARSE_PAGE_SIZE else SPARSE_PAGE_SIZE * token_bytes
        return token_bytes * sharding.latent_rows

    def _kept_heads(self, sharding: Sharding) -> CacheSpec:
        """Return keys and values of the rank's heads, values padded to the width of keys, or both to a wider one."""
        heads = heads_per_rank(self.num_attention_heads, sharding.tensor_parallel_size)
        width = self.kept_width or self.key_width
        return CacheSpec(
            kind="full_attention",
            block_size=sharding.block_size,
            token_bytes=2 * heads * sharding.vector_bytes(width),
            shape=(heads, width, width),
            context_ranks=sharding.context_ranks,
        )

    @property
    def kernel_needs(self) -> tuple[KernelNeed, ...]:
        """Return latents, whole or selected, with the indexer's keys, or the heads made of them."""
        if self.keeps_heads:
            width = self.kept_width or self.key_width
            return (KernelNeed(kind="grouped", key_dim=width, value_dim=width),)
        latents = KernelNeed(
            kind="sparse" if self.is_sparse else "latent",
            key_dim=self.latent_width,
            value_dim=self.kv_lora_rank,
            nope_dim=self.qk_nope_head_dim,
            rope_dim=self.qk_rope_head_dim,
            top_k=self.top_k,
        )
        if self.indexer is None:
            return (latents,)
        return latents, self.indexer.kernel_need

    @property
    def page_size(self) -> int | None:
        """Return what the sparse kernels want. [tokens]."""
        return SPARSE_PAGE_SIZE if self.is_sparse else ANY_PAGE

    @property
    def spread(self) -> Spread:
        """Return that one latent serves all queries."""
        heads = self.num_attention_heads
        return Spread(queries=heads, key_values=heads if self.keeps_heads else 1)

    def matrices(self, hidden_size: int, layout: Layout, prefix: str) -> list[Matrix]:
        """Return the down-projections (whole on every rank) and up-projections (split by heads)."""
        prefix, heads = prefix + "self_attn.", self.num_attention_heads // layout.tensor_parallel_size
        values = heads * self.v_head_dim
        matrices = [
            Matrix(
                module=prefix + "kv_b_proj",
                rows=heads * (self.qk_nope_head_dim + self.v_head_dim),
                columns=self.kv_lora_rank,
                is_absorbed=True,
            ),
            Matrix(module=prefix + "o_proj", rows=hidden_size, columns=values),
            vector(prefix + "norms", self.kv_lora_rank + (self.q_lora_rank or 0)),
            cache_scales(prefix, LATENT_CACHE_SCALES),
            *self._queries(hidden_size, heads * self.key_width, prefix),
        ]
        if self.has_output_gate or self.has_head_gate:
            gates = values if self.has_output_gate else heads
            matrices.append(Matrix(module=prefix + "g_proj", rows=gates, columns=hidden_size))
        if self.has_sinks:
            matrices.append(single(prefix + "sinks", heads))
        if self.is_kept:
            matrices = as_kept(matrices)
        return matrices if self.indexer is None else [*matrices, *self.indexer.matrices(hidden_size, prefix)]

    def _queries(self, hidden_size: int, width: int, prefix: str) -> list[Matrix]:
        """Return the latent's projection, and the queries': directly, or through a latent of their own."""
        latent = Matrix(module=prefix + "kv_a_proj_with_mqa", rows=self.latent_width, columns=hidden_size)
        if self.q_lora_rank is None:
            return [Matrix(module=prefix + "q_proj", rows=width, columns=hidden_size), latent]
        return [
            Matrix(module=prefix + "q_a_proj", rows=self.q_lora_rank, columns=hidden_size),
            latent,
            Matrix(module=prefix + "q_b_proj", rows=width, columns=self.q_lora_rank),
        ]

    @property
    def divisors(self) -> tuple[Divisor, ...]:
        """Return the heads."""
        return (Divisor(name="attention heads", size=self.num_attention_heads),)

    def live(self, tensor_parallel_size: int) -> LiveElements:
        """Return queries and outputs as wide as latents, and what expanding an earlier token's latent takes."""
        expanded = 0
        if not self.is_sparse:
            heads = ceil_div(self.num_attention_heads, tensor_parallel_size)
            expanded = heads * (self.qk_nope_head_dim + self.v_head_dim) + self.latent_width
        return LiveElements(
            per_token=self.num_attention_heads * 2 * self.latent_width,
            expanded_per_token=expanded,
            selected_ratio=None if self.indexer is None else 1,
        )

    @property
    def adapted_matrices(self) -> tuple[str, ...] | None:
        """Return that adapter buffers have no rule."""
        return None

    @property
    def rotated(self) -> Rotated | None:
        """Return the part of a latent that has positions."""
        return Rotated(width=self.qk_rope_head_dim, is_latent=True, is_sparse=self.is_sparse)

    def detailed(self, _details: DetailRule) -> Mixer:
        """Return itself: heads share one latent."""
        return self

    @property
    def draft_attention(self) -> Mixer | None:
        """Return that EAGLE heads of such models do not follow from their configs."""
        return None

    def work(self, tensor_parallel_size: int, cache_element_bytes: int) -> Work:
        """Return latents read once for all heads, and the indexer's scan of every token's key."""
        heads, index = heads_per_rank(self.num_attention_heads, tensor_parallel_size), self.indexer
        return Work(
            token_bytes=self.latent_width * cache_element_bytes,
            longest=UNBOUNDED if index is None else float(index.top_k),
            decode_flop_per_pair=FLOP_PER_MULTIPLICATION * heads * (self.latent_width + self.kv_lora_rank),
            prefill_flop_per_pair=FLOP_PER_MULTIPLICATION * heads * (self.key_width + self.v_head_dim),
            scan_bytes=0.0 if index is None else index.scan_bytes,
            scan_flop_per_pair=0 if index is None else index.scan_flop_per_pair,
        )
