"""What the engine's profiling run needs beside the weights: forward pass, sampler, vision encoder.

Each term follows the tensors that are alive at once in vLLM's profiling run; the constants that
depend on the version are in `service/catalog/data/engine_rules.yaml`, each with its evidence.
"""

from dataclasses import dataclass
from typing import Final

from packaging.version import Version

from service.engine.arithmetic import KIB, MIB, ceil_div
from service.engine.derived import derived
from service.engine.engines.device import REFERENCE, Device
from service.engine.engines.expert_kernels import expert_kernels
from service.engine.engines.rules import EngineRules
from service.engine.formats.elements import HALF_BYTES
from service.engine.inputs import EngineSettings, Layout
from service.engine.layers import DEFAULT_BLOCK_SIZE, Architecture, Encoder

# Tokens whose keys and values latent attention expands at once when a long prompt comes in chunks.
LARGEST_CONTEXT_CHUNK: Final = 64 * KIB
# The sparse indexer's workspace, per token of `max_model_len` and unit of the workspace factor.
SPARSE_WORKSPACE_BYTES: Final = 576 * 2
SPARSE_FACTOR: Final = 5
# Contexts beyond this use the version's smaller factor.
LONG_CONTEXT_TOKENS: Final = 256 * KIB
INDEXER_LOGITS_BYTES: Final = 512 * MIB


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Working:
    """The buffers of a profiling run, by the batch it reads; what does not depend on that was looked up once.

    A batch is of so many `tokens`, of at most so many `seqs`: `max_num_batched_tokens` and `max_num_seqs`.
    """

    rules: EngineRules
    vocab_size: int
    hidden_bytes: int  # of one token, in one stream
    streams: int
    widest_elements: int  # of one token, in the widest layer of one rank
    workspace_elements: int  # of one token, in the buffers of experts
    expanded_elements: int  # of one token, of keys and values expanded from latents
    chunk_tokens: int  # of an earlier context that are expanded at once, at least
    block_size: int
    sparse_bytes: int
    tokens_per_item: int  # of the encoder's largest; 0 without one
    unbounded_tokens: int  # that outputs are kept for, whatever the budget
    encoder_outputs: int
    deep_stacks: int  # of the encoder, that have buffers of their own
    encoder_elements: int  # of one token, in the widest layer of one rank
    selected_bytes: int  # of one token, in all layers' buffers of selected tokens

    def peak_bytes(self, tokens: int, seqs: int) -> int:
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
        >>> working = working_of(gemma, Layout(), settings, rules_for("vllm", "0.19"))
        >>> round(working.peak_bytes(8_192, 1_024) / 2**30, 2)
        3.65

        Sources:
            vLLM 0.33 `v1/worker/gpu/model_runner.py` (`profile_run`, `_dummy_sampler_run`),
            `v1/sample/ops/topk_topp_sampler.py`, `v1/worker/gpu/sample/penalties.py`,
            `model_executor/layers/attention/mla_attention.py`, `.../sparse_attn_indexer.py`,
            `.../fused_moe/experts/triton_moe.py` (`workspace_shapes`), `multimodal/encoder_budget.py`;
            TensorRT-LLM documentation, "Memory Usage of TensorRT-LLM".
        """
        rules, forward = self.rules, self.forward_bytes(tokens, seqs)
        if not rules.keeps_workspaces:
            forward += self.workspace_bytes(tokens)
        sampler = int(rules.sampler_bytes_per_logit * self.sampled_logits(tokens, seqs))
        encoder = self.encoder_tokens(tokens) * self.encoder_elements * HALF_BYTES
        stays = self.lasting_bytes(tokens, seqs) + self.kept_bytes(tokens)
        return stays + rules.serving_engine.working_bytes(sampler, forward, encoder)

    def sampled_logits(self, tokens: int, seqs: int) -> int:
        """Return the logits that the profiling run samples from: one row of the vocabulary per sequence."""
        return min(seqs, tokens) * self.vocab_size

    def lasting_bytes(self, tokens: int, seqs: int) -> int:
        """Return what stays allocated after the profiling run: the sampler's tables, and workspaces where kept.

        Newer versions print it as consumed, beside the weights, and no longer as peak activation. [bytes].
        """
        tables = int(self.rules.sampler_state_bytes_per_logit * seqs * self.vocab_size)
        return tables + (self.workspace_bytes(tokens) if self.rules.keeps_workspaces else 0)

    def kept_bytes(self, tokens: int) -> int:
        """Return what stays alive beside every peak: hidden states of the batch and encoder outputs. [bytes]."""
        batch = tokens * self.streams * self.hidden_bytes
        own = self.rules.activation_base_bytes + int(self.rules.hidden_state_copies * batch)
        return own + max(self.encoder_tokens(tokens), self.unbounded_tokens) * self.encoder_outputs * self.hidden_bytes

    def loaded_bytes(self, tokens: int) -> int:
        """Return the buffers that loading makes beside the weights. [bytes].

            bytes = max_num_batched_tokens x (deep stacks x hidden size x 2 + selected tokens of all layers x 4)

        By the first images reach the first layers; the second are of layers that select single tokens.

        Source:
            vLLM 0.33 `model_executor/models/qwen3_vl.py` (`deepstack_input_embeds`), as 0.11 and those after it;
            `models/qwen4_exp/nvidia/qsa.py` (`topk_indices_buffer`).
        """
        return tokens * (self.deep_stacks * self.hidden_bytes + self.selected_bytes)

    def workspace_bytes(self, tokens: int) -> int:
        """Return the largest buffer that layers share: of experts or of sparse attention. [bytes]."""
        return max(tokens * HALF_BYTES * self.workspace_elements, self.sparse_bytes)

    def forward_bytes(self, tokens: int, seqs: int) -> int:
        """Return the peak inside the widest layer, or of expanding a chunk of an earlier context. [bytes]."""
        chunk = min(max(self.chunk_tokens, 4 * seqs * self.block_size), LARGEST_CONTEXT_CHUNK)
        return max(tokens * HALF_BYTES * self.widest_elements, chunk * self.expanded_elements * HALF_BYTES)

    def encoder_tokens(self, tokens: int) -> int:
        """Return the prompt tokens that the encoder is profiled with; 0 for a text model. [tokens].

        As many of the largest images as the token budget holds, at least one.

        Source:
            vLLM 0.33 `multimodal/encoder_budget.py` (`MultiModalBudget`).
        """
        longest = self.tokens_per_item
        budget = max(tokens, longest)
        return budget - budget % longest if longest else 0


def working_of(
    architecture: Architecture, layout: Layout, settings: EngineSettings, rules: EngineRules, device: Device = REFERENCE
) -> Working:
    """Return what the profiling run takes under any batch.

    Args:
        architecture: the model.
        layout: how one replica is spread.
        settings: the context served, blocks, and whether towers are loaded; not the batch.
        rules: the version's working copies of logits and hidden states.
        device: the GPU's generation and the engine's version, by which kernels are picked.
    """
    ranks, tower = layout.tensor_parallel_size, None if settings.is_text_only else architecture.encoder
    shares_buffers = expert_kernels(device).shares_buffers
    widest = widest_layer_elements(architecture, layout)
    expanded, ratio = _latents(architecture, ranks)
    return Working(
        rules=rules,
        vocab_size=architecture.vocab_size,
        hidden_bytes=architecture.hidden_size * HALF_BYTES,
        streams=architecture.residual_streams,
        widest_elements=widest,
        workspace_elements=expert_workspace_elements(architecture, layout, shares_buffers=shares_buffers),
        expanded_elements=expanded,
        chunk_tokens=8 * settings.max_model_len,
        block_size=settings.block_size or DEFAULT_BLOCK_SIZE,
        sparse_bytes=_sparse_workspace_bytes(ratio, settings.max_model_len, rules),
        tokens_per_item=0 if tower is None else _tokens_per_item(tower, settings.max_model_len, device),
        unbounded_tokens=0 if tower is None or rules.bounds_encoder_cache else tower.unbounded_tokens,
        encoder_outputs=0 if tower is None else tower.outputs,
        deep_stacks=tower.outputs - 1 if tower is not None and device.plan.stages_deep_stacks else 0,
        encoder_elements=0 if tower is None else tower.live_elements(ranks),
        selected_bytes=_selected_bytes(architecture),
    )


def _tokens_per_item(tower: Encoder, max_model_len: int, device: Device) -> int:
    """Return the tokens of the largest image or video: of a video as many pictures as the context holds.

    Source:
        vLLM 0.33 `model_executor/models/qwen2_vl.py` (`get_num_frames_with_most_features`). vLLM 0.23 said of
        Qwen2.5-VL 7B with 128,000 tokens "Encoder cache will be initialized with a budget of 114688 tokens, and
        profiled with 1 video items".
    """
    return _of_pictures(tower, max_model_len) if device.is_vllm else tower.max_tokens_per_item


def _of_pictures(tower: Encoder, max_model_len: int) -> int:
    """Return the tokens of as many pictures as a context holds, at least one."""
    longest = tower.max_tokens_per_item
    return longest * min(tower.most_pictures, max(max_model_len // max(longest, 1), 1))


def fewest_batched_tokens(architecture: Architecture, device: Device) -> int:
    """Return the smallest token budget that the engine starts with: that of an image whose tokens see each other.

    Images of other models are read in pieces, like text.

    Source:
        vLLM 0.33 `v1/core/encoder_cache_manager.py` (`compute_mm_encoder_budget`: "Chunked MM input disabled but
        max_tokens_per_mm_item ... is larger than max_num_batched_tokens"), `platforms/cuda.py` (`is_mm_prefix_lm`),
        `engine/arg_utils.py` (`_get_min_mm_batched_tokens`: "Raise the floor").
    """
    is_whole = architecture.sees_images_both_ways and device.is_vllm_on_cuda and device.plan.reads_images_whole
    since = architecture.both_ways_since
    if architecture.encoder is None or not is_whole or (since and Version(device.plan.version) < Version(since)):
        return 1
    return max(architecture.encoder.max_tokens_per_item, 1)


@derived(512)
def expert_workspace_elements(architecture: Architecture, layout: Layout, *, shares_buffers: bool = True) -> int:
    """Return the elements per token of the widest expert layer's two buffers. [elements].

    Args:
        architecture: the model.
        layout: how one replica is spread.
        shares_buffers: whether a model's own kernel uses the buffers of other experts; else it makes its own.
    """
    parts = [part for part in architecture.feed_forwards if shares_buffers or not part.has_own_kernel]
    return max((part.workspace_elements(architecture.hidden_size, layout) for part in parts), default=0)


@derived(512)
def widest_layer_elements(architecture: Architecture, layout: Layout) -> int:
    """Return the elements per token that the widest layer needs at once on one rank. [elements].

    Each part says what it holds; the residual lies beside it, on its way in and out. Expert buffers
    are apart, in `expert_workspace_elements`.
    """
    ranks = layout.tensor_parallel_size
    widths = [mixer.live(ranks).per_token for mixer in architecture.mixers]
    widths += [part.live_elements for part in architecture.feed_forwards]
    return ceil_div(max(widths, default=0), ranks) + 2 * architecture.hidden_size * architecture.residual_streams


def length_in_memory(architecture: Architecture, max_model_len: int) -> int:
    """Return a context served that has the same ledger: it counts where latents are expanded, or keys selected.

    Of a model that sees videos it counts by whole pictures. One of any length has that of a single token elsewhere.
    [tokens].
    """
    if max_model_len == 1:
        return 1
    expanded, ratio = _latents(architecture, 1)
    if expanded or ratio is not None:
        return max_model_len
    tower = architecture.encoder
    return 1 if tower is None or tower.most_pictures == 1 else _of_pictures(tower, max_model_len)


@derived(1)
def _selected_bytes(architecture: Architecture) -> int:
    """Return the buffers of selected tokens that loading makes, for each token of a batch. [bytes]."""
    mixers = (mixer for layer in architecture.layers for mixer in layer.mixers)
    return sum(mixer.live(1).buffer_bytes_per_token for mixer in mixers)


@derived(16)
def _latents(architecture: Architecture, tensor_parallel_size: int) -> tuple[int, int | None]:
    """Return the elements per token of keys and values expanded from the widest dense latent. [elements].

    And how many tokens share a key where an indexer selects; None without one.
    """
    live = [mixer.live(tensor_parallel_size) for mixer in architecture.mixers]
    ratios = [each.selected_ratio for each in live if each.selected_ratio is not None]
    return max((each.expanded_per_token for each in live), default=0), min(ratios, default=None)


def _sparse_workspace_bytes(ratio: int | None, max_model_len: int, rules: EngineRules) -> int:
    """Return the buffer that gathers selected keys of sparse attention, as long as the context allows."""
    if ratio is None:
        return 0
    factor = SPARSE_FACTOR if max_model_len <= LONG_CONTEXT_TOKENS else rules.long_sparse_workspace_factor
    return factor * max_model_len * SPARSE_WORKSPACE_BYTES // ratio + INDEXER_LOGITS_BYTES
