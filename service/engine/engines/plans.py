"""How one version of an engine plans memory, where versions differ: each row says what was otherwise before it.

A version's values are the newest ones, with every change undone that it does not have yet.

Sources:
    vLLM 0.8 to 0.33, the same files over versions: `platforms/interface.py` and `platforms/cuda.py` (blocks, kernels),
    `v1/core/kv_cache_utils.py`, `v1/core/kv_cache_planning.py` (pools), `v1/kv_cache_interface.py` (states),
    `model_executor/models/config.py` (hybrids), `config/vllm.py` (batches in flight),
    `model_executor/layers/fused_moe/` and `model_executor/layers/quantization/` (weights).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from packaging.version import Version


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRules:
    """What a version does its own way; the values are those of the newest."""

    version: str = "0.33"
    # Which kernels run, and the blocks they read.
    kernels_set_blocks: bool = True  # the smallest block that all kernels accept; before, fixed ones by generation
    flashinfer_reads_fp8: bool = True  # off Hopper; before, Triton did
    flashinfer_runs_latents: bool = True  # on compute capability 10; before, CUTLASS did
    workstations_run_sparse: bool = True  # Blackwell of compute capability 12
    refuses_other_floats: bool = True  # a cache of 16 bits in another dtype than the model's
    keeps_own_fp8_plain: bool = True  # sparse latents in the checkpoint's own fp8 on Hopper; before, packed
    glm_sparse_is_fp8: bool = True  # by itself, on compute capability 10
    # How the pool is counted.
    counts_tokens_by_blocks: bool = False  # not by concurrency
    has_batches_in_flight: bool = True  # what is freed lags behind by several batches; before, by one
    retains_for_drafts: bool = True  # windows are kept longer for several drafting modules
    packs_pages: bool = True  # of different sizes side by side in one block (DeepSeek V4)
    # Recurrent states.
    caches_states: bool = True  # prefix caching of models with states, unless stated
    can_align_states: bool = True  # prefix caching with two states a request, on block boundaries
    exports_states: tuple[str, ...] = ("flash_kda", "mamba2", "delta")  # kernels that keep one while prefill goes on
    hybrid_latent_tokens: int = 128  # blocks of latents beside states are whole multiples [tokens]
    # Weights in the kernels' formats.
    refines_expert_scales: bool = True  # of fp8 blocks that a rank's part does not fill
    drops_expert_scales: bool = True  # the loaded MXFP4 scales, once they are shuffled for Hopper's kernels
    expert_scale_multiple: int = 4  # Hopper's kernels pad the groups of a row to it
    pads_expert_values: bool = False  # Hopper's kernels, to whole lines of 64 bytes
    pads_plain_experts: bool = True  # without quantization, on compute capability 10
    keeps_wide_routers: bool = True  # in fp32 where the model asks for it and no kernel mixes types
    leaves_towers_out: bool = True  # `--language-model-only`
    interleaves_rotary: bool = True  # one rotary table for the three axes of images; before, four times as long


NEWEST: Final = PlanRules()
_VLLM: Final[Mapping[Version, Mapping[str, Any]]] = {
    Version("0.33"): {"exports_states": ("flash_kda", "mamba2"), "refuses_other_floats": False},
    Version("0.32"): {"exports_states": ("flash_kda",), "glm_sparse_is_fp8": False, "interleaves_rotary": False},
    Version("0.31"): {"pads_plain_experts": False},
    Version("0.30"): {"keeps_own_fp8_plain": False},
    Version("0.29"): {"refines_expert_scales": False, "exports_states": ()},
    Version("0.28"): {"caches_states": False, "retains_for_drafts": False},
    Version("0.27"): {"packs_pages": False, "hybrid_latent_tokens": 64},
    Version("0.26"): {"has_batches_in_flight": False, "expert_scale_multiple": 2},
    Version("0.25"): {"drops_expert_scales": False},
    Version("0.24"): {"workstations_run_sparse": False},
    Version("0.22"): {"pads_expert_values": True},
    Version("0.20.2"): {"counts_tokens_by_blocks": True},
    Version("0.18"): {"kernels_set_blocks": False},
    Version("0.17"): {"keeps_wide_routers": False, "pads_expert_values": False, "leaves_towers_out": False},
    Version("0.15"): {"can_align_states": False, "flashinfer_runs_latents": False},
    Version("0.11.1"): {"flashinfer_reads_fp8": False},
}


def plan_of(version: Version) -> PlanRules:
    """Return how a version of vLLM plans.

    >>> plan_of(Version("0.27")).caches_states, plan_of(Version("0.28")).caches_states
    (False, True)
    """
    rules = replace(NEWEST, version=str(version))
    for since, before in sorted(_VLLM.items(), reverse=True):
        if version < since:
            rules = replace(rules, **before)
    return rules
