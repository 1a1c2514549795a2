"""Which dtypes a cache may have, and which one an engine takes when nobody says.

Sources:
    vLLM 0.33 `config/vllm.py` (`_reject_mismatched_float_kv_cache`), `model_executor/models/config.py` (cache dtypes
    by model), `models/deepseek_v4/attention.py`; 0.20, 0.21 and 0.25 `config/cache.py` (`CacheDType`).
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from service.engine.engines.device import Device
from service.engine.engines.kernels import refuses_bfloat16
from service.engine.errors import RefusedStartError
from service.engine.facts import Checkpoint
from service.engine.inputs import HALF_FORMATS, SCALED_CACHES, KvCacheDtype
from service.engine.layers import Architecture
from service.engine.memory.kernels import needs_of

CACHE_DTYPES: Final[Mapping[str, KvCacheDtype]] = MappingProxyType({"bfloat16": "bf16", "float16": "fp16"})


def declared_cache_dtype(checkpoint: Checkpoint, device: Device) -> KvCacheDtype | None:
    """Return the dtype that the checkpoint asks for, where the engine listens; None where it says nothing else."""
    declared = checkpoint.kv_cache_dtype
    unheard = declared in SCALED_CACHES and not (device.is_vllm_on_cuda and declared in device.plan.scaled_caches)
    return None if declared == "auto" or unheard else declared


def own_cache_dtype(architecture: Architecture, checkpoint: Checkpoint, device: Device) -> tuple[KvCacheDtype, str]:
    """Return what an engine stores in the cache when neither caller nor checkpoint says so, and why."""
    if reads_fp8_only(architecture):
        return "fp8", "the only cache that the engine has for this model"
    if chooses_fp8(architecture, device):
        return "fp8", "the engine's own choice for selected latents from compute capability 10 on"
    is_glm = architecture.prefers_fp8_cache and device.plan.glm_sparse_is_fp8
    if is_glm and device.is_vllm_on_cuda and device.generation == 10:
        return "fp8", "the engine's own choice for this model on GPUs of compute capability 10"
    return half_dtype(architecture, checkpoint, device), "auto: the model's dtype"


def chooses_fp8(architecture: Architecture, device: Device, *, is_fp8: bool = False) -> bool:
    """Return whether the engine keeps selected latents in fp8 on this GPU unless it is told otherwise.

    Of latents in fp8 already: whether it keeps them without scales and 16-bit rotary values.
    """
    chooses = device.keeps_selected_plain if is_fp8 else device.selects_in_fp8
    return chooses and any(need.kind == "sparse" for need in needs_of(architecture))


def reads_fp8_only(architecture: Architecture) -> bool:
    """Return whether the model's kernels refuse a cache of 16 bits."""
    return any(need.reads_fp8_only for need in needs_of(architecture))


def half_dtype(architecture: Architecture, checkpoint: Checkpoint, device: Device) -> KvCacheDtype:
    """Return the model's dtype as it is served."""
    if checkpoint.weight_format == "fp16" or (architecture.dtype == "bfloat16" and refuses_bfloat16(device)):
        return "fp16"
    return "bf16" if checkpoint.weight_format == "bf16" else CACHE_DTYPES.get(architecture.dtype, "bf16")


def check_cache_dtype(
    architecture: Architecture, checkpoint: Checkpoint, device: Device, stated: KvCacheDtype | None
) -> None:
    """Raise RefusedStartError where an engine does not take a stated dtype, whatever its kernels read."""
    if stated in SCALED_CACHES:
        _check_scaled(architecture, device, stated)
    if stated not in HALF_FORMATS:
        return
    own = half_dtype(architecture, checkpoint, device)
    if _lacks_half_caches(architecture, device):
        raise _refusal(f"{stated}: {device.engine} has only an fp8 cache for this model", "auto or fp8")
    if not device.is_vllm and stated == "fp16" and own == "bf16":
        raise _refusal(f"fp16: {device.engine} has no word for it, and the model's is bf16", "auto or fp8")
    if device.is_vllm_on_cuda and stated != own and device.plan.refuses_other_floats:
        raise _refusal(f"{stated} is not the model's dtype; {device.engine} insists on it", f"auto, {own} or fp8")


def _lacks_half_caches(architecture: Architecture, device: Device) -> bool:
    """Return whether a cache of 16 bits is refused: by vLLM's kernels, and by SGLang beside a compressed past.

    Source: SGLang 0.5.12 to 0.5.23 `mem_cache/deepseek_v4_memory_pool.py` (`assert self.store_dtype == torch.uint8`).
    """
    if device.is_vllm_on_cuda:
        return reads_fp8_only(architecture)
    return device.plan.is_strict_on_compressed and architecture.compresses_past


def _check_scaled(architecture: Architecture, device: Device, stated: KvCacheDtype) -> None:
    """Raise RefusedStartError where a version of vLLM has no cache with scales inside, or there is no rule for it.

    Scales of four bytes break the ratio of pages of heads of different widths, and four bits the strides of windows:
    what lines them up is known of 0.33 alone.

    Sources:
        vLLM issues 40388 (Gemma 4 "fails to initialize with per-token-head KV cache quantization") and 48721, pull
        requests 40391 and 48842, both open; 0.33 `v1/core/kv_cache_planning.py` (`unify_kv_cache_spec_page_size`).
    """
    taken = device.plan.scaled_caches if device.is_vllm_on_cuda else ()
    if stated not in taken:
        where = f" on {device.loads.platform}" if device.is_vllm else ""
        unknown = f"there is no rule for such a cache of {device.engine}{where}"
        told = f"{device.engine} has no such cache" if device.is_vllm_on_cuda else unknown
        raise _refusal(f"{stated}: {told}", ", ".join(("auto", *taken)) + " or fp8")
    if stated == "nvfp4" or device.plan.pads_scaled_pages:
        return
    needs = [need for need in needs_of(architecture) if need.kind == "grouped"]
    is_mixed = len({need.key_dim for need in needs}) > 1
    if is_mixed or (stated == "int4_per_token_head" and _has_windows(architecture)):
        raise _refusal(
            f"{stated}: {device.engine} is not known to line up its pages for {architecture.name}",
            "auto or fp8, or engine_version 0.33 or newer",
        )


def _has_windows(architecture: Architecture) -> bool:
    return any(mixer.spread.is_local for mixer in architecture.mixers)


def _refusal(detail: str, accepted: str) -> RefusedStartError:
    return RefusedStartError(f"kv_cache_dtype={detail}", field="kv_cache_dtype", accepted=accepted)
