"""Kernels for latents, dense and sparse, by GPU generation; blocks are fixed up to 0.17.

                        capability 10               Hopper                       12                 others
    dense               FlashInfer 32, CUTLASS 128  FlashAttention 16            Triton 16          Triton 16
    dense, fp8          the same                    FlashMLA 64                  Triton 16          Triton 16, from 8.9
    sparse              FlashMLA 64                 FlashAttention 64            FlashInfer, packed none
    sparse, fp8         FlashInfer 32, plain        FlashMLA 64, packed          FlashInfer, packed none
    records             128                         64                           128                none

Sources:
    vLLM 0.33 `platforms/cuda.py` (`_get_backend_priorities`), `v1/attention/backends/mla/` (each backend's
    `supports_compute_capability`, `supports_combination`, `get_supported_kernel_block_sizes`),
    `model_executor/layers/attention/mla_attention.py` (`_canonicalize_sparse_mla_kv_cache_dtype`); 0.17
    `platforms/cuda.py` (`check_and_update_config`); ROCm's `v1/attention/backends/mla/rocm_aiter_mla_sparse.py` and
    `indexer.py` (`get_supported_kernel_block_sizes`: 1, or 64); `models/deepseek_v41/` (`sparse_mla.py`,
    `nvidia/flash_mla_mega_attn.py`, and `attention.py`: `swa_bytes_per_token`, `compressed_bytes_per_token`).
"""

from math import lcm
from typing import Final

from service.engine.engines.device import Device
from service.engine.engines.kernel import AskedCache, Kernel
from service.engine.layers import KernelNeed, Records

FLASHINFER_NOPE_DIMS: Final = (64, 128, 192)
FLASHINFER_SPARSE_NOPE_DIMS: Final = (128, 192)
WORKSTATION_TOP_K: Final = 2_048  # tokens that the sparse kernel of capability 12 selects
FIXED_BLOCKS: Final = (64,)
FLASHINFER_MLA: Final = Kernel(name="FLASHINFER_MLA", blocks=(32, 64))
CUTLASS_MLA: Final = Kernel(name="CUTLASS_MLA", blocks=(128,))
FLASH_MLA: Final = Kernel(name="FLASHMLA", blocks=FIXED_BLOCKS)
FLASH_ATTN_MLA: Final = Kernel(name="FLASH_ATTN_MLA")
TRITON_MLA: Final = Kernel(name="TRITON_MLA", is_triton=True)
SPARSE: Final = Kernel(name="FLASHMLA_SPARSE", blocks=FIXED_BLOCKS)
PACKED: Final = Kernel(name="FLASHMLA_SPARSE", blocks=FIXED_BLOCKS, is_packed=True)
FLASHINFER_SPARSE: Final = Kernel(name="FLASHINFER_MLA_SPARSE", blocks=(32,), rows=32)
# Whose fp8 is plain, and which reads blocks of any length in tokens of their own.
AITER_SPARSE: Final = Kernel(name="ROCM_AITER_MLA_SPARSE", blocks=(1, 64))
WORKSTATION: Final = Kernel(name="FLASHINFER_MLA_SPARSE_SM120", blocks=FIXED_BLOCKS, is_packed=True)
FP8_RECORD_BYTES: Final = 528  # 512 values, and a scale for 32 of them
FP4_RECORD_BYTES: Final = 288  # 512 values in half a byte each, and a scale for 16 of them
FP8_PAGE_BYTES: Final = 512  # to which pages of such records are rounded


def latent_kernel(need: KernelNeed, asked: AskedCache, device: Device) -> Kernel:
    """Return the kernel of one dense latent layer; Triton's where the preferred ones do not read a stated block."""
    if not device.plan.kernels_set_blocks:
        return _with_fixed_blocks(need, device)
    stated = asked.block_size if device.is_vllm else None
    return next((kernel for kernel in _dense_kernels(need, asked, device) if kernel.reads(stated)), TRITON_MLA)


