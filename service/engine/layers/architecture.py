"""What a model is made of, as its published config states it.

One closed union of frozen dataclasses per role (`Attention`, `Mlp`); every module that must
know the variants dispatches with `match` and `assert_never`, so that a new variant fails the
type check wherever it is forgotten.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockSelector:
    """What picks the cache blocks a query attends to (MiniMax M3); it keeps a small key of its own per token."""

    num_heads: int
    head_dim: int
    block_size: int  # [tokens]


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
    has_query_bias: bool = False
    has_key_value_bias: bool = False
    has_output_bias: bool = False
    norm_elements: int = 0  # query and key norms, not split over ranks
    has_wide_norms: bool = False  # norms over all heads of query and key, split with them
    has_head_gate: bool = False  # one gate per query head
    has_output_gate: bool = False  # query projection is twice as wide
    has_sinks: bool = False  # one learnt logit per query head
    query_rank: int = 0  # queries come out of a projection this wide, which with keys and values no rank splits
    selector: BlockSelector | None = None
    keeps_model_dtype: bool = False  # its cache is of the model's dtype whatever is asked for
    is_shared_block: bool = False  # has no weights but the projection behind a shared block
    shares_cache_with: int | None = None  # index of the layer whose cache this one reads


@dataclass(frozen=True, slots=True, kw_only=True)
class SparseIndexer:
    """The token selector of sparse attention; it keeps a small key of its own per token."""

    num_heads: int
    head_dim: int
    top_k: int
    q_lora_rank: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentAttention:
    """Multi-head latent attention: one latent per token, replicated on every rank."""

    num_attention_heads: int
    q_lora_rank: int | None
    kv_lora_rank: int
    qk_nope_head_dim: int
    qk_rope_head_dim: int
    v_head_dim: int
    has_output_gate: bool = False  # one gate per value element
    has_sinks: bool = False  # one learnt fp32 logit per head
    keeps_heads: bool = False  # keeps every head's key and value, not the latent (MiniCPM3)
    is_sparse: bool = False  # attends to selected tokens only
    indexer: SparseIndexer | None = None  # None in sparse layers that reuse another layer's selection


@dataclass(frozen=True, slots=True, kw_only=True)
class CompressedAttention:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class GatedDeltaNet:
    """Linear attention with a decaying matrix state per value head (Qwen3-Next, Qwen3.5, OLMo Hybrid).

    With a fixed decay it has no convolution either: lightning attention (Ring 2.5).
    """

    num_key_heads: int
    num_value_heads: int
    key_head_dim: int
    value_head_dim: int
    conv_kernel_size: int
    state_dtype: str  # element type of the matrix state; "auto" follows the model
    has_fixed_decay: bool = False
    num_norm_groups: int = 0  # of the output's norm; a rank needs one at least
    has_head_norms: bool = False  # on query and key
    has_narrow_decay: bool = False  # learnt decay in the model's dtype, not in fp32
    exports_states: bool = True  # prefill can keep states for prefix caching on the way


@dataclass(frozen=True, slots=True, kw_only=True)
class KimiDeltaAttention:
    """Linear attention whose matrix state decays per channel (Kimi Linear, Kimi K3)."""

    num_heads: int
    head_dim: int
    conv_kernel_size: int
    has_full_rank_gate: bool = False  # output gate of full width (Kimi K3), not of one head's


@dataclass(frozen=True, slots=True, kw_only=True)
class Mamba2:
    """State-space mixer with one matrix state per head (Nemotron-H, Granite 4, Bamba)."""

    num_heads: int
    head_dim: int
    state_size: int
    num_groups: int
    conv_kernel_size: int
    state_dtype: str
    has_bias: bool = False
    has_conv_bias: bool = True
    has_norm: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Mamba1:
    """State-space mixer with a diagonal state (Mamba, Jamba)."""

    intermediate_size: int
    state_size: int
    conv_kernel_size: int
    time_step_rank: int
    has_bias: bool = False
    has_conv_bias: bool = True
    norm_elements: int = 0  # norms on time step, B and C, as Jamba has


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortConvolution:
    """Gated short convolution (LFM2): its state is the last few inputs."""

    hidden_size: int
    conv_kernel_size: int
    has_bias: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NoAttention:
    """A block without token mixing (a feed-forward-only layer, or one pruned away)."""


RecurrentMixer = GatedDeltaNet | KimiDeltaAttention | Mamba2 | Mamba1 | ShortConvolution
Attention = GroupedQueryAttention | LatentAttention | CompressedAttention | RecurrentMixer | NoAttention


@dataclass(frozen=True, slots=True, kw_only=True)
class DenseMlp:
    """One feed-forward network; gated ones have three matrices, plain ones two."""

    intermediate_size: int
    is_gated: bool = True
    has_bias: bool = False
    has_output_bias: bool = False  # after the last matrix alone
    is_whole: bool = False  # the engine does not split it over ranks
    splits_tokens: bool = False  # whole where experts' ranks take different tokens; see `MoeMlp`


@dataclass(frozen=True, slots=True, kw_only=True)
class MoeMlp:
    """A router over experts, with optional shared experts that always run."""

    num_experts: int
    num_experts_per_tok: int
    moe_intermediate_size: int
    shared_expert_intermediate_size: int = 0  # summed over shared experts
    has_shared_gate: bool = False  # one logit that scales the shared expert
    rank_padding: int = 1  # each rank's share of an MXFP4 expert is rounded up to a multiple of this
    min_rank_columns: int = 0  # and to this at least, once experts are cut
    latent_size: int = 0  # routed experts work in this width, projected in and out; 0 in the model's own
    has_latent_norm: bool = False
    dense_intermediate_size: int = 0  # a dense network beside the experts (Gemma 4, LongCat)
    dense_count: int = 1  # such networks
    image_expert_size: int = 0  # as many experts again of this width, for images (Ernie 4.5 VL)
    has_expert_norms: bool = False  # around the experts, with scales of their own (Gemma 4)
    num_idle_experts: int = 0  # that the router may pick and that pass a token on unchanged
    is_gated: bool = True
    has_bias: bool = False
    has_router_bias: bool = False
    has_wide_router: bool = False  # router kept in fp32
    expert_scheme: str = ""  # how quantized checkpoints store experts, where not as the rest: mxfp4, nvfp4
    hash_table_rows: int = 0  # tokens with fixed experts, as 32-bit numbers (DeepSeek V4's first layers)
    has_score_correction: bool = False  # one fp32 bias per expert, for balance
    splits_tokens: bool = False  # between ranks that hold whole experts and share attention: shared experts are whole


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


@dataclass(frozen=True, slots=True, kw_only=True)
class PerLayerEmbeddings:
    """A second, narrow embedding for every layer, gated into the stream (Gemma 3n, small Gemma 4)."""

    vocab_size: int
    width: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AlternatingUpdates:
    """Copies of the stream, of which a layer computes one, and a low-rank residual beside it (Gemma 3n)."""

    num_streams: int
    residual_rank: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedBlocks:
    """A few transformer blocks that many layers run in turn, each use with adapters of its own (Zamba 2)."""

    num_blocks: int
    num_uses: int
    attention_width: int  # of the stream beside the embeddings
    intermediate_size: int
    adapter_rank: int
    adapts_attention: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoder:
    """The vision or audio part of a multimodal model: weights, but no cache."""

    split_parameters: int  # divided over tensor-parallel ranks
    whole_parameters: int  # the same on every rank
    num_heads: int | None = None  # that tensor parallelism must divide
    intermediate_size: int = 0  # that it must divide as well, where a family's sizes are odd
    is_whole_where_uneven: bool = False  # where it does not, every rank holds the whole tower instead
    beside: "Encoder | None" = None  # a part with heads of its own, such as the tower for sound
    max_tokens_per_item: int = 0  # what one image or video adds to a prompt at most [tokens]
    # Alive at once in its widest layer, per prompt token; 0 where unknown.
    split_elements_per_token: int = 0  # divided over tensor-parallel ranks
    whole_elements_per_token: int = 0
    unbounded_tokens: int = 0  # of the longest video, for versions that do not bound it by the context [tokens]
    outputs: int = 1  # vectors as wide as the language model that one token yields: its own, and one per deep stack


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Architecture:
    """A model's structure. Compared and hashed by identity, so that plans can be cached per model."""

    name: str  # as the config's `architectures` states it
    dtype: str  # element type of unquantized weights and activations: bfloat16, float16, float32
    hidden_size: int
    vocab_size: int
    max_position_embeddings: int  # longest context the model accepts [tokens]
    default_max_model_len: int  # what the engine serves when nobody states a length [tokens]
    layers: tuple[DecoderLayer, ...]
    ties_embeddings: bool = False
    norms_per_layer: int = 2  # of the width of the residual stream
    norm_biases: bool = False
    has_head_bias: bool = False
    is_hybrid: bool = True  # of a class that may mix attention and recurrence, even if this one does not
    has_attention_residuals: bool = False  # each part of a layer attends over earlier layers' outputs (Kimi K3)
    residual_streams: int = 1  # hyper-connections mix several, with fp32 weights of their own
    mixes_streams: bool = True  # into each other as well, not only in and out of a layer's parts
    shared_blocks: SharedBlocks | None = None
    per_layer_embeddings: PerLayerEmbeddings | None = None
    alternating_updates: AlternatingUpdates | None = None
    extra_parameters: int = 0  # learnt positions and the like, on every rank
    encoder: Encoder | None = None
    has_window_pool: bool = False  # SGLang keeps its windowed layers in a pool of their own
    measured_as: tuple[str, str] | None = None  # class and model type with the same matrices that kernels are known for
    mtp: "DraftHead | None" = None  # multi-token prediction modules of the checkpoint, loaded only to draft


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DraftHead:
    """Layers beside the model's own that draft tokens from its hidden states: MTP modules, an EAGLE head.

    Embeddings and the output head are the model's, shared, unless stated. Compared and hashed by
    identity, like the model.
    """

    body: Architecture  # the draft's layers, in the model's width
    layer_modules: tuple[str, ...]  # what the checkpoint calls each of these layers
    num_modules: int = 1  # that take turns over drafted tokens
    joined_states: int = 2  # vectors side by side that a projection brings to one width, in each module
    projection_module: str = ""  # as checkpoints name it; empty where it always keeps the model's dtype
    is_projection_split: bool = False  # over tensor-parallel ranks
    projection_scale_bytes: int = 4
    num_norms: int = 3  # of each module, besides its layers'
    widened_inputs: int = 0  # elements that queries, keys and values take in beyond the model's width
    head_vocab_size: int = 0  # rows of an output head of its own in each module; 0 where it is the model's
    is_vocab_mapped: bool = False  # that vocabulary is a part of the model's, mapped by 64-bit numbers
    is_quantized: bool = True  # stored as the model's checkpoint is
    unquantized: tuple[str, ...] = ()  # but for matrices of these names
