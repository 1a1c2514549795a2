"""What of a plan the engine's command line names."""

import json
from dataclasses import replace
from typing import Final

from service.engine.derived import derived
from service.engine.engines.device import FP4_TILE
from service.engine.engines.flags.base import Args, Start, StartFlags
from service.engine.engines.methods import avoids_deep_gemm, is_deprecated
from service.engine.facts import ModelFacts
from service.engine.families.own_files import is_in_own_format
from service.engine.fleet.checkpoints import own_checkpoint
from service.engine.fleet.questions import StatedSettings
from service.engine.inputs import HALF_FORMATS, Gpu
from service.engine.memory.kernels import asked_of, kernels_of
from service.engine.memory.matrices import expert_columns
from service.engine.memory.plan import MemoryPlan

UNNAMED_MODEL: Final = "PATH_OF_THE_MODEL"
HALF_FROM_CAPABILITY: Final = 8.0


def start_of(plan: MemoryPlan, stated: StatedSettings) -> Start:
    """Return one replica as its engine's command line takes it."""
    model, own = plan.model, own_checkpoint(plan.model)
    is_published = plan.checkpoint in model.checkpoints
    served = (plan.checkpoint if is_published else own).hf_id or UNNAMED_MODEL
    modules = model.architecture.mtp
    has_fp4_in_fp8 = plan.checkpoint.weight_format == "mxfp4" and plan.checkpoint.quantization.method == "fp8"
    return Start(
        layout=plan.layout,
        settings=plan.settings,
        served=served,
        weight_format=plan.checkpoint.weight_format,
        own_format=own.weight_format,
        is_published=is_published,
        has_fp8_cache=plan.checkpoint.kv_cache_dtype == "fp8",
        reads_own_fp8_plain=_reads_own_fp8_plain(plan),
        names_half_caches=plan.rules.plan.names_half_caches,
        has_experts=model.architecture.has_experts,
        needs_half=needs_half(plan.gpu),
        has_own_code=_has_own_code(model),
        is_deprecated=is_deprecated(plan.checkpoint.quantization, plan.rules.plan.version),
        names_own_format=not plan.rules.plan.finds_own_formats and is_in_own_format(served),
        cuts_prompts=plan.rules.plan.cuts_prompts,
        avoids_deep_gemm=avoids_deep_gemm(plan.device, plan.checkpoint.quantization),
        drafter=modules.method if modules is not None and plan.settings.speculative_method == "mtp" else "",
        expert_kernels=_fp4_kernels(plan) if has_fp4_in_fp8 else "",
        gpus_per_node=plan.gpu.gpus_per_node,
        stated=StartFlags(
            kv_cache_dtype=stated.kv_cache_dtype,
            block_size=stated.block_size,
            enforce_eager=stated.enforce_eager,
            enable_prefix_caching=stated.enable_prefix_caching,
            language_model_only=stated.language_model_only,
            swa_full_tokens_ratio=stated.swa_full_tokens_ratio,
            mamba_cache_dtype=stated.mamba_cache_dtype,
            mamba_ssm_cache_dtype=stated.mamba_ssm_cache_dtype,
            async_scheduling=plan.rules.async_scheduling,
        ),
    )


def _reads_own_fp8_plain(plan: MemoryPlan) -> bool:
    """Return whether other kernels read the checkpoint's own fp8 than what the flag calls so: of Hopper, sparse."""
    own = asked_of(plan.model.architecture, plan.settings, ranks=1)
    if own.kind != "checkpoint_fp8" or not plan.device.is_vllm:
        return False
    asked = (own, replace(own, kind="fp8"))
    kernels = {kernels_of(plan.model.architecture, each, plan.device) for each in asked}
    return len(kernels) > 1


def _fp4_kernels(plan: MemoryPlan) -> str:
    """Return the kernels of experts that the engine has to be told of; empty where it chooses."""
    if (kernels := plan.device.fp4_kernels) is None:
        return ""
    are_whole = not any(columns % FP4_TILE for columns in expert_columns(plan.model.architecture, plan.layout))
    return kernels[0] if are_whole else kernels[1]


@derived(1)
def _has_own_code(model: ModelFacts) -> bool:
    """Return whether the model's repository carries code that the engine must be allowed to run."""
    return model.architecture.brings_code or "auto_map" in json.loads(model.config_json or "{}")


def engine_args(plan: MemoryPlan, stated: StatedSettings) -> Args:
    """Return the flags, by the engine's own names, that reproduce the plan."""
    return plan.rules.serving_engine.command_line.arguments(start_of(plan, stated))


def unnamed_settings(plan: MemoryPlan, stated: StatedSettings) -> Args:
    """Return the settings that were sized and that `engine_args` cannot name, by their names in a question."""
    return plan.rules.serving_engine.command_line.unnamed(start_of(plan, stated))


def names_drafter(plan: MemoryPlan) -> bool:
    """Return whether `engine_args` say who drafts."""
    return plan.rules.serving_engine.command_line.names_drafter(plan.settings)


def needs_half(gpu: Gpu) -> bool:
    """Return whether the GPU has no bfloat16, so that the engine must be told to compute in float16.

    Source:
        vLLM 0.33 `platforms/cuda.py` (`check_if_supports_dtype`): compute capability 8.0.
    """
    return gpu.compute_capability is not None and float(gpu.compute_capability) < HALF_FROM_CAPABILITY


def where_it_lies(plan: MemoryPlan, stated: StatedSettings) -> Args:
    """Return what a reader must know of a repository that is not known here; nothing where the command names one."""
    if start_of(plan, stated).served == UNNAMED_MODEL:
        return (f"{UNNAMED_MODEL} is where your checkpoint lies: no repository of this model is known here",)
    weight_format, made = plan.checkpoint.weight_format, made_from(plan, stated)
    if made is None or stated.quantization is not None or weight_format in HALF_FORMATS:
        return ()
    told = f"no {weight_format} repository of {made} is known here: the engine makes {weight_format} of it while it "
    return (f"{told}loads; model=OWNER/REPOSITORY names one that you know",)


def made_from(plan: MemoryPlan, stated: StatedSettings) -> str | None:
    """Return the id of the checkpoint that the engine converts while it loads; None where it loads one as it is."""
    start, line = start_of(plan, stated), plan.rules.serving_engine.command_line
    is_made = not start.is_published and line.loading(start) is not None
    return own_checkpoint(plan.model).hf_id if is_made else None