def _dense_kernels(need: KernelNeed, asked: AskedCache, device: Device) -> tuple[Kernel, ...]:
    """Return the kernels that run one dense latent layer before Triton's, the preferred one first."""
    match device.generation:
        case 9:
            return (FLASH_MLA if asked.is_fp8 else FLASH_ATTN_MLA,)
        case 10:
            return (FLASHINFER_MLA, CUTLASS_MLA) if need.nope_dim in FLASHINFER_NOPE_DIMS else (CUTLASS_MLA,)
        case _:
            return ()


def _with_fixed_blocks(need: KernelNeed, device: Device) -> Kernel:
    """Return the kernel of a version that picks blocks by generation."""
    if device.generation == 10:
        is_flashinfer = device.plan.flashinfer_runs_latents and need.nope_dim == 128
        return Kernel(name=FLASHINFER_MLA.name, blocks=FIXED_BLOCKS) if is_flashinfer else CUTLASS_MLA
    return FLASH_MLA if device.generation == 9 else TRITON_MLA


def sparse_kernel(need: KernelNeed, asked: AskedCache, device: Device) -> Kernel | None:
    """Return the kernel of one sparse latent layer; None on Ampere and Ada, and for blocks that none reads."""
    kernels = _sparse_kernels(need, asked, device)
    stated = asked.block_size if device.plan.kernels_set_blocks else None
    return next((kernel for kernel in kernels if kernel.reads(stated)), None)


def _sparse_kernels(need: KernelNeed, asked: AskedCache, device: Device) -> tuple[Kernel, ...]:
    """Return the kernels that run one sparse latent layer, the preferred one first."""
    if device.is_vllm and device.loads.platform == "ROCm":
        return (AITER_SPARSE,)
    match device.generation:
        case 9:
            return (_on_hopper(asked, device),)
        case 10:
            return _on_blackwell(need, asked)
        case 12 if device.plan.workstations_run_sparse and need.top_k == WORKSTATION_TOP_K:
            return () if asked.spreads_context else (WORKSTATION,)
        case _:
            return ()


def records_kernel(device: Device) -> Kernel:
    """Return the kernel of latents with a past that layers share, and how it wants one token stored (DeepSeek V4.1).

    On compute capability 10 in fp8 throughout, the past in fp4 since a kernel reads it so; elsewhere as DeepSeek V4's.
    """
    if device.generation != 10:
        return Kernel(name="FLASHMLA_SPARSE_DSV41", blocks=FIXED_BLOCKS if device.generation == 9 else (128,))
    plan = device.plan
    past = FP4_RECORD_BYTES if plan.keeps_past_in_fp4 else FP8_RECORD_BYTES
    records = Records(
        window_bytes=FP8_RECORD_BYTES,
        past_bytes=past,
        page_alignment=FP8_PAGE_BYTES,
        block_alignment=lcm(FP8_RECORD_BYTES, past) if plan.aligns_records else 1,
    )
    return Kernel(name="FLASHMLA_MEGA_ATTN_DSV41", blocks=(128,), records=records)


def _on_hopper(asked: AskedCache, device: Device) -> Kernel:
    if asked.kind == "model":
        alone = asked.context_ranks == 1
        return Kernel(name="FLASH_ATTN_MLA_SPARSE", blocks=FIXED_BLOCKS) if alone else SPARSE
    if asked.kind == "checkpoint_fp8" and device.plan.keeps_own_fp8_plain:
        return Kernel(name="FLASHINFER_MLA_SPARSE_SM90", blocks=FIXED_BLOCKS)
    return PACKED


def _on_blackwell(need: KernelNeed, asked: AskedCache) -> tuple[Kernel, ...]:
    if need.rope_dim:
        is_flashinfer = need.nope_dim in FLASHINFER_SPARSE_NOPE_DIMS
    else:
        is_flashinfer = (need.nope_dim, need.value_dim) == (256, 512)
    plain = (FLASHINFER_SPARSE,) if is_flashinfer else ()
    return (*plain, PACKED) if asked.is_fp8 else (SPARSE, *plain)
