"""Latent attention whose compressed past a few layers keep for those behind them (DeepSeek V4.1).

    window      584 bytes a token, or 528        in every layer, in blocks of 32 tokens
    past        584 / ratio bytes a token        in a source; 528 or 288 where a GPU's kernel reads such records
    keys        132 / ratio bytes a token        beside it, of which every selection is made until the next source
    ring        max(8, drafted + 2 rounded up to a power of 2) x 2 x width x 4 bytes     in a source of ratio 2

Layers between two sources read the past of the first, and what the last one that selects chose of it.

Sources:
    vLLM 0.33 `models/deepseek_v41/` (`attention.py`, `compressor.py`, `sparse_mla.py`); DeepSeek-AI,
    DeepSeek-V4.1-Flash (arXiv:2609.19969).
"""

from dataclasses import dataclass, replace
from typing import Final

from service.engine.arithmetic import ceil_div, round_up
from service.engine.formats.elements import SINGLE_BYTES
from service.engine.formats.matrix import Matrix, vector
from service.engine.layers.base import KernelNeed, LiveElements, Work
from service.engine.layers.cache import CacheSpec, Records, Sharding, SpecKind
from service.engine.layers.compressed import CompressedAttention
from service.engine.layers.selectors import INDEX_BYTES

WINDOW_BLOCK: Final = 32  # [tokens]
MIN_RING: Final = 8  # [tokens]
BESIDE_DRAFTS: Final = 2  # tokens of a ring: the one that is verified, and the one before
POOLED: Final = 2  # tokens behind one latent, whose shares a gate decides


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcedAttention(CompressedAttention):
    """A window of latents, and a compressed past that a source keeps for itself and the layers behind it."""

    shares_cache_with: int | None = None  # the source, among the model's layers, whose past it reads
    is_source: bool = False  # it keeps a past, and keys beside it
    top_k: int = 0  # tokens of the past that it attends to; 0 for a layer that only has its window
    num_blocks_chosen: int = 0  # of the past, from which later layers select alone

    def caches(self, sharding: Sharding) -> tuple[CacheSpec, ...]:
        """Return a window, and of a source the past, its keys and the tokens of a latent that is not complete.

        Source 2 of DeepSeek-V4.1-Flash on Hopper, whose "Setting kv cache block size to 64" a start-up printed
        (github.com/tant2tls/Deepseek-serving): blocks of 64 tokens are 32 latents of 584 bytes and as many keys of
        132, rounded up to whole rows of 576.

        >>> from service.engine.layers.indexer import SparseIndexer
        >>> source = SourcedAttention(
        ...     num_attention_heads=64, head_dim=512, q_lora_rank=1_280, o_lora_rank=1_024, o_groups=8,
        ...     sliding_window=128, compress_ratio=2, is_source=True, top_k=512,
        ...     indexer=SparseIndexer(num_heads=32, head_dim=128, top_k=512, q_lora_rank=1_280),
        ... )
        >>> rank = Sharding(tensor_parallel_size=8, cache_element_bytes=1, model_element_bytes=2, block_size=64)
        >>> [(spec.block_size, spec.page_size_bytes) for spec in source.caches(rank)]
        [(32, 19008), (64, 4608), (64, 19008), (8, 32768)]
        """
        records, block = sharding.records, sharding.block_size
        window = _paged("sliding_window_mla", WINDOW_BLOCK, 1, records.window_bytes, records, self.sliding_window)
        window = replace(window, block_alignment=records.block_alignment)
        if not self.is_source or self.indexer is None:
            return (window,)
        ratio = self.compress_ratio
        keys = _paged("mla_attention", block, ratio, self.indexer.key_bytes, records)
        past = _paged("mla_attention", block, ratio, records.past_bytes, records)
        return (window, keys, past) if ratio == 1 else (window, keys, past, self._open(sharding.num_speculative_tokens))

    def _open(self, drafted: int) -> CacheSpec:
        """Return a ring for the tokens of a latent that is not complete, and for drafted ones behind it."""
        ring = max(MIN_RING, 1 << (drafted + BESIDE_DRAFTS - 1).bit_length())
        return CacheSpec(
            kind="circular_buffer",
            block_size=ring,
            token_bytes=0,
            state_bytes=ring * POOLED * self.head_dim * SINGLE_BYTES,
            shape=(POOLED, self.head_dim, 0),
        )

    @property
    def kernel_needs(self) -> tuple[KernelNeed, ...]:
        """Return a kernel of its own, whose records and blocks differ by GPU."""
        return (KernelNeed(kind="records", reads_fp8_only=True, generations=(9, 10, 12)),)

    def _compressors(self, hidden_size: int, prefix: str) -> list[Matrix]:
        """Return the compressor of a source, and the queries of a layer that selects; keys are made of latents."""
        matrices: list[Matrix] = []
        if self.is_source:
            rows = self.head_dim * min(self.compress_ratio, POOLED)  # one without a gate, where nothing is pooled
            matrices += [
                Matrix(module=prefix + "compressor.fused_wkv_wgate", rows=rows, columns=hidden_size, is_linear=False),
                vector(prefix + "compressor.norm", self.head_dim),
            ]
        if (index := self.indexer) is not None:
            queries = Matrix(
                module=prefix + "indexer.wq_b",
                rows=index.num_heads * index.head_dim,
                columns=index.q_lora_rank,
                scale_bytes=1,
            )
            weights = prefix + "indexer.weights_proj"
            matrices += [queries, Matrix(module=weights, rows=index.num_heads, columns=hidden_size, is_linear=False)]
        if index is not None and self.is_source:
            keys = Matrix(module=prefix + "indexer.wk", rows=index.head_dim, columns=self.head_dim, is_linear=False)
            matrices += [keys, vector(prefix + "indexer.k_norm", index.head_dim)]
        return matrices

    def live(self, _tensor_parallel_size: int) -> LiveElements:
        """Return queries and outputs, and what a layer that selects gathers; buffers of selections are one for all."""
        chosen = (self.top_k + self.num_blocks_chosen) if self.num_blocks_chosen else 0
        return LiveElements(
            per_token=2 * self.num_attention_heads * self.head_dim,
            selected_ratio=None if self.indexer is None else self.compress_ratio,
            buffer_bytes_per_token=chosen * INDEX_BYTES,
        )

    def work(self, tensor_parallel_size: int, cache_element_bytes: int) -> Work:
        """Return a window, or selected latents, read once for all heads; whoever selects reads the keys as well."""
        usual = replace(
            super(SourcedAttention, self).work(tensor_parallel_size, cache_element_bytes),
            longest=float(self.top_k or self.sliding_window),
        )
        if (index := self.indexer) is None:
            return usual
        return replace(
            usual,
            scan_bytes=index.scan_bytes / self.compress_ratio,
            scan_flop_per_pair=index.scan_flop_per_pair / self.compress_ratio,
        )


def _paged(
    kind: SpecKind, block_size: int, ratio: int, record_bytes: int, records: Records, window: int = 0
) -> CacheSpec:
    """Return one record for `ratio` tokens, in pages of whole rows."""
    page = block_size // ratio * record_bytes
    return CacheSpec(
        kind=kind,
        block_size=block_size,
        token_bytes=ceil_div(record_bytes, ratio),
        window=window,
        page_size_padded=round_up(page, records.page_alignment),
        shape=(1, record_bytes, ratio),
    )
