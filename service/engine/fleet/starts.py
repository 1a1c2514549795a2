"""What the serving engine refuses to start on a GPU, whatever the layout, and what it takes instead.

    dtype     bfloat16 from compute capability 8.0; where nobody states one, float16 stands in below
    cache     an fp8 cache where the kernel of the layer compiles it; a 16-bit one in the model's own dtype
    kernels   one at least for every layer

Sources:
    vLLM 0.33 `platforms/cuda.py` (`check_if_supports_dtype`, `get_attn_backend_cls`), `config/model.py`
    (`_resolve_auto_dtype`, `_FLOAT16_NOT_SUPPORTED_MODELS`).
"""

from service.engine.engines.classes import check_served
from service.engine.engines.device import Device
from service.engine.engines.kernel import Kernel
from service.engine.engines.kernels import refuses_bfloat16
from service.engine.engines.runs_on import lacks_kernels
from service.engine.errors import RefusedStartError
from service.engine.facts import Checkpoint, ModelFacts
from service.engine.fleet.cache_dtypes import check_cache_dtype, half_dtype, reads_fp8_only
from service.engine.inputs import EngineSettings, Gpu, KvCacheDtype
from service.engine.layers import DEFAULT_BLOCK_SIZE, Architecture
from service.engine.memory.kernels import asked_of, kernels_of


def needs_float16(architecture: Architecture, gpu: Gpu, device: Device) -> bool:
    """Return whether the engine falls back to float16, because nobody states a dtype and the GPU has no bfloat16.

    Raises:
        RefusedStartError: the model does not run in float16 either.
    """
    falls_back = refuses_bfloat16(device) or lacks_kernels(gpu, device.name, "bf16")
    if architecture.dtype != "bfloat16" or not falls_back:
        return False
    if not architecture.runs_in_float16:
        raise RefusedStartError(
            f"{device.engine} does not run {architecture.name} in float16, and {gpu.name}, of compute capability "
            f"{gpu.compute_capability}, has no bfloat16; in float32 there is no rule",
            field="gpu",
            accepted="a GPU of compute capability 8.0 or newer",
        )
    return True


def caches_prefixes(architecture: Architecture, device: Device) -> bool:
    """Return whether the engine keeps prefixes when nobody asks: vLLM, of models with states, since 0.28.

    Source: vLLM 0.28 and 0.27 `config/model.py` (`is_prefix_caching_supported`).
    """
    return not device.is_vllm_on_cuda or device.plan.caches_states or not _has_states(architecture)


def check_prefix_caching(architecture: Architecture, device: Device, stated: bool | None) -> None:  # noqa: FBT001 - three values
    """Raise RefusedStartError where a version keeps states of prefixes in a way without a rule.

    Before 0.28 state-space layers kept one at every block, and before 0.15 so did all layers with states.

    Source: vLLM 0.15 to 0.27 `model_executor/models/config.py` (`MambaModelConfig`: `mamba_cache_mode`).
    """
    if not stated or not device.is_vllm_on_cuda or caches_prefixes(architecture, device):
        return
    if not device.plan.can_align_states or any(mixer.keeps_every_state for mixer in architecture.mixers):
        raise RefusedStartError(
            f"there is no rule for how {device.engine} keeps states of prefixes of {architecture.name}",
            field="enable_prefix_caching",
            accepted="false, or engine_version 0.28 or newer",
        )


def check_text_only(device: Device) -> None:
    """Raise RefusedStartError where a version has no flag that leaves towers out."""
    if device.is_vllm_on_cuda and not device.plan.leaves_towers_out:
        raise RefusedStartError(
            f"{device.engine} has no --language-model-only",
            field="language_model_only",
            accepted="false, or engine_version 0.17 or newer",
        )


def check_state_dtypes(architecture: Architecture, device: Device, settings: EngineSettings) -> None:
    """Raise RefusedStartError where a version, or a kind of layer, does not take a stated dtype of states.

    Source: vLLM 0.33 and before `config/cache.py` (`MambaDType`), `model_executor/layers/mamba/mamba_utils.py`
    (`MambaStateDtypeCalculator`); 0.9.2 `engine/arg_utils.py` has neither flag.
    """
    if not device.is_vllm:
        return
    stated = {
        "mamba_cache_dtype": (settings.mamba_cache_dtype, device.plan.state_dtypes),
        "mamba_ssm_cache_dtype": (settings.mamba_ssm_cache_dtype, _matrix_dtypes(architecture, device)),
    }
    for field, (dtype, taken) in stated.items():
        if dtype != "auto" and dtype not in taken:
            raise RefusedStartError(
                f"{device.engine} does not keep states of {architecture.name} in {dtype} by {field}",
                field=field,
                accepted=", ".join(("auto", *taken)),
            )


def _matrix_dtypes(architecture: Architecture, device: Device) -> list[str]:
    """Return the dtypes that all layers with states take for matrices."""
    recurrent = [mixer for mixer in architecture.mixers if mixer.is_recurrent]
    return [
        dtype for dtype in device.plan.state_dtypes if all(dtype in mixer.state_matrix_dtypes for mixer in recurrent)
    ]


def _has_states(architecture: Architecture) -> bool:
    return any(mixer.is_recurrent for mixer in architecture.mixers)


