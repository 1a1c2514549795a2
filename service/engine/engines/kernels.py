"""Which kernel runs a layer's attention: the first of a generation's list that can do what the layer needs.

    block of a model = the default if every kernel accepts it, else the smallest that all accept

Sources:
    vLLM 0.33 `platforms/cuda.py` (`_get_backend_priorities`, `get_valid_backends`), `v1/attention/backend.py`
    (`validate_configuration`), `platforms/interface.py` (`_preferred_block_size_for_backends`).
"""

from collections.abc import Iterable
from dataclasses import replace
from itertools import product
from math import lcm
from typing import Final

from service.engine.derived import derived
from service.engine.engines.device import ADA, HOPPER, Capability, Device
from service.engine.engines.grouped_kernels import grouped_kernel, scaled_kernel
from service.engine.engines.kernel import AskedCache, Kernel
from service.engine.engines.latent_kernels import latent_kernel, records_kernel, sparse_kernel
from service.engine.layers import DEFAULT_BLOCK_SIZE, INDEXER_BLOCK_SIZE, Checkpoint, KernelNeed

NATIVE_FP8: Capability = ADA  # from which on Triton compiles fp8
# Of vLLM 0.33 `models/inkling/nvidia/ops/fa4_rel_attention.py`, which takes queries and a cache of one dtype.
RELATIVE: Final = Kernel(name="INKLING_FA4", refuses_fp8=True)


def kernel_of(need: KernelNeed, asked: AskedCache, device: Device) -> Kernel | None:
    """Return the kernel of one layer; None where the engine has none for it on this GPU."""
    return _kernel(device, need, asked)


@derived(1024)
def _kernel(device: Device, need: KernelNeed, asked: AskedCache) -> Kernel | None:
    if asked.is_scaled:
        if not need.keeps_model_dtype:
            return scaled_kernel(need, asked, device) if need.kind == "grouped" else None
        asked = replace(asked, kind="model")
    match need.kind:
        case "own" | "indexer":
            kernel = Kernel(name="OWN", blocks=(*_shorter_blocks(need, device), need.block_size))
            return kernel if kernel.reads(asked.block_size) or not device.plan.kernels_set_blocks else None
        case "records":
            kernel = records_kernel(device)
            return kernel if kernel.reads(asked.block_size) else None
        case "relative":
            return RELATIVE if RELATIVE.reads(asked.block_size) else None
        case "grouped":
            return grouped_kernel(need, asked, device)
        case "latent":
            return latent_kernel(need, asked, device)
        case "sparse":
            return sparse_kernel(need, asked, device)


def _shorter_blocks(need: KernelNeed, device: Device) -> tuple[int, ...]:
    """Return what else an indexer's kernel reads: single tokens on ROCm, and 32 keys where one has several tokens.

    Sources:
        vLLM 0.33 `v1/attention/backends/mla/indexer.py` (`Glm5NextIndexerBackend`), `utils/deep_gemm.py`
        (`get_paged_mqa_page_sizes`: 64 keys alone on capability 12).
    """
    if need.kind != "indexer":
        return ()
    if device.loads.platform == "ROCm":
        return (1,)
    return (need.block_size // 2,) if need.block_size > INDEXER_BLOCK_SIZE and device.generation != 12 else ()


def raises_on_fp8(kernel: Kernel, asked: AskedCache, device: Device) -> bool:
    """Return whether a kernel that is picked then refuses an fp8 cache: Triton's before Ada, and uneven wide heads.

    Sources:
        vLLM 0.33 `v1/attention/backends/triton_attn.py`, `v1/attention/backends/mla/triton_mla.py`,
        `v1/attention/backends/flash_attn.py` (`FlashAttentionImpl`, which takes values for as wide as keys); before
        0.24 and 0.26 the kernel did not compile (`fp8e4nv not supported in this architecture`).
    """
    return asked.is_fp8 and (kernel.refuses_fp8 or (kernel.is_triton and device.capability < NATIVE_FP8))


def common_block_size(kernels: Iterable[Kernel], default: int = DEFAULT_BLOCK_SIZE) -> int:
    """Return the smallest block that all kernels accept, the default where they do. [tokens].

    >>> common_block_size([Kernel(name="FLASH_ATTN"), Kernel(name="TRITON_FLASHINFER", blocks=(64,))])
    64
    """
    blocks = list({kernel.blocks for kernel in kernels})
    candidates = (default, *sorted(lcm(*sizes) for sizes in product(*blocks)))
    return next(size for size in candidates if all(any(size % each == 0 for each in sizes) for sizes in blocks))


def refuses_bfloat16(device: Device) -> bool:
    """Return whether a GPU is older than bfloat16.

    Source: vLLM 0.33 `platforms/cuda.py` (`check_if_supports_dtype`).
    """
    return device.is_vllm_on_cuda and device.capability < (8, 0)


def exports_state(checkpoint: Checkpoint, device: Device) -> bool:
    """Return whether a kernel that keeps recurrent states while prefill goes on runs on this GPU.

    The delta rule's does on Hopper, and on Blackwell for keys of 128; Kimi's on both whatever their width.

    Sources:
        vLLM 0.33 `model_executor/layers/mamba/gdn/qwen_gdn_linear_attn.py` (`_resolve_gdn_prefill_backend`),
        `mamba_mixer2.py` (`get_kv_cache_spec`), `models/kimi_k3/nvidia/kda.py` (`resolve_kda_prefill_backend`).
    """
    if checkpoint.kernel not in device.plan.exports_states:
        return False
    match checkpoint.kernel:
        case "delta":
            return device.capability == HOPPER or (device.generation in (10, 12) and checkpoint.key_width == 128)
        case "flash_kda":
            return device.generation in (9, 10, 12)
        case "mamba2":
            return True
