"""What the engine's profiling run needs beside the weights: forward pass, sampler, vision encoder.

Each term follows the tensors that are alive at once in vLLM's profiling run; the constants that
depend on the version are in `service/catalog/data/engine_rules.yaml`, each with its evidence.
"""

from dataclasses import replace
from typing import Final

from service.engine.arithmetic import KIB, MIB, ceil_div
from service.engine.derived import derived
from service.engine.engines.device import REFERENCE, Device
from service.engine.engines.expert_kernels import expert_kernels
from service.engine.engines.rules import EngineRules
from service.engine.formats.elements import HALF_BYTES
from service.engine.inputs import EngineSettings, Layout
from service.engine.layers import DEFAULT_BLOCK_SIZE, Architecture

# Tokens whose keys and values latent attention expands at once when a long prompt comes in chunks.
LARGEST_CONTEXT_CHUNK: Final = 64 * KIB
# The sparse indexer's workspace, per token of `max_model_len` and unit of the workspace factor.
SPARSE_WORKSPACE_BYTES: Final = 576 * 2
SPARSE_FACTOR: Final = 5
# Contexts beyond this use the version's smaller factor.
LONG_CONTEXT_TOKENS: Final = 256 * KIB
INDEXER_LOGITS_BYTES: Final = 512 * MIB