def check_start(
    model: ModelFacts, checkpoint: Checkpoint, device: Device, settings: EngineSettings, stated: KvCacheDtype | None
) -> None:
    """Raise RefusedStartError, naming the rule and what would be accepted, if the engine would refuse to start.

    Args:
        model: the model.
        checkpoint: the weight format that is loaded.
        device: the GPU's generation and the engine's version.
        settings: the engine's settings, resolved.
        stated: the cache's dtype as the caller stated it.
    """
    architecture = model.architecture
    _check_adapters(device, settings)
    _check_drafts_beside_states(architecture, device, settings)
    _check_early_states(architecture, device, settings)
    _check_compressed(architecture, device, settings)
    if not device.is_vllm_on_cuda:
        check_served(architecture.name, architecture.lacked_by, device)
        check_cache_dtype(architecture, checkpoint, device, stated)
        if device.is_vllm and settings.block_size is not None and _attends_by_heads(architecture):
            check_block_size(settings.block_size, device)
        return
    check_cache_dtype(architecture, checkpoint, device, stated)
    kernels = _checked_kernels(architecture, device, settings, half_dtype(architecture, checkpoint, device))
    if kernels and settings.block_size is not None:
        check_block_size(settings.block_size, device)


def _checked_kernels(
    architecture: Architecture, device: Device, settings: EngineSettings, own: str
) -> tuple[Kernel, ...]:
    """Return the kernels of all layers; a cache that they do not read may be the checkpoint's own, and `auto` too."""
    try:
        return kernels_of(architecture, asked_of(architecture, settings, ranks=1), device)
    except RefusedStartError as refusal:
        if refusal.field != "kv_cache_dtype" or not settings.is_checkpoints_cache_dtype or reads_fp8_only(architecture):
            raise
        raise RefusedStartError(
            f"{refusal}; the checkpoint asks for it unless another is stated",
            field="kv_cache_dtype",
            accepted=f"{own}, or a checkpoint that declares no cache",
        ) from refusal


def _check_adapters(device: Device, settings: EngineSettings) -> None:
    """Raise RefusedStartError where a version has no kernels for adapters of this rank.

    Source: vLLM 0.7.3, 0.8.0, 0.11.0 and 0.11.2 `config.py`, later `config/lora.py` (`possible_max_ranks`).
    """
    ranks, rank = device.plan.adapter_ranks, settings.max_lora_rank
    if settings.max_loras and device.is_vllm and rank not in ranks:
        raise RefusedStartError(
            f"{device.engine} takes no max_lora_rank of {rank}",
            field="max_lora_rank",
            accepted=", ".join(map(str, ranks)),
        )


def _check_drafts_beside_states(architecture: Architecture, device: Device, settings: EngineSettings) -> None:
    """Raise RefusedStartError where a version does not draft for a model with recurrent states."""
    drafts_here = not device.is_vllm or device.plan.drafts_beside_states or architecture.drafts_beside_states
    if settings.num_speculative_tokens and not drafts_here and _has_states(architecture):
        raise RefusedStartError(
            f"{device.engine} does not draft for models with recurrent states, such as {architecture.name}",
            field="num_speculative_tokens",
            accepted="0, or engine_version 0.17 or newer",
        )


def _check_early_states(architecture: Architecture, device: Device, settings: EngineSettings) -> None:
    """Raise RefusedStartError where vLLM's class does not hand an EAGLE-3 head what it reads.

    Source: vLLM 0.10.2 to 0.33 `v1/worker/gpu_model_runner.py` ("Model does not support EAGLE3 interface").
    """
    if settings.speculative_method == "eagle3" and device.is_vllm and not architecture.hands_early_states:
        raise RefusedStartError(
            f"{device.engine} runs no EAGLE-3 head beside {architecture.name}, which keeps the states it reads",
            field="speculative_method",
            accepted="ngram or eagle" if architecture.mtp is None else "mtp, ngram or eagle",
        )


def _check_compressed(architecture: Architecture, device: Device, settings: EngineSettings) -> None:
    """Raise RefusedStartError where SGLang stops over what is asked for beside a compressed past.

    Source: SGLang 0.5.12 to 0.5.23 `arg_groups/deepseek_v4_hook.py` ("Only EAGLE ...").
    """
    if not device.plan.is_strict_on_compressed or not architecture.compresses_past:
        return
    if settings.num_speculative_tokens and settings.speculative_method == "ngram":
        raise RefusedStartError(
            f"{device.engine} looks up no drafts for {architecture.name}",
            field="speculative_method",
            accepted="mtp" if architecture.mtp is not None else "none, with num_speculative_tokens 0",
        )


def _attends_by_heads(architecture: Architecture) -> bool:
    """Return whether keys and values are cached, by whose blocks kernels of every platform want 16 tokens or more.

    Source: vLLM 0.33 `v1/attention/backends/` (`get_supported_kernel_block_sizes`): `rocm_attn.py`,
    `rocm_aiter_fa.py`, `rocm_aiter_unified_attn.py`; `mla/rocm_aiter_mla.py` takes latents in any.
    """
    return any(need.kind == "grouped" for mixer in architecture.mixers for need in mixer.kernel_needs)


def check_block_size(block_size: int, device: Device) -> None:
    """Raise RefusedStartError where no attention kernel of the engine reads blocks of this size.

    Sources:
        vLLM 0.33 `v1/attention/backend.py` (`supports_block_size`) and `get_supported_kernel_block_sizes` of every
        backend: whole multiples of 16 tokens, or of more; 0.8.5 `v1/attention/backends/flash_attn.py`
        (`get_kv_cache_shape`: "Block size must be a multiple of 16.").
    """
    if block_size % DEFAULT_BLOCK_SIZE:
        raise RefusedStartError(
            f"{device.engine} has no attention kernel that reads blocks of {block_size} tokens",
            field="block_size",
            accepted=f"a multiple of {DEFAULT_BLOCK_SIZE}, or leave block_size out",
        )
