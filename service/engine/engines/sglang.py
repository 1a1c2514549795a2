"""SGLang: a pool for each kind of layer, out of a share that weights and cache have alone.

Sources:
    SGLang `model_executor/model_runner_kv_cache_mixin.py` (`_profile_available_bytes`), `server_args.py`
    (`_handle_gpu_memory_settings`); `managers/scheduler.py` (`get_next_batch_to_run`);
    0.5.23 `mem_cache/kv_cache_configurator.py`, `model_executor/pool_configurator.py`.
"""

from dataclasses import replace
from typing import Final

from packaging.version import Version

from service.engine.engines.base import Engine, MemoryShare, Spent, Switch, nearest_known
from service.engine.engines.expert_tiles import ExpertTiles, square
from service.engine.engines.flags.base import CommandLine
from service.engine.engines.flags.sglang import SglangCommand
from service.engine.engines.plans import NEWEST, PlanRules
from service.engine.inputs import CompressedPools, EngineName, Gpu

# The pools of `memory/separate_pools.py` are this version's.
PLANNED: Final = "0.5.23"
PLAN: Final = replace(
    NEWEST,
    joins_copies=True,
    deals_experts_evenly=True,
    # 0.5.9 to 0.5.23 `models/deepseek_common/deepseek_weight_loader.py`: `w_kc`, `w_vc`, each `.contiguous()`.
    copies_absorbed=True,
    has_own_classes=True,
    loads_drafts_by_step=True,
    pads_vocabulary_for_ranks=True,
    # 0.5.15 `server_args.py` ("requires sm100+ (Blackwell)"; `is_sm120_supported`, `is_hip`), 0.5.23
    # `arg_groups/serving_hook.py`, `arg_groups/model_hook.py`: `models/deepseek_v4.py` ("Execute dequant fp8 wo_a").
    unpacks_grouped=True,
    is_strict_on_compressed=True,
    drafts_in_stages=False,
    drafts_of_one_fit=False,
    drafts_for_adapters_fit=False,
    tunes_states=False,
    stages_deep_stacks=False,
    # 0.5.3 to 0.5.23 `layers/quantization/fp8.py` ("The output_size of gate's and up's weight").
    refines_expert_scales=False,
    pads_plain_experts=False,  # 0.5.23 `layers/quantization/unquant.py`
    drops_expert_scales=False,  # 0.5.12 to 0.5.23 `layers/quantization/mxfp4.py` (`del layer.w13_weight`, and no more)
    most_captured_on_blackwell=512,
    captures_drafts=False,
    own_tiles=((10, square(128, 256)), (12, square(128, 256))),
    expert_tile_on_ten=128,  # 0.5.9 to 0.5.23 `layers/moe/fused_moe_triton/layer.py`, of Nemotron 3
)
# `layers/quantization/marlin_utils_fp4.py` ("release the loader-format parameters"); 0.5.15 has them in fp32
# (`layers/quantization/mxfp4_marlin_moe.py`).
DROPS_WIDE_SCALES_SINCE: Final = Version("0.5.16")
# `managers/scheduler.py`, `model_executor/model_runner_kv_cache_mixin.py` ("draft weights are now counted").
# `layers/quantization/modelopt_quant.py` (`use_marlin_fallback`; `w13_blockscale_swizzled`, which its Marlin branch
# leaves as it is allocated).
RUNS_FP4_BY_MARLIN_SINCE: Final = Version("0.5.13")
COUNTS_DRAFTS_SINCE: Final = Version("0.5.15")
STAGES_EVENLY_SINCE: Final = Version("0.5.6")  # `distributed/utils.py` ("the last N partitions")
# `arg_groups/model_overrides/deepseek_v4.py` ("Use flashinfer_mxfp4 as MoE runner backend for"); before, Triton's fp8
# kernel fails: "AssertionError: Hidden size mismatch" (issues 27497 and 33693).
CHOOSES_FP4_KERNELS_SINCE: Final = Version("0.5.20")
# On CPUs alone before: `layers/vocab_parallel_embedding.py` ("padding_size *= self.tp_size") of 0.5.14 to 0.5.23.
PADS_FOR_RANKS_SINCE: Final = Version("0.5.22")
# Tiles of 256 before: `layers/quantization/mxfp4.py` ("128 alignment (not 256)"). On compute capability 12, Triton's
# kernels before 0.5.14, which pad as on Hopper (`server_args.py`: "enabling triton_kernel MOE kernel").
NARROW_TILES_SINCE: Final = Version("0.5.17")
TILES_ON_TWELVE_SINCE: Final = Version("0.5.14")
# Of gpt-oss on Hopper, by the triton_kernels in the wheels of sglang-kernel (`layout_details/hopper_value.py`): rows of
# values are padded to 64 bytes since 0.4.2.post2 (3.6.0), and their number to 256 since 0.4.9 (3.8).
PADS_VALUES_SINCE: Final = Version("0.5.12")
PADS_VALUE_ROWS_SINCE: Final = Version("0.5.22")
FOUR_GROUPS_SINCE: Final = Version("0.5.19")  # `layers/quantization/mxfp4.py` (`_pad_hopper_mxfp4_scale`)
CAPS_WINDOWS_SINCE: Final = Version("0.5.14")  # `model_executor/pool_configurator.py` (`SWAChunkCapPoolConfigurator`)
# `model_executor/pool_configurator.py` (`c128_state_ratio = 0`; `_get_paged_kv_bytes_per_token`).
COMPRESSED_POOLS_SINCE: Final[tuple[tuple[Version, CompressedPools], ...]] = (
    (Version("0.5.21"), "padded"),
    (Version("0.5.15"), "by_request"),
    (Version("0"), "by_tokens"),
)
SENDS_TO_EXPERTS_SINCE: Final = Version("0.4.10")  # `server_args.py` (`--moe-a2a-backend`)
# TensorRT-LLM's kernels of plain attention: `server_args.py`, `arg_groups/attention_hook.py` ("trtllm_mha").
PAGES_ON_TEN_SINCE: Final = Version("0.5.6")
PAGE_ON_TEN: Final = 64  # [tokens]
COUNTS_STATED_DRAFTS_SINCE: Final = Version("0.5.20")  # `memory/stage_slots.py`
PADS_STATES_SINCE: Final = Version("0.5.17")  # `mem_cache/kv_cache_configurator.py` ("padding slot")
KEEPS_FOR_IMAGES_SINCE: Final = Version("0.5.18")  # what is kept: `memory/images.py`
KEEPS_FEATURES_SINCE: Final = Version("0.5.20")
REUSES_SELECTIONS_SINCE: Final = Version("0.5.18")  # without an indexer: `memory/indexers.py`
# With a prefix cache and no buffers beside its states, `server_args.py` sets `disable_overlap_schedule` (pull request
# 13057 of November 2025: "try to use --disable-radix-cache if overlap schedule is necessary"), until `auto` came to
# mean `extra_buffer`. Hybrids had no prefix cache before 0.5.4.
WAITS_FOR_STATES_SINCE: Final = Version("0.5.6")
BUFFERS_STATES_SINCE: Final = Version("0.5.14")
COMPRESSED_REQUESTS: Final = 256
AITER_PART: Final = 0.85  # of the share, which is kept where AITER runs the attention of a long context
AITER_CONTEXT: Final = 8_192  # beyond which it does [tokens]
AITER_LATENT_HEADS: Final = frozenset({16, 128})


