"""What one layer keeps in the cache of one rank, by vLLM 0.33's cache specifications.

Sources:
    vLLM 0.33 `v1/kv_cache_interface.py` (page sizes, admission), each attention layer's
    `get_kv_cache_spec`, `platforms/interface.py` (`_align_hybrid_block_size`),
    `model_executor/layers/mamba/mamba_utils.py` (state shapes).
"""

from dataclasses import dataclass
from math import lcm
from typing import Literal, assert_never

from service.engine.arithmetic import ceil_div, round_up
from service.engine.layers import (
    Attention,
    CompressedAttention,
    GatedDeltaNet,
    GroupedQueryAttention,
    KimiDeltaAttention,
    LatentAttention,
    Mamba1,
    Mamba2,
    NoAttention,
    RecurrentMixer,
    ShortConvolution,
    SparseIndexer,
)

SpecKind = Literal[
    "full_attention", "sliding_window", "chunked_local_attention", "mla_attention", "sliding_window_mla", "mamba"
]

DEFAULT_BLOCK_SIZE = 16  # vLLM CacheConfig.DEFAULT_BLOCK_SIZE [tokens]
SPARSE_BLOCK_SIZE = 64  # smallest kernel block of the sparse latent kernels [tokens]
FP8_LATENT_BLOCK_SIZE = 64  # FlashMLA's only kernel block [tokens]
WIDE_HEAD_DIM = 512  # heads that FlashAttention 4 runs with an fp8 cache in longer blocks only
WIDE_FP8_BLOCK_SIZE = 64  # [tokens]
DELTA_NET_CHECKPOINT_TOKENS = 64  # chunk on which a delta net can export its state [tokens]
FLASH_KDA_CHECKPOINT_TOKENS = 16  # same, of the FlashKDA kernel of Kimi K3 [tokens]
LATENT_HYBRID_TOKENS = 128  # blocks of latents beside recurrent layers are whole multiples [tokens]
PACKED_LATENT_BYTES = 656  # 512 fp8 values, 4 fp32 scales and 64 bf16 rotary values
COMPRESSED_BLOCK_SIZE = 256  # [tokens]
COMPRESSED_LATENT_BYTES = 584  # 448 fp8 values, 64 bf16 rotary values and 8 scales
COMPRESSED_ROW_BYTES = 576  # pages are padded to a multiple of this
OVERLAPPING_RATIO = 4  # compressors of this ratio overlap two groups
FP32_BYTES = 4
INDEXER_SCALE_BYTES = 4  # one fp32 scale for each indexer key
ELEMENT_BYTES = {"bfloat16": 2, "float16": 2, "float32": 4}


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheSpec:
    """One layer's cache on one rank; equal specs can share a block table."""

    kind: SpecKind
    block_size: int  # [tokens]
    token_bytes: int  # of one token, unpadded; 0 for a recurrent state
    state_bytes: int = 0  # of one request's recurrent state, unpadded
    window: int = 0  # sliding window or chunk; 0 where the layer keeps everything [tokens]
    page_size_padded: int | None = None  # [bytes]
    stride_alignment: int = 1  # [bytes]
    pages_per_request: int = 0  # of a recurrent state, whatever the length
    retained_tokens: int = 0  # that a sliding window keeps longer, for drafts [tokens]
    context_ranks: int = 1  # that hold the tokens in turn; recurrent states stay whole
    shape: tuple[int, ...] = ()  # heads and widths: layers with the same bytes may still differ

    @property
    def page_size_bytes(self) -> int:
        """Return the bytes of one block of this layer."""
        if self.page_size_padded is not None:
            return self.page_size_padded
        return self.state_bytes if self.kind == "mamba" else self.token_bytes * self.block_size

    @property
    def block_stride_bytes(self) -> int:
        """Return the page rounded up to what the kernel's addressing needs."""
        return round_up(self.page_size_bytes, self.stride_alignment)

    def blocks_for(self, num_tokens: int, in_flight_tokens: int) -> int:
        """Return the blocks that a request of this length may hold at once.

            full, latent:  ceil(ceil(n / ranks) / b)
            sliding:       ceil(min(window - 1 + retained + in_flight, n) / b) + 1
            chunked:       ceil(min(chunk + in_flight, n) / b)
            recurrent:     fixed

        Args:
            num_tokens: n, tokens of the request. [tokens]
            in_flight_tokens: scheduled but not settled; freed blocks lag behind by them. [tokens]
        """
        match self.kind:
            case "full_attention" | "mla_attention":
                return ceil_div(ceil_div(num_tokens, self.context_ranks), self.block_size)
            case "sliding_window" | "sliding_window_mla":
                held = self.window - 1 + self.retained_tokens + in_flight_tokens
                return ceil_div(min(held, num_tokens), self.block_size) + 1
            case "chunked_local_attention":
                return ceil_div(min(self.window + in_flight_tokens, num_tokens), self.block_size)
            case "mamba":
                return self.pages_per_request
            case _ as never:
                assert_never(never)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharding:
    """What decides the bytes of a rank besides the model itself."""

    tensor_parallel_size: int
    cache_element_bytes: int  # 2 for bf16 and fp16, 1 for fp8
    model_element_bytes: int
    block_size: int
    is_checkpoints_dtype: bool  # the cache's dtype is the checkpoint's own
    keeps_states: bool  # recurrent layers keep states for prefix caching
    num_speculative_tokens: int = 0  # drafted per step; each needs a state to fall back to
    retained_tokens: int = 0  # that sliding windows keep longer for drafts [tokens]
    context_ranks: int = 1  # decode-context parallelism


