"""What one layer keeps in the cache of one rank, in the words of vLLM's cache specifications.

    page of a growing layer = token bytes x block size
    page of a recurrent one = its whole state, as of a ring

Source:
    vLLM 0.33 `v1/kv_cache_interface.py` (page sizes, `max_memory_usage_bytes` of each specification).
"""

from dataclasses import dataclass, replace
from typing import Final, Literal, assert_never

from service.engine.arithmetic import ceil_div, round_up
from service.engine.formats.elements import SINGLE_BYTES, dtype_bytes
from service.engine.formats.scheme import NVFP4_GROUP
from service.engine.inputs import CompressedPools, KvCacheDtype

SpecKind = Literal[
    "full_attention",
    "sliding_window",
    "chunked_local_attention",
    "mla_attention",
    "sliding_window_mla",
    "mamba",
    "circular_buffer",
]

DEFAULT_BLOCK_SIZE: Final = 16  # vLLM CacheConfig.DEFAULT_BLOCK_SIZE [tokens]


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheSharing:
    """How many heads one cached key serves, and the share of a cache of every head that is not kept."""

    query_heads: int
    key_value_heads: int  # 1 where all heads share one latent
    saved_fraction: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheSpec:
    """One layer's cache on one rank; equal specs can share a block table."""

    kind: SpecKind
    block_size: int  # [tokens]
    token_bytes: int  # of one token, unpadded; 0 for a recurrent state or a ring
    plain_token_bytes: int = 0  # of a latent that is kept packed, as it is without; 0 where it is not packed
    state_bytes: int = 0  # of one request's recurrent state or ring, unpadded
    window: int = 0  # sliding window or chunk; 0 where the layer keeps everything [tokens]
    page_size_padded: int | None = None  # [bytes]
    stride_alignment: int = 1  # [bytes]
    block_alignment: int = 1  # of a block with pages of other layers beside [bytes]
    pages_per_request: int = 0  # of a recurrent state, whatever the length
    checkpoint_tokens: int = 0  # grid on which prefill can keep a recurrent state; 0 where it cannot [tokens]
    retained_tokens: int = 0  # that a sliding window keeps longer, for drafts [tokens]
    context_ranks: int = 1  # that hold the tokens in turn; recurrent states stay whole
    shape: tuple[int, ...] = ()  # heads and widths: layers with the same bytes may still differ

    @property
    def page_size_bytes(self) -> int:
        """Return the bytes of one block of this layer."""
        if self.page_size_padded is not None:
            return self.page_size_padded
        return self.state_bytes or self.token_bytes * self.block_size

    @property
    def aligned_token_bytes(self) -> int:
        """Return the bytes of a token by which blocks are made long enough for recurrent states beside."""
        return self.plain_token_bytes or self.token_bytes

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
            ring:          1

        Args:
            num_tokens: n, tokens of the request. [tokens]
            in_flight_tokens: scheduled but not settled; freed blocks lag behind by them. [tokens]

        >>> window = CacheSpec(kind="sliding_window", block_size=16, token_bytes=2_048, window=128)
        >>> window.blocks_for(131_072, in_flight_tokens=16_384)
        1033
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
            case "circular_buffer":
                return 1
            case _ as never:
                assert_never(never)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """How a kernel can keep a recurrent state for prefix caching while prefill goes on, where the GPU runs it."""

    kernel: Literal["mamba2", "delta", "flash_kda"]
    tokens: int  # grid on which states can be kept [tokens]
    key_width: int = 0  # of one head [elements]


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """How a kernel wants the latents of one token stored, and to what pages and blocks of them are rounded. [bytes]."""

    window_bytes: int = 584  # 448 fp8 values, 64 bf16 rotary values and 8 scales
    past_bytes: int = 584  # of what stands for several tokens
    page_alignment: int = 576
    block_alignment: int = 1


