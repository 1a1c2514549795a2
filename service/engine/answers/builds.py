"""What a reader must know of the build that a command is given to: whether it has kernels for the GPU at all."""

from service.engine.engines.device import Device
from service.engine.engines.flags.vllm import WITHOUT_DEEP_GEMM
from service.engine.engines.methods import avoids_deep_gemm
from service.engine.engines.platforms import build_for
from service.engine.memory.plan import MemoryPlan


def build_warnings(plan: MemoryPlan) -> tuple[str, ...]:
    """Return what the command needs besides the engine as it is usually installed."""
    return (*_platform_warnings(plan), *_wheel_warnings(plan.device), *_variable_warnings(plan))


def _platform_warnings(plan: MemoryPlan) -> tuple[str, ...]:
    """Return which build runs on GPUs that are not NVIDIA's."""
    if plan.gpu.vendor == "nvidia":
        return ()
    needed = build_for(plan.gpu, plan.rules.engine)
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


def _variable_warnings(plan: MemoryPlan) -> tuple[str, ...]:
    """Return which variable keeps a version from kernels that its build has not."""
    if not avoids_deep_gemm(plan.device, plan.checkpoint.quantization):
        return ()
    told = f"{plan.device.engine} has no kernels of DeepGEMM for fp8 blocks on compute capability {plan.device.dotted}"
    return (
        f"{told}, and ends while it starts: {WITHOUT_DEEP_GEMM} stands before the command, and goes with engine_args",
    )
