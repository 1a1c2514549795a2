"""Latent attention with a compressed past (DeepSeek V4): a window of latents, and one latent for several tokens.

    window      584 bytes a token, whatever dtype is asked for
    past        584 / ratio bytes a token
    compressor  2 x overlap x width x 4 bytes for each token that is still being compressed
    indexer     (132 / ratio) bytes a token, with a compressor of its own, at ratio 4

Pages are padded to whole rows of 576 bytes.

Sources:
    vLLM 0.33 `models/deepseek_v4/` (`attention.py`, `compressor.py`, `nvidia/`), `v1/kv_cache_interface.py`;
    SGLang 0.5.15 and 0.5.23 `mem_cache/deepseek_v4_memory_pool.py` (`get_compress_state_ring_size`, `page_bytes`).
"""

from dataclasses import dataclass, replace
from typing import Final

from service.engine.arithmetic import ceil_div, round_up
from service.engine.formats.elements import SINGLE_BYTES
from service.engine.formats.matrix import Matrix, single, vector
from service.engine.inputs import CompressedPools, Layout
from service.engine.layers.base import (
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
from service.engine.layers.cache import CacheSharing, CacheSpec, Sharding, SpecKind, heads_per_rank
from service.engine.layers.indexer import SparseIndexer
from service.engine.layers.rotary import Rotated

WINDOW_BLOCK_SIZE: Final = 64  # [tokens]
COMPRESSED_BLOCK_SIZE: Final = 256  # [tokens]
COMPRESSED_LATENT_BYTES: Final = 584  # 448 fp8 values, 64 bf16 rotary values and 8 scales
COMPRESSED_ROW_BYTES: Final = 576  # pages are padded to a multiple of this
OVERLAPPING_RATIO: Final = 4  # compressors of this ratio overlap two groups
MIN_SINK_HEADS: Final = 64  # query heads that the sparse kernel works on at once


@dataclass(frozen=True, slots=True, kw_only=True)
class CompressedAttention(Mixer):
    """Latent attention with a compressed past (DeepSeek V4): a window, and one latent per `compress_ratio` tokens.

    Layers of ratio 4 select compressed tokens with an indexer that has a compressor of its own.
    """

    num_attention_heads: int
    head_dim: int
    q_lora_rank: int
    o_lora_rank: int
    o_groups: int
    sliding_window: int  # [tokens]
    compress_ratio: int  # tokens behind one kept latent; 1 for a layer that only has its window
    indexer: SparseIndexer | None = None

    @property
    def sharing(self) -> CacheSharing | None:
        """Return that there is no rule for a past that is compressed."""
        return None

    @property
    def role(self) -> Role:
        """Return that cached tokens are attended to."""
        return "attention"

    def caches(self, sharding: Sharding) -> tuple[CacheSpec, ...]:
        """Return DeepSeek V4's caches, the same on every rank and in one format whatever dtype is asked for.

        A window of latents; and for compressed layers one latent per `compress_ratio` tokens, the fp32
        running state of the compressor, and both again for the indexer. vLLM 0.33 itself computes a
        window's page of DeepSeek-V4-Flash as 37,440 bytes.

        >>> window = CompressedAttention(
        ...     num_attention_heads=64, head_dim=512, q_lora_rank=1_024, o_lora_rank=1_024, o_groups=8,
        ...     sliding_window=128, compress_ratio=1,
        ... )
        >>> rank = Sharding(tensor_parallel_size=1, cache_element_bytes=1, model_element_bytes=2)
        >>> window.caches(rank)[0].page_size_bytes
        37440
        """
        if sharding.pools is not None:
            return self._in_pools(sharding.pools, drafts=sharding.num_speculative_tokens > 0)
        latent, ratio = COMPRESSED_LATENT_BYTES, self.compress_ratio
        window = _padded(
            "sliding_window_mla", WINDOW_BLOCK_SIZE, WINDOW_BLOCK_SIZE * latent, latent, self.sliding_window
        )
        if ratio == 1:
            return (window,)
        past, state = _past(latent, ratio), _compressor_state(self.head_dim, ratio, overlap=self._overlap)
        if self.indexer is None:
            return window, past, state
        selecting = _compressor_state(self.indexer.head_dim, ratio, overlap=self._overlap)
        return window, _past(self.indexer.key_bytes, ratio), selecting, past, state

    def _in_pools(self, pools: CompressedPools, *, drafts: bool) -> tuple[CacheSpec, ...]:
        """Return the same for pools of each kind, in pages of 256 tokens, which some versions pad."""
        latent, ratio, is_padded = COMPRESSED_LATENT_BYTES, self.compress_ratio, pools == "padded"
        window = _pooled("sliding_window_mla", latent, 1, is_padded=is_padded, window=self.sliding_window)
        if ratio == 1:
            return (window,)
        past = _pooled("mla_attention", latent, ratio, is_padded=is_padded)
        widths = [self.head_dim]
        keys: tuple[CacheSpec, ...] = ()
        if self.indexer is not None:
            widths.append(self.indexer.head_dim)
            keys = (_pooled("mla_attention", self.indexer.key_bytes, ratio, is_padded=False),)
        tokens = self._overlap * ratio * (2 if drafts else 1)  # that may still change
        row = sum(2 * self._overlap * width * SINGLE_BYTES for width in widths)
        if ratio != OVERLAPPING_RATIO and pools != "by_tokens":
            ring = CacheSpec(kind="circular_buffer", block_size=tokens, token_bytes=0, state_bytes=tokens * row)
            return window, past, ring
        # One ring for each window's worth of slots, later for each page of them.
        slots = COMPRESSED_BLOCK_SIZE if is_padded else self.sliding_window
        states = CacheSpec(
            kind="sliding_window_mla",
            block_size=slots,
            token_bytes=ceil_div(tokens * row, slots),
            window=self.sliding_window,
        )
        return window, past, *keys, states

    @property
    def _overlap(self) -> int:
        """Return the groups of tokens that one compressed latent is made of."""
        return 1 if self.indexer is None else 2

    @property
    def kernel_needs(self) -> tuple[KernelNeed, ...]:
        """Return a kernel of its own, with the block of the compressed past.

        Caches are planned on every GPU; the first step fails where no kernel runs. Source: vLLM 0.33
        `v1/attention/ops/flashmla.py` (`is_flashmla_sparse_supported`), `models/deepseek_v4/nvidia/model.py`
        (`_select_dsv4_attn_cls`: FlashMLA but on compute capability 12), `models/deepseek_v4/sparse_mla.py`.
        """
        own = KernelNeed(kind="own", block_size=COMPRESSED_BLOCK_SIZE, reads_fp8_only=True, generations=(9, 10, 12))
        return (own,)

    @property
    def page_size(self) -> int | None:
        """Return what its kernels want. [tokens]."""
        return COMPRESSED_BLOCK_SIZE

    @property
    def spread(self) -> Spread:
        """Return that windows cannot be spread."""
        return Spread(queries=self.num_attention_heads, key_values=1, is_local=True)

    def matrices(self, hidden_size: int, layout: Layout, prefix: str) -> list[Matrix]:
        """Return the attention's own; down-projections, compressors and indexer are whole on every rank."""
        prefix, tp = prefix + "attn.", layout.tensor_parallel_size
        heads, rows = self.num_attention_heads // tp, self.o_groups * self.o_lora_rank // tp
        return [
            _matrix(prefix + "fused_wqa_wkv", self.q_lora_rank + self.head_dim, hidden_size),
            _matrix(prefix + "wq_b", heads * self.head_dim, self.q_lora_rank),
            replace(
                _matrix(prefix + "wo_a", rows, self.num_attention_heads * self.head_dim // self.o_groups),
                is_grouped=True,
            ),
            _matrix(prefix + "wo_b", hidden_size, rows),
            vector(prefix + "norms", self.q_lora_rank + self.head_dim),
            single(prefix + "attn_sink", max(heads, MIN_SINK_HEADS)),
            *self._compressors(hidden_size, prefix),
        ]

    def _compressors(self, hidden_size: int, prefix: str) -> list[Matrix]:
        """Return the compressor of latents, and the indexer with its own."""
        matrices: list[Matrix] = []
        if self.compress_ratio > 1:
            matrices += self._compressor(self.head_dim, hidden_size, prefix + "compressor.")
        if (index := self.indexer) is not None:
            weights = Matrix(
                module=prefix + "indexer.weights_proj", rows=index.num_heads, columns=hidden_size, is_linear=False
            )
            matrices += [
                _matrix(prefix + "indexer.wq_b", index.num_heads * index.head_dim, index.q_lora_rank),
                weights,
                *self._compressor(index.head_dim, hidden_size, prefix + "indexer.compressor."),
            ]
        return matrices

    def _compressor(self, head_dim: int, hidden_size: int, prefix: str) -> list[Matrix]:
        width = self._overlap * head_dim
        return [
            single(prefix + "ape", self.compress_ratio * width),
            Matrix(module=prefix + "fused_wkv_wgate", rows=2 * width, columns=hidden_size, is_linear=False),
            vector(prefix + "norm", head_dim),
        ]

    @property
    def divisors(self) -> tuple[Divisor, ...]:
        """Return the heads, and the groups of the output's projection."""
        return (
            Divisor(name="attention heads", size=self.num_attention_heads),
            Divisor(name="output groups", size=self.o_groups),
        )

    def live(self, _tensor_parallel_size: int) -> LiveElements:
        """Return queries and outputs, and that an indexer gathers compressed keys."""
        return LiveElements(
            per_token=2 * self.num_attention_heads * self.head_dim,
            selected_ratio=None if self.indexer is None else self.compress_ratio,
        )

    @property
    def adapted_matrices(self) -> tuple[str, ...] | None:
        """Return that adapter buffers have no rule."""
        return None

    @property
    def rotated(self) -> Rotated | None:
        """Return nothing: past and window have tables of their own."""
        return None

    def detailed(self, _details: DetailRule) -> Mixer:
        """Return itself: heads share compressed entries."""
        return self

    @property
    def draft_attention(self) -> Mixer | None:
        """Return that EAGLE heads of such models do not follow from their configs."""
        return None

    def work(self, tensor_parallel_size: int, cache_element_bytes: int) -> Work:
        """Return compressed latents read once for all heads, and two products per pair and head."""
        heads = heads_per_rank(self.num_attention_heads, tensor_parallel_size)
        flop = 2 * FLOP_PER_MULTIPLICATION * heads * self.head_dim
        longest = UNBOUNDED if self.indexer is None else float(self.indexer.top_k)
        return Work(
            token_bytes=self.head_dim * cache_element_bytes,
            longest=longest if self.compress_ratio > 1 else float(self.sliding_window),
            ratio=float(max(self.compress_ratio, 1)),
            decode_flop_per_pair=flop,
            prefill_flop_per_pair=flop,
        )


def _matrix(module: str, rows: int, columns: int) -> Matrix:
    """Return a matrix whose quantization blocks have scales of one byte."""
    return Matrix(module=module, rows=rows, columns=columns, scale_bytes=1)


def _past(entry_bytes: int, ratio: int) -> CacheSpec:
    """Return what is kept of the whole past, one entry for `ratio` tokens."""
    page = COMPRESSED_BLOCK_SIZE // ratio * entry_bytes
    return _padded("mla_attention", COMPRESSED_BLOCK_SIZE, page, ceil_div(entry_bytes, ratio))


def _compressor_state(head_dim: int, ratio: int, *, overlap: int) -> CacheSpec:
    """Return the fp32 keys and scores of the tokens that are still being compressed."""
    token_bytes = 2 * overlap * head_dim * SINGLE_BYTES
    block = 4 if ratio == OVERLAPPING_RATIO else 8
    return _padded("sliding_window_mla", block, block * token_bytes, token_bytes, overlap * ratio)


def _padded(kind: SpecKind, block_size: int, page_bytes: int, token_bytes: int, window: int = 0) -> CacheSpec:
    return CacheSpec(
        kind=kind,
        block_size=block_size,
        token_bytes=token_bytes,
        window=window,
        page_size_padded=round_up(page_bytes, COMPRESSED_ROW_BYTES),
        shape=(1, token_bytes, page_bytes),
    )


def _pooled(kind: SpecKind, entry_bytes: int, ratio: int, *, is_padded: bool, window: int = 0) -> CacheSpec:
    """Return one entry for `ratio` tokens, in pages of whole rows or as they come."""
    page = COMPRESSED_BLOCK_SIZE // ratio * entry_bytes
    return CacheSpec(
        kind=kind,
        block_size=COMPRESSED_BLOCK_SIZE,
        token_bytes=ceil_div(entry_bytes, ratio),
        window=window,
        page_size_padded=round_up(page, COMPRESSED_ROW_BYTES) if is_padded else page,
    )
