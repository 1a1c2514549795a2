"""What a model is made of, as its published config states it.

One closed union of frozen dataclasses per role (`Attention`, `Mlp`); every module that must
know the variants dispatches with `match` and `assert_never`, so that a new variant fails the
type check wherever it is forgotten.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupedQueryAttention:
    """Softmax attention with its own keys and values: MHA, GQA and MQA.

    `sliding_window` and `attention_chunk_size` bound what a layer keeps; at most one is set.
    """

    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    v_head_dim: int
    sliding_window: int | None = None  # [tokens]
    attention_chunk_size: int | None = None  # [tokens]
    has_qkv_bias: bool = False
    has_output_bias: bool = False
    norm_elements: int = 0  # query and key norms, not split over ranks
    has_output_gate: bool = False  # query projection is twice as wide
    has_sinks: bool = False  # one learnt logit per query head
    shares_cache_with: int | None = None  # index of the layer whose cache this one reads


@dataclass(frozen=True, slots=True, kw_only=True)
class SparseIndexer:
    """The token selector of sparse attention; it keeps a small key of its own per token."""

    num_heads: int
    head_dim: int
    top_k: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentAttention:
    """Multi-head latent attention: one latent per token, replicated on every rank."""

    num_attention_heads: int
    q_lora_rank: int | None
    kv_lora_rank: int
    qk_nope_head_dim: int
    qk_rope_head_dim: int
    v_head_dim: int
    indexer: SparseIndexer | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NoAttention:
    """A block without token mixing (a feed-forward-only layer, or one pruned away)."""


Attention = GroupedQueryAttention | LatentAttention | NoAttention


@dataclass(frozen=True, slots=True, kw_only=True)
class DenseMlp:
    """One feed-forward network; gated ones have three matrices, plain ones two."""

    intermediate_size: int
    is_gated: bool = True
    has_bias: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MoeMlp:
    """A router over experts, with optional shared experts that always run."""

    num_experts: int
    num_experts_per_tok: int
    moe_intermediate_size: int
    shared_expert_intermediate_size: int = 0  # summed over shared experts
    is_gated: bool = True
    has_bias: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NoMlp:
    """A layer without feed-forward part."""


Mlp = DenseMlp | MoeMlp | NoMlp


@dataclass(frozen=True, slots=True, kw_only=True)
class DecoderLayer:
    """One decoder layer: its token mixers (more than one where they run in parallel) and its feed-forward part."""

    index: int
    mixers: tuple[Attention, ...]
    mlp: Mlp


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Architecture:
    """A model's structure. Compared and hashed by identity, so that plans can be cached per model."""

    name: str  # as the config's `architectures` states it
    dtype: str  # element type of unquantized weights and activations: bfloat16, float16, float32
    hidden_size: int
    vocab_size: int
    max_position_embeddings: int  # longest context the engine would derive [tokens]
    layers: tuple[DecoderLayer, ...]
