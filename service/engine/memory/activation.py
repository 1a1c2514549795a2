"""What the engine's profiling run needs beside the weights: forward pass, sampler, vision encoder.

Each term follows the tensors that are alive at once in vLLM's profiling run; the constants that
depend on the version are in `service/catalog/data/engine_rules.yaml`, each with its evidence.
"""

from functools import lru_cache

from service.engine.arithmetic import ceil_div
from service.engine.engines.rules import EngineRules
from service.engine.inputs import EngineSettings, Layout
from service.engine.layers import (
    Architecture,
    CompressedAttention,
    DenseMlp,
    GatedDeltaNet,
    GroupedQueryAttention,
    LatentAttention,
    MoeMlp,
)

ELEMENT_BYTES = 2  # activations are bf16 or fp16
# Tokens whose keys and values latent attention expands at once when a long prompt comes in chunks.
LARGEST_CONTEXT_CHUNK = 64 * 1024
# The sparse indexer's workspace, per token of `max_model_len` and unit of the workspace factor.
SPARSE_WORKSPACE_BYTES = 576 * 2
SPARSE_FACTOR = 5
# Contexts beyond this use the version's smaller factor.
LONG_CONTEXT_TOKENS = 256 * 1024
INDEXER_LOGITS_BYTES = 512 << 20
DELTA_CHUNK_TOKENS = 64


def activation_bytes(architecture: Architecture, layout: Layout, settings: EngineSettings, rules: EngineRules) -> int:
    """Return the peak of the profiling run beside weights. [bytes].

        peak      = lasting + kept + max(sampler, forward, encoder)             vLLM >= 0.17
                  = kept + max(sampler, forward + workspace, encoder)           before
                  = lasting + kept + sampler + forward + encoder                TensorRT-LLM
        lasting   = sampler's tables + workspace
        kept      = copies x batch x hidden x streams x 2 + encoder outputs
        sampler   = bytes_per_logit x min(max_num_seqs, batch) x vocabulary
        forward   = batch x 2 x (widest layer on one rank)
        encoder   = encoder tokens x 2 x (widest encoder layer on one rank, per token)

    The sampler works on the whole vocabulary on every rank, so it does not shrink with tensor
    parallelism, and it dominates for small models and many sequences. The context length does not
    enter, except in the buffers of latent and sparse attention. TensorRT-LLM allocates execution
    context, runtime and decoder buffers one beside the other before it looks at what is free.

    Args:
        architecture: the model.
        layout: how one replica is spread.
        settings: batch limits and context.
        rules: the version's working copies of logits and hidden states.

    Sources:
        vLLM 0.33 `v1/worker/gpu/model_runner.py` (`profile_run`, `_dummy_sampler_run`),
        `v1/sample/ops/topk_topp_sampler.py`, `v1/worker/gpu/sample/penalties.py`,
        `model_executor/layers/attention/mla_attention.py`, `.../sparse_attn_indexer.py`,
        `.../fused_moe/experts/triton_moe.py` (`workspace_shapes`), `multimodal/encoder_budget.py`;
        TensorRT-LLM documentation, "Memory Usage of TensorRT-LLM".
    """
    sampler = int(rules.sampler_bytes_per_logit * sampled_logits(architecture, settings))
    encoder = _encoder_bytes(architecture, layout, settings)
    forward = forward_bytes(architecture, layout, settings)
    kept = kept_bytes(architecture, settings, rules)
    if not rules.keeps_workspaces:
        forward += workspace_bytes(architecture, layout, settings, rules)
    lasting = lasting_bytes(architecture, layout, settings, rules)
    if rules.memory_share == "free":
        return lasting + kept + sampler + forward + encoder
    return lasting + kept + max(sampler, forward, encoder)


def encoder_tokens(architecture: Architecture, settings: EngineSettings) -> int:
    """Return the prompt tokens that the encoder is profiled with; 0 for a text model. [tokens].

    As many of the largest images as the token budget holds, at least one.

    Source:
        vLLM 0.33 `multimodal/encoder_budget.py` (`MultiModalBudget`).
    """
    if architecture.encoder is None or architecture.encoder.max_tokens_per_item == 0:
        return 0
    longest = architecture.encoder.max_tokens_per_item
    budget = max(settings.max_num_batched_tokens, longest)
    return budget - budget % longest