def _own_tiles(version: Version) -> tuple[tuple[int, ExpertTiles], ...]:
    """Return the tiles of gpt-oss's experts in a version, by generation."""
    on_ten = (10, square(128 if version >= NARROW_TILES_SINCE else 256, 256))
    return (on_ten, (12, square(128, 256))) if version >= TILES_ON_TWELVE_SINCE else (on_ten,)


class Sglang(Engine):
    """SGLang never measures activations: what its share leaves out serves them and the graphs."""

    name: EngineName = "sglang"
    title = "SGLang"
    newest = "0.5"
    memory_share: MemoryShare = "static"
    has_pool_per_kind = True
    switches: frozenset[Switch] = frozenset({
        "quantization", "enable_prefix_caching", "swa_full_tokens_ratio", "mamba_ssm_cache_dtype",
        "all2all_backend", "enable_two_batch_overlap",
    })  # fmt: skip
    reserves_output = False
    expects_output = True
    reads_alone = True  # `get_next_batch_to_run` prefers prompts; --enable-mixed-chunk is off
    spreads_caches = False
    # Its kernels there read 576 bytes a token without scales, and on ROCm too, since 0.5.10. Source: SGLang 0.5.23
    # `arg_groups/overrides.py` ("Setting KV cache dtype to"), `mem_cache/kv_cache_configurator.py`
    # (`calculate_mla_kv_cache_dim`); 0.5.10 `server_args.py` (`_set_default_nsa_backends`).
    selects_in_fp8_from = 10
    # Below, its kernels for gpt-oss's experts take no expert parallelism, and it loads them unpacked to bf16, 3.8 times
    # as large: SGLang 0.5.14 `server_args.py`, 0.5.23 `arg_groups/model_overrides/gpt_oss.py` ("cfg.ep_size == 1"),
    # `layers/quantization/mxfp4.py` ("upcast_from_mxfp").
    deals_mxfp4_from = 10
    kernel_library = "sglang"
    unpacks_by_marlin = True
    fp8_block_kernels = "fp8_block"
    # Its experts in mxfp4 were measured in Triton with weights upcast to bf16: 0.67 ms a layer of gpt-oss-120b with 128
    # requests on two H200, where the triton_kernels that it picks itself take vLLM 0.33 ms.
    # Sources: aiconfigurator-core 0.12, systems/data/h200_sxm/moe/sglang/0.5.14/moe_perf.parquet
    # (sglang_fused_moe_triton), vllm/0.24.0 (vllm_gptossmxfp4moe_triton_oai); SGLang 0.5.10 `server_args.py`
    # ("Detected GPT-OSS model, enabling triton_kernels MOE kernel."), `layers/quantization/mxfp4.py`.
    upcast_experts: Final = frozenset({"hopper"})
    command_line: CommandLine = SglangCommand()

    def all2all_backend(self, release: str) -> str | None:  # noqa: ARG002 - the same of all
        """Return that none is chosen: `--moe-a2a-backend` of `server_args.py`, since 0.4.10."""
        return "none"

    def kernels_like(self, scheme: str, gpu_architecture: str) -> EngineName:
        """Return vLLM for experts in mxfp4, where it runs the same kernels, and others were measured."""
        return "vllm" if scheme == "mxfp4" and gpu_architecture in self.upcast_experts else self.name

    def cache_bytes(self, spent: Spent, share: float, *, counts_graphs: bool) -> int:  # noqa: ARG002 - never inside
        """Return what the share leaves for the cache. [bytes].

            floor(mem_fraction_static x (total - non-torch)) - weights

        The share is of what is free before weights are loaded. The pool is split between full and sliding-window
        layers, or between cache and state, afterwards.

        mattbucci/2x-3090-GA102-300-A1-sglang-inference on GitHub, Gemma 4 26B on two RTX 3090, 22.91 GB free under
        0.85: "mem usage=9.34 GB ... SWAKVPool mem usage: 10.11 GB", both GiB:

        >>> spent = Spent(
        ...     total_bytes=int(22.91 * 2**30), weight_bytes=int(9.34 * 2**30), activation_bytes=0, graph_bytes=0,
        ...     non_torch_bytes=0)
        >>> round(Sglang().cache_bytes(spent, 0.85, counts_graphs=False) / 2**30, 1)
        10.1
        """
        left = int(share * (spent.total_bytes - spent.non_torch_bytes)) - spent.weight_bytes
        return min(left, spent.left_bytes)

    @property
    def starts_beside_small_pools(self) -> bool:
        """Return true: a request has as many tokens as context or pool, whichever is less.

        Source:
            SGLang 0.5.22 `srt/managers/tp_worker.py` (`max_req_len`).
        """
        return True

    def part_of_share(self, gpu: Gpu, context_tokens: int, heads: int | None) -> float:
        """Return 0.85 on AMD's GPUs for contexts of more than 8,192 tokens, whose buffers lie beside the pool.

        AITER runs attention by heads there, and latent attention with 16 or 128 heads a rank.

        Qwen3.8-27B-FP8 on one MI355X with 0.85, in 0.5.17: of 287.27 GiB free "mem usage=28.49 GB" leaves 215.7, and
        1,543,256 tokens of 64 KiB with 0.9 times as much of states take 179.0:

        >>> share = 0.85 * AITER_PART
        >>> round(287.27 * share - 28.49, 1), round(1.9 * 1_543_256 * 64 / 2**20, 1)
        (179.1, 179.0)

        Source: SGLang 0.4.9 to 0.5.23 `model_executor/model_runner.py`, `server_args.py`,
        `arg_groups/attention_hook.py` ("mem_fraction_static * 0.85"), `arg_groups/model_override_base.py` ("TODO
        current aiter only support head number 16 or 128 head number").
        """
        runs = gpu.vendor == "amd" and (heads is None or heads in AITER_LATENT_HEADS)
        return AITER_PART if runs and context_tokens > AITER_CONTEXT else 1.0

    def own_requests(self, requests: int, *, compresses_past: bool) -> int:
        """Return 256 at most for a compressed past, whose states each of them has a room for. [count].

        Source: SGLang 0.5.12 to 0.5.23 `arg_groups/deepseek_v4_hook.py` (`max_running_requests`).
        """
        return min(requests, COMPRESSED_REQUESTS) if compresses_past else requests

    def working_bytes(self, sampler: int, forward: int, encoder: int) -> int:
        """Return the largest of the buffers: each is freed before the next is filled. [bytes]."""
        return max(sampler, forward, encoder)

    def plan(self, version: Version) -> PlanRules:
        """Return how a version plans: one set of rules is known, but for the vocabulary's and gpt-oss's experts.

        Source: SGLang 0.5.14 and 0.5.23 `models/deepseek_v2.py`: `lm_head` without `enable_dp_lm_head`, dense parts
        without `moe_dense_tp_size`, and shared experts without DeepEP, are split over all ranks; `embed_tokens` is not.
        """
        return replace(
            PLAN,
            pads_vocabulary_for_ranks=version >= PADS_FOR_RANKS_SINCE,
            names_fp4_kernels=version < CHOOSES_FP4_KERNELS_SINCE,
            copies_fp4_scales=version >= RUNS_FP4_BY_MARLIN_SINCE,
            keeps_wide_scales=version < DROPS_WIDE_SCALES_SINCE,
            stage_rule="last" if version >= STAGES_EVENLY_SINCE else "rest_last",
            shares_draft_ends=version < COUNTS_DRAFTS_SINCE,
            pads_expert_values=version >= PADS_VALUES_SINCE,
            expert_value_rows=256 if version >= PADS_VALUE_ROWS_SINCE else 1,
            expert_scale_multiple=4 if version >= FOUR_GROUPS_SINCE else 2,
            caps_windows=version >= CAPS_WINDOWS_SINCE,
            sends_to_experts=version >= SENDS_TO_EXPERTS_SINCE,
            compressed_pools=next(pools for since, pools in COMPRESSED_POOLS_SINCE if version >= since),
            page_on_ten=PAGE_ON_TEN if version >= PAGES_ON_TEN_SINCE else 1,
            counts_stated_drafts=version >= COUNTS_STATED_DRAFTS_SINCE,
            pads_states=version >= PADS_STATES_SINCE,
            keeps_for_images=version >= KEEPS_FOR_IMAGES_SINCE,
            keeps_features_on_hopper=version >= KEEPS_FEATURES_SINCE,
            indexes_every_layer=version < REUSES_SELECTIONS_SINCE,
            own_tiles=_own_tiles(version),
            waits_for_states=WAITS_FOR_STATES_SINCE <= version < BUFFERS_STATES_SINCE,
        )

    def planned_as(self, version: Version) -> str | None:
        """Return the version whose pools stand in for another's."""
        known = nearest_known(version, PLANNED, PLANNED)
        return None if known is None else f"{self.title} {known}"