def activation_bytes(
    architecture: Architecture, layout: Layout, settings: EngineSettings, rules: EngineRules, device: Device = REFERENCE
) -> int:
    """Return the peak of the profiling run beside weights. [bytes].

        peak      = lasting + kept + max(sampler, forward, encoder)             vLLM >= 0.17
                  = kept + max(sampler, forward + workspace, encoder)           before
                  = lasting + kept + sampler + forward + encoder                TensorRT-LLM
        lasting   = sampler's tables + workspace
        kept      = base + copies x batch x hidden x streams x 2 + encoder outputs
        sampler   = bytes_per_logit x min(max_num_seqs, batch) x vocabulary
        forward   = batch x 2 x (widest layer on one rank)
        encoder   = encoder tokens x 2 x (widest encoder layer on one rank, per token)

    The sampler works on the whole vocabulary on every rank, so it does not shrink with tensor
    parallelism, and it dominates for small models and many sequences. The context length does not
    enter, except in the buffers of latent and sparse attention. TensorRT-LLM allocates execution
    context, runtime and decoder buffers one beside the other before it looks at what is free.

    vLLM 0.19 said of Gemma 2 9B on an H100 "torch peak memory increase: 3.65GiB" (jgchn/llm-d-planner on GitHub,
    accuracy/results/v0.19.0/logs/google-gemma-2-9b-it--h100-80gb--tp1pp1dp1--8192.log):

    >>> from service.catalog.engine_rules import rules_for
    >>> from service.catalog.keeper import seeded_snapshot
    >>> catalog = seeded_snapshot()
    >>> gemma = catalog.model("gemma-2-9b").architecture
    >>> settings = EngineSettings(
    ...     gpu_memory_utilization=0.95, kv_cache_dtype="bf16", max_model_len=8_192, max_num_batched_tokens=8_192,
    ...     max_num_seqs=1_024)
    >>> round(activation_bytes(gemma, Layout(), settings, rules_for("vllm", "0.19")) / 2**30, 2)
    3.65

    Args:
        architecture: the model.
        layout: how one replica is spread.
        settings: batch limits and context.
        rules: the version's working copies of logits and hidden states.
        device: the GPU's generation and the engine's version, by which kernels are picked.

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
        forward += workspace_bytes(architecture, layout, settings, rules, device)
    lasting = lasting_bytes(architecture, layout, settings, rules, device)
    return lasting + kept + rules.serving_engine.working_bytes(sampler, forward, encoder)


def encoder_tokens(architecture: Architecture, settings: EngineSettings) -> int:
    """Return the prompt tokens that the encoder is profiled with; 0 for a text model. [tokens].

    As many of the largest images as the token budget holds, at least one.

    Source:
        vLLM 0.33 `multimodal/encoder_budget.py` (`MultiModalBudget`).
    """
    if architecture.encoder is None or settings.is_text_only or architecture.encoder.max_tokens_per_item == 0:
        return 0
    longest = architecture.encoder.max_tokens_per_item
    budget = max(settings.max_num_batched_tokens, longest)
    return budget - budget % longest


def fewest_batched_tokens(architecture: Architecture, device: Device) -> int:
    """Return the smallest token budget that the engine starts with: that of an image whose tokens see each other.

    Images of other models are read in pieces, like text.

    Source:
        vLLM 0.33 `v1/core/encoder_cache_manager.py` (`compute_mm_encoder_budget`: "Chunked MM input disabled but
        max_tokens_per_mm_item ... is larger than max_num_batched_tokens"), `platforms/cuda.py` (`is_mm_prefix_lm`).
    """
    is_whole = architecture.sees_images_both_ways and device.is_vllm_on_cuda and device.plan.reads_images_whole
    if architecture.encoder is None or not is_whole:
        return 1
    return max(architecture.encoder.max_tokens_per_item, 1)


@derived(256)
def expert_workspace_elements(architecture: Architecture, layout: Layout, *, shares_buffers: bool = True) -> int:
    """Return the elements per token of the widest expert layer's two buffers. [elements].

    Args:
        architecture: the model.
        layout: how one replica is spread.
        shares_buffers: whether a model's own kernel uses the buffers of other experts; else it makes its own.
    """
    parts = [part for part in architecture.feed_forwards if shares_buffers or not part.has_own_kernel]
    return max((part.workspace_elements(architecture.hidden_size, layout) for part in parts), default=0)


@derived(256)
def widest_layer_elements(architecture: Architecture, layout: Layout) -> int:
    """Return the elements per token that the widest layer needs at once on one rank. [elements].

    Each part says what it holds; the residual lies beside it, on its way in and out. Expert buffers
    are apart, in `expert_workspace_elements`.
    """
    ranks = layout.tensor_parallel_size
    widths = [mixer.live(ranks).per_token for mixer in architecture.mixers]
    widths += [part.live_elements for part in architecture.feed_forwards]
    return ceil_div(max(widths, default=0), ranks) + 2 * architecture.hidden_size * architecture.residual_streams


def sampled_logits(architecture: Architecture, settings: EngineSettings) -> int:
    """Return the logits that the profiling run samples from: one row of the vocabulary per sequence."""
    return min(settings.max_num_seqs, settings.max_num_batched_tokens) * architecture.vocab_size


def lasting_bytes(
    architecture: Architecture, layout: Layout, settings: EngineSettings, rules: EngineRules, device: Device = REFERENCE
) -> int:
    """Return what stays allocated after the profiling run: the sampler's tables, and workspaces where kept. [bytes].

    Newer versions print it as consumed, beside the weights, and no longer as peak activation.
    """
    tables = int(rules.sampler_state_bytes_per_logit * settings.max_num_seqs * architecture.vocab_size)
    return tables + (workspace_bytes(architecture, layout, settings, rules, device) if rules.keeps_workspaces else 0)


def kept_bytes(architecture: Architecture, settings: EngineSettings, rules: EngineRules) -> int:
    """Return what stays alive beside every peak: hidden states of the batch and encoder outputs. [bytes]."""
    row_bytes = architecture.hidden_size * HALF_BYTES
    batch = settings.max_num_batched_tokens * architecture.residual_streams * row_bytes
    own = rules.activation_base_bytes + int(rules.hidden_state_copies * batch)
    if architecture.encoder is None or settings.is_text_only:
        return own
    unbounded = 0 if rules.bounds_encoder_cache else architecture.encoder.unbounded_tokens
    tokens = max(encoder_tokens(architecture, settings), unbounded)
    return own + tokens * architecture.encoder.outputs * row_bytes


def workspace_bytes(
    architecture: Architecture, layout: Layout, settings: EngineSettings, rules: EngineRules, device: Device = REFERENCE
) -> int:
    """Return the largest buffer that layers share: of experts or of sparse attention. [bytes]."""
    shares_buffers = expert_kernels(device).shares_buffers
    elements = expert_workspace_elements(architecture, layout, shares_buffers=shares_buffers)
    experts = settings.max_num_batched_tokens * HALF_BYTES * elements
    return max(experts, _sparse_workspace_bytes(architecture, settings, rules))


def forward_bytes(architecture: Architecture, layout: Layout, settings: EngineSettings) -> int:
    """Return the peak inside the widest layer, or of expanding an earlier context. [bytes]."""
    layer = settings.max_num_batched_tokens * HALF_BYTES * widest_layer_elements(architecture, layout)
    return max(layer, _context_chunk_bytes(architecture, layout, settings))


def _encoder_bytes(architecture: Architecture, layout: Layout, settings: EngineSettings) -> int:
    """Return the peak inside the tower's widest layer on one rank. [bytes]."""
    tower = architecture.encoder
    if tower is None:
        return 0
    return encoder_tokens(architecture, settings) * tower.live_elements(layout.tensor_parallel_size) * HALF_BYTES


@derived(16)
def _expanded_latent_elements(architecture: Architecture, tensor_parallel_size: int) -> int:
    """Return the elements per token of keys and values expanded from the widest dense latent. [elements]."""
    return max((mixer.live(tensor_parallel_size).expanded_per_token for mixer in architecture.mixers), default=0)


@derived(64)
def alike_in_memory(architecture: Architecture, settings: EngineSettings) -> EngineSettings:
    """Return settings with the same ledger: the context served counts where latents are expanded, or keys selected."""
    if settings.max_model_len == 1:
        return settings
    is_served_held = _expanded_latent_elements(architecture, 1) or _smallest_compress_ratio(architecture) is not None
    return settings if is_served_held else replace(settings, max_model_len=1)


def _context_chunk_bytes(architecture: Architecture, layout: Layout, settings: EngineSettings) -> int:
    """Return what dense latent attention reserves to expand a chunk of an earlier context."""
    chunk = max(8 * settings.max_model_len, 4 * settings.max_num_seqs * (settings.block_size or DEFAULT_BLOCK_SIZE))
    elements = _expanded_latent_elements(architecture, layout.tensor_parallel_size)
    return min(chunk, LARGEST_CONTEXT_CHUNK) * elements * HALF_BYTES


@derived(1)
def _smallest_compress_ratio(architecture: Architecture) -> int | None:
    """Return how many tokens share a key where an indexer selects; None without one."""
    ratios = [mixer.live(1).selected_ratio for mixer in architecture.mixers]
    return min((ratio for ratio in ratios if ratio is not None), default=None)


def _sparse_workspace_bytes(architecture: Architecture, settings: EngineSettings, rules: EngineRules) -> int:
    """Return the buffer that gathers selected keys of sparse attention, as long as the context allows."""
    ratio = _smallest_compress_ratio(architecture)
    if ratio is None:
        return 0
    factor = SPARSE_FACTOR if settings.max_model_len <= LONG_CONTEXT_TOKENS else rules.long_sparse_workspace_factor
    return factor * settings.max_model_len * SPARSE_WORKSPACE_BYTES // ratio + INDEXER_LOGITS_BYTES