@lru_cache(maxsize=2048)
def expert_workspace_elements(architecture: Architecture, layout: Layout) -> int:
    """Return the elements per token of the widest expert layer's two buffers. [elements].

        chosen experts x (max(inner, width) + max(2 x inner, width))

    Each token is copied once per chosen expert, on its way in and between the two products.
    """
    widest = 0
    for mlp in {layer.mlp for layer in architecture.layers}:
        if isinstance(mlp, MoeMlp):
            inner = ceil_div(mlp.moe_intermediate_size, 1 if layout.expert_parallel else layout.tensor_parallel_size)
            width = mlp.latent_size or architecture.hidden_size
            products = (2 if mlp.is_gated else 1) * inner
            widest = max(widest, mlp.num_experts_per_tok * (max(inner, width) + max(products, width)))
    return widest


@lru_cache(maxsize=2048)
def widest_layer_elements(architecture: Architecture, layout: Layout) -> int:
    """Return the elements per token that the widest layer needs at once on one rank. [elements].

    Feed-forward: gate, up and their product, and the residual beside them. Attention: query, key,
    value and output. Expert buffers are apart, in `expert_workspace_elements`.
    """
    mixers = {mixer for layer in architecture.layers for mixer in layer.mixers}
    mlps = {layer.mlp for layer in architecture.layers}
    widths = [_mlp_width(mlp) for mlp in mlps] + [_attention_width(mixer) for mixer in mixers]
    widest = ceil_div(max(widths, default=0), layout.tensor_parallel_size)
    return widest + 2 * architecture.hidden_size * architecture.residual_streams


def sampled_logits(architecture: Architecture, settings: EngineSettings) -> int:
    """Return the logits that the profiling run samples from: one row of the vocabulary per sequence."""
    return min(settings.max_num_seqs, settings.max_num_batched_tokens) * architecture.vocab_size


def lasting_bytes(architecture: Architecture, layout: Layout, settings: EngineSettings, rules: EngineRules) -> int:
    """Return what stays allocated after the profiling run: the sampler's tables, and workspaces where kept. [bytes].

    Newer versions print it as consumed, beside the weights, and no longer as peak activation.
    """
    tables = int(rules.sampler_state_bytes_per_logit * settings.max_num_seqs * architecture.vocab_size)
    return tables + (workspace_bytes(architecture, layout, settings, rules) if rules.keeps_workspaces else 0)


def kept_bytes(architecture: Architecture, settings: EngineSettings, rules: EngineRules) -> int:
    """Return what stays alive beside every peak: hidden states of the batch and encoder outputs. [bytes]."""
    row_bytes = architecture.hidden_size * ELEMENT_BYTES
    batch = settings.max_num_batched_tokens * architecture.residual_streams * row_bytes
    if architecture.encoder is None:
        return int(rules.hidden_state_copies * batch)
    unbounded = 0 if rules.bounds_encoder_cache else architecture.encoder.unbounded_tokens
    tokens = max(encoder_tokens(architecture, settings), unbounded)
    return int(rules.hidden_state_copies * batch) + tokens * architecture.encoder.outputs * row_bytes


def workspace_bytes(architecture: Architecture, layout: Layout, settings: EngineSettings, rules: EngineRules) -> int:
    """Return the largest buffer that layers share: of experts or of sparse attention. [bytes]."""
    experts = settings.max_num_batched_tokens * ELEMENT_BYTES * expert_workspace_elements(architecture, layout)
    return max(experts, _sparse_workspace_bytes(architecture, settings, rules))


def forward_bytes(architecture: Architecture, layout: Layout, settings: EngineSettings) -> int:
    """Return the peak inside the widest layer, or of expanding an earlier context. [bytes]."""
    layer = settings.max_num_batched_tokens * ELEMENT_BYTES * widest_layer_elements(architecture, layout)
    return max(layer, _context_chunk_bytes(architecture, layout, settings))