def heads_per_rank(num_heads: int, tensor_parallel_size: int) -> int:
    """Return the heads of one rank: split while they last, replicated (one each) beyond."""
    return max(1, num_heads // tensor_parallel_size)


def attention_specs(attention: Attention, sharding: Sharding) -> tuple[CacheSpec, ...]:
    """Return the caches of one mixer on one rank; none for a layer without state or with another's cache."""
    match attention:
        case GroupedQueryAttention():
            return () if attention.shares_cache_with is not None else _grouped(attention, sharding)
        case LatentAttention():
            return _latent(attention, sharding)
        case CompressedAttention():
            return _compressed(attention)
        case GatedDeltaNet() | KimiDeltaAttention() | Mamba1() | Mamba2() | ShortConvolution():
            return (_recurrent(attention, sharding),)
        case NoAttention():
            return ()
        case _ as never:
            assert_never(never)


def _grouped(attention: GroupedQueryAttention, sharding: Sharding) -> tuple[CacheSpec, ...]:
    """Return keys and values of the rank's heads, and the key of the block selector where the layer has one."""
    heads = heads_per_rank(attention.num_key_value_heads, sharding.tensor_parallel_size)
    element_bytes = sharding.model_element_bytes if attention.keeps_model_dtype else sharding.cache_element_bytes
    token_bytes = heads * (attention.head_dim + attention.v_head_dim) * element_bytes
    kind: SpecKind = "full_attention"
    if attention.sliding_window is not None:
        kind = "sliding_window"
    elif attention.attention_chunk_size is not None:
        kind = "chunked_local_attention"
    own = CacheSpec(
        kind=kind,
        block_size=sharding.block_size,
        token_bytes=token_bytes,
        window=attention.sliding_window or attention.attention_chunk_size or 0,
        retained_tokens=sharding.retained_tokens if kind == "sliding_window" else 0,
        context_ranks=sharding.context_ranks,
        shape=(heads, attention.head_dim, attention.v_head_dim),
    )
    if attention.selector is None:
        return (own,)
    width = attention.selector.head_dim
    key_bytes = width * sharding.model_element_bytes  # whatever dtype the cache has
    key = CacheSpec(
        kind="mla_attention",
        block_size=sharding.block_size,
        token_bytes=key_bytes,
        shape=(1, width, 0),
        context_ranks=sharding.context_ranks,
    )
    return key, own


def _latent(attention: LatentAttention, sharding: Sharding) -> tuple[CacheSpec, ...]:
    """Return the latent, the same on every rank, and the indexer's key where the layer has one.

    Source: vLLM 0.33 `layers/attention/mla_attention.py` (`_canonicalize_sparse_mla_kv_cache_dtype`).
    """
    if attention.keeps_heads:
        return _latent_heads(attention, sharding)
    width = attention.kv_lora_rank + attention.qk_rope_head_dim
    token_bytes = width * sharding.cache_element_bytes
    # Asked for fp8, the sparse kernels pack latents with scales; a checkpoint's own fp8 stays plain.
    is_packed = attention.is_sparse and sharding.cache_element_bytes == 1 and not sharding.is_checkpoints_dtype
    if is_packed:
        token_bytes = PACKED_LATENT_BYTES
    latent = CacheSpec(
        kind="mla_attention",
        block_size=sharding.block_size,
        token_bytes=token_bytes,
        stride_alignment=token_bytes if attention.is_sparse and not is_packed else 1,
        shape=(1, width, 0),
        context_ranks=sharding.context_ranks,
    )
    if attention.indexer is None:
        return (latent,)
    return (_indexer(attention.indexer, sharding), latent)


def _latent_heads(attention: LatentAttention, sharding: Sharding) -> tuple[CacheSpec, ...]:
    """Return keys and values of the rank's heads, values padded to the width of keys."""
    heads = heads_per_rank(attention.num_attention_heads, sharding.tensor_parallel_size)
    head_dim = attention.qk_nope_head_dim + attention.qk_rope_head_dim
    token_bytes = 2 * heads * head_dim * sharding.cache_element_bytes
    shape = (heads, head_dim, head_dim)
    return (
        CacheSpec(
            kind="full_attention",
            block_size=sharding.block_size,
            token_bytes=token_bytes,
            shape=shape,
            context_ranks=sharding.context_ranks,
        ),
    )


def _indexer(indexer: SparseIndexer, sharding: Sharding) -> CacheSpec:
    """Return the selector's cache: one byte per element and one scale per token."""
    token_bytes = indexer.head_dim + INDEXER_SCALE_BYTES
    return CacheSpec(
        kind="mla_attention",
        block_size=sharding.block_size,
        token_bytes=token_bytes,
        shape=(1, token_bytes, 0),
        context_ranks=sharding.context_ranks,
    )


def _compressed(attention: CompressedAttention) -> tuple[CacheSpec, ...]:
    """Return DeepSeek V4's caches, the same on every rank and in one format whatever dtype is asked for.

    A window of latents; and for compressed layers one latent per `compress_ratio` tokens, the fp32
    running state of the compressor, and both again for the indexer. Pages are padded to whole rows.
    """
    latent = COMPRESSED_LATENT_BYTES
    window = _padded("sliding_window_mla", 64, 64 * latent, latent, attention.sliding_window)
    ratio = attention.compress_ratio
    if ratio == 1:
        return (window,)
    kept = _padded(
        "mla_attention", COMPRESSED_BLOCK_SIZE, COMPRESSED_BLOCK_SIZE // ratio * latent, ceil_div(latent, ratio)
    )
    if attention.indexer is None:
        return window, kept, _compressor_state(attention.head_dim, ratio, overlap=1)
    key = attention.indexer.head_dim + INDEXER_SCALE_BYTES
    return (
        window,
        _padded("mla_attention", COMPRESSED_BLOCK_SIZE, COMPRESSED_BLOCK_SIZE // ratio * key, ceil_div(key, ratio)),
        _compressor_state(attention.indexer.head_dim, ratio, overlap=2),
        kept,
        _compressor_state(attention.head_dim, ratio, overlap=2),
    )


def _compressor_state(head_dim: int, ratio: int, *, overlap: int) -> CacheSpec:
    """Return the fp32 keys and scores of the tokens that are still being compressed."""
    token_bytes = 2 * overlap * head_dim * FP32_BYTES
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


def _recurrent(mixer: RecurrentMixer, sharding: Sharding) -> CacheSpec:
    pages = 1
    if sharding.keeps_states:  # a running state and the one being written, and a checkpoint
        pages = 3 if checkpoint_tokens(mixer) else 2
    return CacheSpec(
        kind="mamba",
        block_size=sharding.block_size,
        token_bytes=0,
        state_bytes=state_bytes(mixer, sharding),
        pages_per_request=pages + sharding.num_speculative_tokens,
    )


def state_bytes(mixer: RecurrentMixer, sharding: Sharding) -> int:
    """Return the bytes of one layer's state for one request on one rank.

        Mamba 2:   (k - 1) x (heads x head_dim + 2 x groups x state) / tp x b  +  heads / tp x head_dim x state x s
        delta net: (k - 1) x (2 x key + value width) / tp x b  +  value_heads / tp x value_dim x key_dim x s
        Kimi:      (k - 1) x 3 x heads / tp x head_dim x b  +  heads / tp x head_dim^2 x 4

    Groups are extended so that every rank has the ones its heads read. The convolution also keeps
    the inputs of drafted tokens, where the kernel can run several at once: k grows by their number.
    """
    tp, element_bytes, drafted = (
        sharding.tensor_parallel_size,
        sharding.model_element_bytes,
        sharding.num_speculative_tokens,
    )
    match mixer:
        case GatedDeltaNet():
            width = 2 * mixer.key_head_dim * mixer.num_key_heads + mixer.value_head_dim * mixer.num_value_heads
            matrix = mixer.num_value_heads // tp * mixer.value_head_dim * mixer.key_head_dim
            conv = (mixer.conv_kernel_size - 1 + drafted) * (width // tp) * element_bytes
            return conv + matrix * ELEMENT_BYTES.get(mixer.state_dtype, element_bytes)
        case KimiDeltaAttention():
            width = mixer.num_heads // tp * mixer.head_dim
            conv = (mixer.conv_kernel_size - 1 + drafted) * 3 * width * element_bytes
            return conv + width * mixer.head_dim * FP32_BYTES
        case Mamba2():
            groups = mixer.num_groups if mixer.num_groups % tp == 0 else tp
            width = mixer.num_heads * mixer.head_dim + 2 * groups * mixer.state_size
            matrix = mixer.num_heads // tp * mixer.head_dim * mixer.state_size
            conv = (mixer.conv_kernel_size - 1 + drafted) * (width // tp) * element_bytes
            return conv + matrix * ELEMENT_BYTES.get(mixer.state_dtype, element_bytes)
        case Mamba1():
            width = mixer.intermediate_size // tp
            return (mixer.conv_kernel_size - 1 + mixer.state_size) * width * element_bytes
        case ShortConvolution():
            return (mixer.conv_kernel_size - 1 + drafted) * (mixer.hidden_size // tp) * element_bytes
        case _ as never:
            assert_never(never)


def kernel_block_size(attention: Attention, cache_element_bytes: int) -> int:
    """Return the smallest block that the layer's kernel on Hopper accepts. [tokens]."""
    match attention:
        case LatentAttention():
            if attention.keeps_heads:
                return DEFAULT_BLOCK_SIZE
            if attention.is_sparse:
                return SPARSE_BLOCK_SIZE
            return FP8_LATENT_BLOCK_SIZE if cache_element_bytes == 1 else DEFAULT_BLOCK_SIZE
        case CompressedAttention():
            return COMPRESSED_BLOCK_SIZE
        case GroupedQueryAttention():
            if attention.selector is not None:
                return attention.selector.block_size
            wide = attention.head_dim == WIDE_HEAD_DIM and cache_element_bytes == 1
            return WIDE_FP8_BLOCK_SIZE if wide else DEFAULT_BLOCK_SIZE
        case GatedDeltaNet() | KimiDeltaAttention() | Mamba1() | Mamba2() | ShortConvolution() | NoAttention():
            return DEFAULT_BLOCK_SIZE
        case _ as never:
            assert_never(never)


def checkpoint_tokens(mixer: RecurrentMixer) -> int:
    """Return the grid on which prefill can keep a state for prefix caching; 0 where it cannot. [tokens].

    Source: vLLM 0.33, each layer's `get_kv_cache_spec` (`prefill_checkpoint_alignment`).
    """
    match mixer:
        case GatedDeltaNet():
            return DELTA_NET_CHECKPOINT_TOKENS if mixer.exports_states else 0
        case KimiDeltaAttention():
            return FLASH_KDA_CHECKPOINT_TOKENS if mixer.has_full_rank_gate else 0
        case Mamba2():
            return 1
        case Mamba1() | ShortConvolution():
            return 0
        case _ as never:
            assert_never(never)


def hybrid_block_size(
    block_size: int, attention_token_bytes: int, state: int, *, has_latent: bool, checkpoint_grid: int
) -> int:
    """Return the attention block inflated until one page holds a recurrent state. [tokens].

        alignment = lcm(max(block_size, 128 for latents), checkpoint grid)
        block = alignment x ceil(state / (alignment x attention_token_bytes))

    Args:
        block_size: what the attention kernels accept. [tokens]
        attention_token_bytes: of one token and layer.
        state: largest recurrent state of one layer. [bytes]
        has_latent: whether the attention is latent, whose decode kernels want whole 128s.
        checkpoint_grid: grid of kept states; 0 where a recurrent layer keeps none. [tokens]
    """
    alignment = lcm(max(block_size, LATENT_HYBRID_TOKENS) if has_latent else block_size, checkpoint_grid or 1)
    return max(block_size, alignment * ceil_div(state, alignment * attention_token_bytes))
