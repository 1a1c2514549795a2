"""Attention that Triton's kernel computes: few rows share a key, so that it waits for the cache beside the cores.

    rate = share x peak of 16 bits

A block of the kernel holds 16 rows: the query heads of one key head, of a few tokens. Each tile of keys and values is
read for those rows alone, 16 FLOP a byte, where FlashAttention's blocks hold 64 to 128. vLLM takes it where the faster
kernels run no sinks: gpt-oss on GPUs before Hopper.

Sources:
    vLLM 0.11 `attention/ops/triton_unified_attention.py` (`BLOCK_M = 16 if num_queries_per_kv <= 16`);
    `platforms/cuda.py` (`get_attn_backend_cls`) takes it for sinks. 0.33: `engine/engines/grouped_kernels.py`.
    GPUStack performance lab, gpt-oss-20b on one A100, vLLM 0.11: a prompt token takes 137 and 136 us in prompts of
    32,000, and 64 and 62 in prompts of 4,000 (two servers; whole runs by their tokens read). 14,000 attended tokens
    more take 73 and 74 us in 12 layers without a window, of 64 heads of 64: 38 TFLOP/s, or 2.4 TB/s from that cache.
"""

from typing import Final

from service.engine.engines.device import device_of
from service.engine.engines.kernel import AskedCache
from service.engine.engines.kernels import kernel_of
from service.engine.time.steps import Deployed

A100: Final = (8, 0)  # compute capability, of A30 too
TRITON_FRACTION: Final = 0.121  # 37.7 of 312 TFLOP/s
NOTE: Final = "Triton reads prompts on {gpu} at {fraction} of its peak in 16 bits, as GPUStack's runs of gpt-oss show"


def attention_fraction(key: Deployed, compute_fraction: float) -> float:
    """Return the share of a peak that attention to a prompt reaches.

    Args:
        key: what runs where.
        compute_fraction: what kernels reach that others run.
    """
    return min(TRITON_FRACTION, compute_fraction) if _reads_by_triton(key) else compute_fraction


def note_of_triton(key: Deployed) -> str:
    """Return what is said of a deployment whose prompts are read slower than by other kernels; nothing of others."""
    return NOTE.format(gpu=key.gpu.id, fraction=TRITON_FRACTION) if _reads_by_triton(key) else ""


def _reads_by_triton(key: Deployed) -> bool:
    """Return whether Triton runs every layer on a GPU where its speed is known."""
    device = device_of(key.gpu, key.rules)
    if not device.is_vllm_on_cuda or device.capability != A100:
        return False
    needs = {need for mixer in key.model.architecture.mixers for need in mixer.kernel_needs}
    kernels = [kernel_of(need, AskedCache(), device) for need in needs]
    return bool(kernels) and all(kernel is not None and kernel.is_triton for kernel in kernels)
