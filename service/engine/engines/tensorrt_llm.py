"""TensorRT-LLM: a share of whatever is free once weights and buffers lie on the GPU.

Sources:
    TensorRT-LLM documentation, "Memory Usage of TensorRT-LLM"; `KvCacheConfig`; `CapacitySchedulerPolicy`
    (`GUARANTEED_NO_EVICT`, the default).
"""

from dataclasses import replace
from typing import Final

from packaging.version import Version

from service.engine.engines.base import Engine, MemoryShare, Spent, Switch
from service.engine.engines.expert_tiles import ExpertTiles
from service.engine.engines.flags.base import CommandLine
from service.engine.engines.flags.tensorrt_llm import TensorRtLlmCommand
from service.engine.engines.plans import NEWEST, PlanRules
from service.engine.inputs import EngineName

# Blocks, layouts and most weights are held to this one's.
PLANNED: Final = "vLLM 0.33"
# Each rank gets `num_experts // moe_ep_size` experts (`tensorrt_llm/mapping.py`, `ep_experts`); with
# `enable_attention_dp` it attends alone (`_torch/modules/attention.py`: "dp_size = tp_size"); tables of words are
# padded to the ranks (`_torch/modules/embedding.py`, `LMHead.padding_size`).
# Of its pool it prints blocks times their tokens. Windows fill like any layer unless `max_attention_window` is stated
# (`_torch/pyexecutor/resource_manager.py`: "Use max_seq_len as default max_attention_window"); since 1.3 Gemma 4 brings
# its own, and since pull request 18767 of September 2026 all do.
OWN: Final = replace(
    NEWEST,
    keeps_any_block=True,
    splits_copies=False,
    deals_experts_evenly=True,
    pads_vocabulary_for_ranks=True,
    drafts_of_one_fit=False,
    drafts_for_adapters_fit=False,
    tunes_states=False,
    stages_deep_stacks=False,
    most_captured_on_blackwell=512,
    captures_drafts=False,
    counts_tokens_by_blocks=True,
    keeps_windows=True,
)
# gpt-oss's experts: `_torch/modules/fused_moe/quantization.py`, `MXFP4WeightCutlassFusedMoEMethod` ("requires weight
# elements to be 128 aligned") and `MXFP4WeightTRTLLMGenFusedMoEMethod` (`input_hidden_alignment = 512`; pull request
# 9025: "FC1 [5888, 3072]"); `fused_moe_triton.py`, `TritonMXFP4FusedMoEMethod` (`n_alignment = 2 * self.k_alignment`).
CUTLASS_TILES: Final = ExpertTiles(inner=128, width=128, out_width=128, widens_biases=False)
TRITON_TILES: Final = ExpertTiles(inner=128, width=128, out_width=256, shares_buffers=False)
TRT_LLM_TILES: Final = ExpertTiles(inner=128, width=512, out_width=128)
# `_torch/model_config.py`, `resolve_moe_backend`; 1.1 ran CUTLASS unless told otherwise (`MoeConfig`).
TILES: Final = ((8, CUTLASS_TILES), (9, TRITON_TILES), (10, TRT_LLM_TILES), (12, CUTLASS_TILES))
TILES_BEFORE: Final = tuple((generation, CUTLASS_TILES) for generation, _ in TILES)
# Blocks of engines that were built: 64 tokens up to 0.16; `KvCacheConfig.tokens_per_block` says 32 since 1.0.
PLANS: Final = (
    (Version("1.3"), replace(OWN, block_size=32, own_tiles=TILES, keeps_windows=False)),
    (Version("1.2"), replace(OWN, block_size=32, own_tiles=TILES)),
    (Version("1.1"), replace(OWN, block_size=32, own_tiles=TILES_BEFORE)),
    (Version("0.17"), replace(OWN, block_size=32)),
    (Version("0"), replace(OWN, block_size=64)),
)


class TensorRtLlm(Engine):
    """TensorRT-LLM allocates execution context, runtime and decoder buffers one beside the other."""

    name: EngineName = "tensorrt-llm"
    title = "TensorRT-LLM"
    newest = "1"
    unstated_release = "1.2"  # 1.3 and 1.4 were candidates in November 2026
    memory_share: MemoryShare = "free"
    has_pool_per_kind = False
    switches: frozenset[Switch] = frozenset()
    reserves_output = True
    # `llmapi/llm_args.py` (`AttentionDpConfig`: `enable_balance`, `batching_wait_iters`): copies wait to read together,
    # as in its published runs.
    copies_step_together = False
    reads_alone = False
    spreads_caches = False
    kernel_library = "trtllm"
    fp8_block_kernels = "fp8_block"
    command_line: CommandLine = TensorRtLlmCommand()

    def cache_bytes(self, spent: Spent, share: float, *, counts_graphs: bool) -> int:  # noqa: ARG002 - always inside
        """Return the share of what is free. [bytes].

        floor(free_gpu_memory_fraction x (total - weights - activation - graphs - non-torch))
        """
        return int(share * spent.left_bytes) if spent.left_bytes > 0 else spent.left_bytes

    def working_bytes(self, sampler: int, forward: int, encoder: int) -> int:
        """Return all of the buffers: each has its own place. [bytes]."""
        return sampler + forward + encoder

    def plan(self, version: Version) -> PlanRules:
        """Return how a version plans: one set of rules is known, but for blocks, windows and gpt-oss's experts."""
        return next(plan for since, plan in PLANS if version >= since)

    def planned_as(self, version: Version) -> str | None:  # noqa: ARG002 - of every version
        """Return the engine whose rules stand in."""
        return PLANNED