USUAL_RECORDS: Final = Records()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharding:
    """What decides the bytes of a rank besides the model itself."""

    tensor_parallel_size: int
    cache_element_bytes: int  # 2 for bf16 and fp16, 1 for fp8
    model_element_bytes: int
    cache_dtype: KvCacheDtype = "auto"  # where scales stand beside elements
    block_size: int = DEFAULT_BLOCK_SIZE
    packs_latents: bool = False  # of sparse attention, as its kernel reads them
    latent_rows: int = 1  # of sparse attention that its kernel reads at once [tokens]
    records: Records = USUAL_RECORDS  # of latents with a compressed past, where their form depends on the GPU
    keeps_states: bool = False  # recurrent layers keep states for prefix caching
    exporting: frozenset[Checkpoint] = frozenset()  # kernels that keep states while prefill goes on
    num_speculative_tokens: int = 0  # drafted per step; each needs a state to fall back to
    retained_tokens: int = 0  # that sliding windows keep longer for drafts [tokens]
    context_ranks: int = 1  # decode-context parallelism
    kept_whole: frozenset[str] = frozenset()  # kinds of layers, as if they were full attention
    state_dtype: str = "auto"  # stated, of all of a recurrent state
    matrix_dtype: str = "auto"  # stated, of its matrices alone
    unnamed_matrix_dtype: str = "auto"  # the engine's, where neither the caller nor the config names one
    reads_state_dtypes: bool = True  # what the config names counts
    pools: CompressedPools | None = None  # of an engine with a pool for each kind of layer; None: all share pages

    def in_model_dtype(self) -> "Sharding":
        """Return the same with a cache in the model's dtype."""
        return replace(self, cache_element_bytes=self.model_element_bytes, cache_dtype="auto")

    def vector_bytes(self, width: int) -> int:
        """Return what one head's key or value of one token takes in the cache, with the scales that stand beside it.

            scales by token and head:  width x bits / 8 + 4
            nvfp4:                     width / 2 + width / 16
            all others:                width x element bytes

        11.10 GiB are 425 blocks of 1,584 tokens in 17 layers of Qwen3.6-27B, of two heads of 256 a rank: 1,041 bytes
        (github.com/noonghunna/club-3090, vLLM with `int8_per_token_head`).

        Sources:
            vLLM 0.33 `v1/attention/backends/triton_attn.py` and `flashinfer.py` (`customize_spec`),
            `utils/torch_utils.py` (`nvfp4_kv_cache_full_dim`); 0.20 to 0.32 `v1/kv_cache_interface.py`
            (`real_page_size_bytes`).

        Args:
            width: of the head. [elements]

        >>> rank = Sharding(
        ...     tensor_parallel_size=2, cache_element_bytes=1, model_element_bytes=2, cache_dtype="int8_per_token_head"
        ... )
        >>> 2 * (rank.vector_bytes(256) + rank.vector_bytes(256))
        1040
        """
        match self.cache_dtype:
            case "int8_per_token_head" | "fp8_per_token_head":
                return width + SINGLE_BYTES
            case "int4_per_token_head":
                return width // 2 + SINGLE_BYTES
            case "nvfp4":
                return width // 2 + width // NVFP4_GROUP
            case _:
                return width * self.cache_element_bytes

    @property
    def state_element_bytes(self) -> int:
        """Return the bytes of an element of a recurrent state: the model's own unless stated."""
        return dtype_bytes(self.state_dtype, self.model_element_bytes)

    def matrix_element_bytes(self, own: str) -> int:
        """Return the bytes of an element of a state's matrices: as stated, as the config names it, or like the rest.

        Args:
            own: the dtype that the model's config names; "auto" where it names none.

        Qwen3-Next-80B-A3B, whose config names none: SGLang keeps fp32 by default (pull request 15337: "The default
        setting is `float32`"), vLLM the model's bf16.

        >>> from dataclasses import replace
        >>> sglang = Sharding(
        ...     tensor_parallel_size=1, cache_element_bytes=2, model_element_bytes=2, unnamed_matrix_dtype="float32")
        >>> vllm = replace(sglang, unnamed_matrix_dtype="auto")
        >>> sglang.matrix_element_bytes("auto"), vllm.matrix_element_bytes("auto")
        (4, 2)
        """
        unnamed = dtype_bytes(self.unnamed_matrix_dtype, self.state_element_bytes)
        named = own if self.reads_state_dtypes else "auto"
        return dtype_bytes(self.matrix_dtype, dtype_bytes(named, unnamed))


def heads_per_rank(num_heads: int, tensor_parallel_size: int) -> int:
    """Return the heads of one rank: split while they last, replicated (one each) beyond.

    >>> heads_per_rank(8, 4), heads_per_rank(8, 16)
    (2, 1)
    """
    return max(1, num_heads // tensor_parallel_size)
