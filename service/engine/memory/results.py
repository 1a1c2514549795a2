"""What memory planning returns, in bytes and tokens."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class KvCacheGroup:
    """Layers of one kind that share block tables."""

    kind: str  # full_attention, sliding_window, chunked_local_attention, mla_attention, mamba, ...
    num_layers: int
    block_size: int  # [tokens]
    page_size_bytes: int  # one layer's page on one GPU
    blocks_per_request: int  # for a request of max_model_len
    window_tokens: int | None  # where the layers stop growing


@dataclass(frozen=True, slots=True, kw_only=True)
class KvCache:
    """The pool of one GPU and what it holds; `tokens` and `max_concurrency` are the engine's start-up line."""

    # One more token in the layers that keep growing, whole model before sharding; in windows where no layer does.
    bytes_per_token: int
    bytes_per_token_within_windows: int  # the same while every window is still filling
    bytes_per_token_per_gpu: int  # the same on one rank
    state_bytes_per_request: int  # fixed recurrent state, whole model before sharding
    bytes_per_request: int  # one request of input + output tokens, in whole blocks, whole model before sharding
    bytes_per_request_per_gpu: int  # the same on one GPU
    block_size: int  # [tokens]
    bytes_per_block: int
    num_gpu_blocks: int
    tokens: int
    max_concurrency: float  # requests of max_model_len
    estimated_max_model_len: int  # longest single request the pool holds, at most max_model_len [tokens]
    groups: tuple[KvCacheGroup, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPerGpu:
    """The ledger of one GPU: the seven terms add up to `total_bytes` exactly when `shortfall_bytes` is 0.

    total_bytes = reserved + weight + activation + cuda_graph + non_torch + kv_cache - shortfall
    """

    total_bytes: int
    reserved_bytes: int  # outside the engine's budget
    weight_bytes: int
    activation_bytes: int
    cuda_graph_bytes: int
    non_torch_bytes: int
    kv_cache_bytes: int
    shortfall_bytes: int  # what is missing before any cache fits; 0 when the weights fit


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelWeights:
    """The weights of one whole replica, in the loaded format."""

    weight_bytes: int  # as one GPU alone would load them
    num_parameters: int
    num_active_parameters: int  # that one token passes through
