"""What a reader must know of the build that a command is given to: whether it has kernels for the GPU at all.

Sources:
    docs.vllm.ai: projects/gaudi/en/latest ("vLLM Hardware Plugin for Intel Gaudi"), en/v0.10.0 installation of Gaudi
    (built from source before there was a plugin), getting_started/installation/gpu (wheels of ROCm and of XPU are not
    those of CUDA). SGLang: docs.sglang.io/docs/hardware-platforms (no Gaudi), docs.habana.ai
    PyTorch/SGLang_Inference (HabanaAI/sglang-fork). All seen 2026-11-28.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from service.engine.engines.device import Device
from service.engine.engines.platforms import Platform, platform_of
from service.engine.inputs import EngineName
from service.engine.memory.plan import MemoryPlan

# Of platforms that the engine's usual build does not run on, what does.
BUILT_FOR: Final[Mapping[tuple[EngineName, Platform], str]] = MappingProxyType({
    ("vllm", "Gaudi"): "its plugin vllm-gaudi beside it (before 0.11: vLLM built from source for Gaudi)",
    ("sglang", "Gaudi"): "Intel's fork HabanaAI/sglang-fork",
    ("vllm", "ROCm"): "vLLM's build for ROCm",
    ("sglang", "ROCm"): "SGLang's build for ROCm",
    ("vllm", "XPU"): "vLLM's build for XPU",
    ("sglang", "XPU"): "SGLang's build for XPU",
})  # fmt: skip


def build_warnings(plan: MemoryPlan) -> tuple[str, ...]:
    """Return what the command needs besides the engine as it is usually installed."""
    return (*_platform_warnings(plan), *_wheel_warnings(plan.device))


def _platform_warnings(plan: MemoryPlan) -> tuple[str, ...]:
    """Return which build runs on GPUs that are not NVIDIA's."""
    if plan.gpu.vendor == "nvidia":
        return ()
    needed = BUILT_FOR.get((plan.rules.engine, platform_of(plan.gpu)))
    if needed is None:
        return ()
    title = plan.rules.serving_engine.title
    return (f"{title} as it is usually installed is for CUDA: the command needs {needed} on {plan.gpu.name}",)


def _wheel_warnings(device: Device) -> tuple[str, ...]:
    """Return what a reader must know where published builds have no kernels for the GPU's generation."""
    if not device.is_vllm_on_cuda or device.capability >= device.plan.first_capability:
        return ()
    told = f"published wheels and images of {device.engine} are built with CUDA 13 and have no kernels for compute"
    return (f"{told} capability {device.dotted}: build it with CUDA 12, or take engine_version 0.19",)
