"""Kernels for attention with keys and values of its own, by GPU generation.

    Hopper      Triton + FlashAttention (images both ways), FlashAttention, FlashInfer, Triton, Flex
    Blackwell   Triton + FlashInfer (images both ways), FlashInfer, FlashAttention, Triton, Flex    capability 10
    others      FlashAttention, FlashInfer, Triton, Flex

The first that can do what a layer needs runs it. Ranks of context take FlashAttention or FlashInfer.

Sources:
    vLLM 0.33 `platforms/cuda.py` (`_get_backend_priorities`), `v1/attention/backends/{flash_attn,flashinfer,
    triton_attn,flex_attention,flash_attn_diffkv,triton_flash_attn}.py`, `v1/attention/backends/fa_utils.py`
    (`get_flash_attn_version`), `v1/attention/backend.py` (`supports_dcp`); 0.17 `platforms/cuda.py`
    (`check_and_update_config`) for fixed blocks.
"""

from dataclasses import replace
from typing import Final

from service.engine.engines.device import ADA, AMPERE, HOPPER, Device
from service.engine.engines.kernel import AskedCache, Kernel
from service.engine.layers import KernelNeed

FLASHINFER_HEADS: Final = (64, 128, 256, 512)
IMAGE_HEADS: Final = (256, 512)  # head sizes that the mixed kernels run
WIDE_HEAD: Final = 512
NARROW_HEAD: Final = 64
SMALLEST_TRITON_HEAD: Final = 32
FLASH_ATTN: Final = Kernel(name="FLASH_ATTN")
FLASHINFER: Final = Kernel(name="FLASHINFER", blocks=(16, 32, 64))
TRITON: Final = Kernel(name="TRITON_ATTN", is_triton=True)
FLEX: Final = Kernel(name="FLEX_ATTENTION")
WIDE_FP8_BLOCKS: Final = (64,)
WIDE_BLACKWELL_BLOCKS: Final = (128,)


def grouped_kernel(need: KernelNeed, asked: AskedCache, device: Device) -> Kernel | None:
    """Return the kernel of one layer; None where none can run it."""
    if need.key_dim != need.value_dim:
        return _uneven(need, asked, device)
    if asked.is_fp8 and device.generation != 9 and not device.plan.flashinfer_reads_fp8:
        return None if asked.spreads_context else TRITON
    first, second = _flash_attn(need, asked, device), _flashinfer(need, asked, device)
    if device.generation == 10:
        first, second = second, first
    if asked.spreads_context:
        return first or second
    kernels = (_mixed(need, asked, device), first, second, _triton(need), _flex(need, asked))
    return next((kernel for kernel in kernels if kernel is not None), None)


def scaled_kernel(need: KernelNeed, asked: AskedCache, device: Device) -> Kernel | None:
    """Return the kernel that reads a cache with scales beside its elements; None where none does.

    Scales by token and head are Triton's alone; nvfp4 is FlashInfer's, with less off compute capability 10.

    Sources:
        vLLM 0.33 `v1/attention/backends/triton_attn.py` (`supported_kv_cache_dtypes`), `flashinfer.py`
        (`supports_kv_cache_dtype`, `supports_combination`).
    """
    if need.key_dim != need.value_dim or asked.spreads_context:
        return None
    if asked.kind != "nvfp4":
        compiles = asked.kind != "fp8_per_token_head" or device.capability >= ADA
        return _triton(need) if compiles and need.key_dim % 2 == 0 else None
    is_partial = device.generation != 10 and (need.key_dim == NARROW_HEAD or need.has_sinks)
    if device.generation not in device.plan.nvfp4_caches_on or is_partial:
        return None
    return _flashinfer(need, asked, device)


def _uneven(need: KernelNeed, asked: AskedCache, device: Device) -> Kernel | None:
    """Return the kernel for values of another width than keys."""
    if device.generation in (9, 10) and flash_attn_version(need, asked, device) > 2:
        as_even = replace(need, value_dim=need.key_dim)  # as which the kernel asks whether fp8 can be read
        reads_fp8 = device.generation == 9 or flash_attn_version(as_even, asked, device) > 2
        return Kernel(name="FLASH_ATTN_DIFFKV", refuses_fp8=not reads_fp8)
    return None if asked.spreads_context else Kernel(name="TRITON_ATTN_DIFFKV", is_triton=True)


def flash_attn_version(need: KernelNeed, asked: AskedCache, device: Device) -> int:
    """Return the generation of FlashAttention that runs heads of these sizes."""
    if device.generation == 9:
        is_fourth = need.key_dim > 256 or (need.has_sinks and need.key_dim != need.value_dim)
        return 4 if is_fourth else 3
    if device.generation != 10:
        return 2
    if (need.key_dim, need.value_dim) == (256, 256):
        is_special = need.has_sinks or asked.is_fp8 or asked.images_both_ways or asked.context_ranks > 1
        return 2 if is_special else 4
    return 4 if need.key_dim <= 128 or (need.key_dim, need.value_dim) == (192, 128) else 2


def _flash_attn(need: KernelNeed, asked: AskedCache, device: Device) -> Kernel | None:
    """Return FlashAttention where it runs such heads, sinks, fp8 and images."""
    head, generation = need.key_dim, device.generation
    widest = WIDE_HEAD if generation in (9, 10, 11) else 256
    if device.capability < AMPERE or head % 8 or head > widest or (need.has_sinks and generation not in (9, 10)):
        return None
    version = flash_attn_version(need, asked, device)
    on_hopper, on_blackwell = generation == 9, generation == 10
    reads_fp8 = (on_hopper and (version == 3 or head == WIDE_HEAD)) or (on_blackwell and version == 4)
    sees_both_ways = version == 4 and not (asked.is_fp8 and on_hopper)
    if (asked.is_fp8 and not reads_fp8) or (asked.images_both_ways and not sees_both_ways):
        return None
    if on_hopper and asked.is_fp8 and head == WIDE_HEAD:
        return replace(FLASH_ATTN, blocks=WIDE_FP8_BLOCKS)
    if on_blackwell and head == 256 and version == 4:
        return replace(FLASH_ATTN, blocks=WIDE_BLACKWELL_BLOCKS)
    return FLASH_ATTN


def _flashinfer(need: KernelNeed, asked: AskedCache, device: Device) -> Kernel | None:
    """Return FlashInfer where it runs such heads and sinks; it knows no images both ways."""
    if not AMPERE <= device.capability <= (12, 1) or need.key_dim not in FLASHINFER_HEADS or asked.images_both_ways:
        return None
    return None if need.has_sinks and device.generation not in (9, 10, 12) else FLASHINFER


def _mixed(need: KernelNeed, asked: AskedCache, device: Device) -> Kernel | None:
    """Return Triton for images and a faster kernel for text, where heads are wide."""
    if not asked.images_both_ways or need.key_dim not in IMAGE_HEADS or not device.plan.mixes_kernels:
        return None
    if device.generation == 10:
        return Kernel(name="TRITON_FLASHINFER", blocks=(64,))
    if device.capability != HOPPER:
        return None
    for_text = _flash_attn(need, replace(asked, images_both_ways=False), device)
    return None if for_text is None else Kernel(name="TRITON_FLASH_ATTN", blocks=for_text.blocks)


def _triton(need: KernelNeed) -> Kernel | None:
    return TRITON if need.key_dim >= SMALLEST_TRITON_HEAD else None


def _flex(need: KernelNeed, asked: AskedCache) -> Kernel | None:
    return None if asked.is_fp8 or need.has_sinks else FLEX
