"""Gated delta nets whose decoding requests go through the kernel that reads prompts: each as a chunk of 64 tokens.

    seconds of a request more = 5.5 x its state's bytes x (H100's peak / H100's bandwidth) / peak

One prompt in the batch, and that kernel took every request. A chunk multiplies 64 rows where one is needed, so that it
waits for tensor cores and not for the memory that holds the state.

Sources:
    vLLM pull request 44700, of June 2026 (`model_executor/layers/mamba/gdn/`, `_forward_core`). It prints for one layer
    of Qwen3.5 953 requests in 1,844 us alone, and in 4,362 - 7,239 / 8,192 x 464 = 3,952 us beside 7,239 tokens of
    prompts, in kernels that are newer than those of 0.17.
    GPUStack performance lab, vLLM 0.17, with a host that hides: end-to-end latencies of Qwen3.5-9B on H100 are off by
    18, 5, 2, 4 and 8 % where such a chunk takes 3, 4.5, 5.25, 6 and 7 times as long as its state is read and written at
    H100's bandwidth; of Qwen3.5-35B-A3B in fp8 on H200 by 13, 8, 5, 3 and 7 % in the mean.
"""

from typing import Final

from service.engine.inputs import Gpu
from service.engine.time.steps import Deployed
from service.performance.workload import peak_at

CHUNKED_STATE_FACTOR: Final = 5.5
# FLOP of 16 bits a byte of memory on the GPU that the factor was found on: H100 SXM, 989.4 TFLOP/s and 3.35 TB/s.
H100_FLOP_PER_BYTE: Final = 989.4e12 / 3.35e12


def chunked_states(key: Deployed) -> float:
    """Return what a request that decodes beside prompts takes more, over reading and writing its state; 0 of others."""
    is_chunked = key.rules.plan.chunks_states and any(mixer.chunks_states for mixer in key.model.architecture.mixers)
    return CHUNKED_STATE_FACTOR * H100_FLOP_PER_BYTE / _flop_per_byte(key.gpu) if is_chunked else 0.0


def _flop_per_byte(gpu: Gpu) -> float:
    return peak_at(gpu, "bf16") / gpu.memory_bandwidth_bytes_per_s