def _encoder_bytes(architecture: Architecture, layout: Layout, settings: EngineSettings) -> int:
    """Return the peak inside the tower's widest layer on one rank. [bytes]."""
    tower, ranks = architecture.encoder, layout.tensor_parallel_size
    if tower is None:
        return 0
    is_split = tower.split_parameters > 0 and (tower.num_heads is None or tower.num_heads % ranks == 0)
    split = ceil_div(tower.split_elements_per_token, ranks if is_split else 1)
    return encoder_tokens(architecture, settings) * (split + tower.whole_elements_per_token) * ELEMENT_BYTES


def _mlp_width(mlp: object) -> int:
    """Return gate, up and product of the part that every token passes. [elements]."""
    match mlp:
        case DenseMlp():
            return 3 * mlp.intermediate_size
        case MoeMlp():
            return 3 * (mlp.shared_expert_intermediate_size + mlp.dense_intermediate_size)
        case _:
            return 0


def _attention_width(mixer: object) -> int:
    """Return query, key, value and output of softmax attention, or what a chunk-wise recurrence holds. [elements].

    Gated delta rule, per token: the projection with its gate; query, key and value after the
    convolution, and again normalized; w, u, the corrected and the output values; and a matrix state
    of each value head for every chunk.

    Source:
        vLLM 0.33 `third_party/flash_linear_attention/ops/chunk.py` (`chunk_gated_delta_rule_fwd`).
    """
    match mixer:
        case GroupedQueryAttention():
            return (2 * mixer.num_attention_heads + 2 * mixer.num_key_value_heads) * mixer.head_dim
        case LatentAttention():
            return mixer.num_attention_heads * 2 * (mixer.kv_lora_rank + mixer.qk_rope_head_dim)
        case CompressedAttention():
            return 2 * mixer.num_attention_heads * mixer.head_dim
        case GatedDeltaNet():
            keys, values = mixer.num_key_heads * mixer.key_head_dim, mixer.num_value_heads * mixer.value_head_dim
            states = values * mixer.key_head_dim // DELTA_CHUNK_TOKENS
            return 6 * keys + 7 * values + mixer.num_value_heads * mixer.key_head_dim + states
        case _:
            return 0


@lru_cache(maxsize=2048)
def _expanded_latent_elements(architecture: Architecture, tensor_parallel_size: int) -> int:
    """Return the elements per token of keys and values expanded from the widest dense latent. [elements]."""
    widest = 0
    for mixer in {mixer for layer in architecture.layers for mixer in layer.mixers}:
        if isinstance(mixer, LatentAttention) and not mixer.is_sparse:
            heads = ceil_div(mixer.num_attention_heads, tensor_parallel_size)
            expanded = heads * (mixer.qk_nope_head_dim + mixer.v_head_dim)
            widest = max(widest, expanded + mixer.kv_lora_rank + mixer.qk_rope_head_dim)
    return widest


def _context_chunk_bytes(architecture: Architecture, layout: Layout, settings: EngineSettings) -> int:
    """Return what dense latent attention reserves to expand a chunk of an earlier context."""
    chunk = max(8 * settings.max_model_len, 4 * settings.max_num_seqs * (settings.block_size or 16))
    elements = _expanded_latent_elements(architecture, layout.tensor_parallel_size)
    return min(chunk, LARGEST_CONTEXT_CHUNK) * elements * ELEMENT_BYTES


@lru_cache(maxsize=2048)
def _smallest_compress_ratio(architecture: Architecture) -> int | None:
    """Return how many tokens share a key where an indexer selects; None without one."""
    ratios = [
        mixer.compress_ratio if isinstance(mixer, CompressedAttention) else 1
        for layer in architecture.layers
        for mixer in layer.mixers
        if isinstance(mixer, LatentAttention | CompressedAttention) and mixer.indexer is not None
    ]
    return min(ratios, default=None)


def _sparse_workspace_bytes(architecture: Architecture, settings: EngineSettings, rules: EngineRules) -> int:
    """Return the buffer that gathers selected keys of sparse attention, as long as the context allows."""
    ratio = _smallest_compress_ratio(architecture)
    if ratio is None:
        return 0
    factor = SPARSE_FACTOR if settings.max_model_len <= LONG_CONTEXT_TOKENS else rules.long_sparse_workspace_factor
    return factor * settings.max_model_len * SPARSE_WORKSPACE_BYTES // ratio + INDEXER_LOGITS_BYTES
