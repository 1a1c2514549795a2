"""Which GPUs SGLang and TensorRT-LLM run on, and which formats there; vLLM's own on CUDA are told by method.

    capability     any    bf16   fp8    int8   int4   mxfp4  nvfp4
    SGLang         7.5    8.0    8.0    8.0    7.5    8.0    8.0     fp8 made by ModelOpt 8.9
    TensorRT-LLM   8.0    8.0    8.9    8.0    8.0    9.0    10.0

Other vendors' fp8 needs hardware that states an fp8 peak, but Intel's, where it is weight-only.

Sources:
    SGLang 0.5.23 `srt/model_executor/model_runner_components/load_model_utils.py` ("SGLang only supports sm75 and
    above."), `srt/model_loader/loader.py` ("Minimum capability"), `srt/layers/quantization/` (`get_min_capability`).
    TensorRT-LLM docs/source/features/quantization.md ("Hardware Support Matrix": Ampere, Ada, Hopper and Blackwell);
    issue 6717 ("WFP4A16 MoE is unsupported on SM89", of gpt-oss; Hopper runs it).
    vLLM docs.vllm.ai/en/latest/features/quantization; fp8 in blocks and by tensor "verified" on Arc Pro B60 and B70:
    vllm-project/recipes, models/Qwen/Qwen3-32B.yaml and models/meta-llama/Llama-3.1-8B-Instruct.yaml (August 2026).
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, get_args

from service.engine.engines.device import Device
from service.engine.engines.kernels import refuses_bfloat16
from service.engine.errors import RefusedStartError
from service.engine.inputs import EngineName, Gpu, WeightFormat
from service.engine.layers import KernelNeed

FIRST: Final[Mapping[EngineName, float]] = MappingProxyType({"sglang": 7.5, "tensorrt-llm": 8.0})
FIRST_OF_FORMAT: Final[Mapping[EngineName, Mapping[WeightFormat, float]]] = MappingProxyType({
    "sglang": {"bf16": 8.0, "fp8": 8.0, "int8": 8.0, "mxfp4": 8.0, "nvfp4": 8.0},
    "tensorrt-llm": {"fp8": 8.9, "mxfp4": 9.0, "nvfp4": 10.0},
})  # fmt: skip
# Its indexer runs in DeepGEMM alone. Source: SGLang 0.5.23 `srt/layers/attention/dsa/paged_mqa_logits_backend.py`,
# `srt/layers/deep_gemm_wrapper/configurer.py` (off below compute capability 9.0).
FIRST_THAT_SELECTS: Final[Mapping[EngineName, float]] = MappingProxyType({"sglang": 9.0})
FIRST_OF_METHOD: Final[Mapping[tuple[EngineName, str, WeightFormat], float]] = MappingProxyType(
    {("sglang", "modelopt", "fp8"): 8.9}
)


def check_runs_format(gpu: Gpu, device: Device, weight_format: WeightFormat, method: str, field: str) -> None:
    """Raise RefusedStartError if the engine does not run on a GPU, or has no kernel for a format there.

    Args:
        gpu: the GPU type.
        device: tells the engine.
        weight_format: what is loaded.
        method: who made it, as the checkpoint names it.
        field: what the caller would change.
    """
    _check_gpu(gpu, device)
    if lacks_kernels(gpu, device.name, weight_format):
        others = ", ".join(each for each in get_args(WeightFormat) if not lacks_kernels(gpu, device.name, each))
        raise RefusedStartError(
            f"{device.title} has no kernels for {weight_format} weights on {gpu.name}",
            field=field,
            accepted=f"{others}, or another GPU",
        )
    first = FIRST_OF_METHOD.get((device.name, method, weight_format), 0.0)
    if gpu.compute_capability is not None and float(gpu.compute_capability) < first:
        raise RefusedStartError(
            f"{device.title} loads {weight_format} made by {method} from compute capability {first}; {gpu.name} has "
            f"{gpu.compute_capability}",
            field=field,
            accepted=f"quantization={weight_format}, made of a checkpoint in 16 bits; another format, or another GPU",
        )


def check_experts(device: Device, scheme: str, method: str, field: str) -> None:
    """Raise RefusedStartError if SGLang has no kernel for experts in a checkpoint's format.

    Source: SGLang 0.5.10 to 0.5.23 `layers/quantization/compressed_tensors/` ("The W8A8Int8 Fused MoE scheme is
    implemented only for NPU for now."), asked of Qwen3-30B-A3B-Instruct-2507-quantized.w8a8.

    Args:
        device: tells the engine.
        scheme: of the experts.
        method: who made it, as the checkpoint names it.
        field: what the caller would change.
    """
    if device.name == "sglang" and (method, scheme) == ("compressed-tensors", "int8-both"):
        raise RefusedStartError(
            f"{device.title} has no kernels for experts in int8 made by compressed-tensors",
            field=field,
            accepted="another format, or engine=vllm",
        )


def check_bfloat16(gpu: Gpu, device: Device, weight_format: WeightFormat, field: str) -> None:
    """Raise RefusedStartError if a GPU has no bfloat16.

    Args:
        gpu: the GPU type.
        device: its generation and the engine's version.
        weight_format: what is loaded.
        field: what the caller would change.
    """
    if weight_format == "bf16" and refuses_bfloat16(device):
        raise RefusedStartError(
            f"{device.engine} runs bfloat16 from compute capability 8.0; {gpu.name} has {gpu.compute_capability}",
            field=field,
            accepted="fp16, or a GPU of compute capability 8.0 or newer",
        )


def check_selects(gpu: Gpu, device: Device, needs: Iterable[KernelNeed]) -> None:
    """Raise RefusedStartError if an engine has no kernels on a GPU for layers that attend to a selection of tokens.

    Args:
        gpu: the GPU type.
        device: tells the engine.
        needs: what the layers need of a kernel.
    """
    first = FIRST_THAT_SELECTS.get(device.name, 0.0)
    selects = any(need.kind == "sparse" or need.generations for need in needs)
    if selects and gpu.compute_capability is not None and float(gpu.compute_capability) < first:
        raise RefusedStartError(
            f"{device.title} attends to a selection of tokens from compute capability {first}; {gpu.name} has "
            f"{gpu.compute_capability}",
            field="gpu",
            accepted=f"a GPU of compute capability {first} or newer, or another model",
        )


def unrun(gpu: Gpu, needs: Iterable[KernelNeed]) -> str | None:
    """Return why no kernel runs a model's attention on a GPU where the engine starts to serve; None where one does.

    The engine plans its caches before it looks for the kernel, so what they take is known nevertheless.
    """
    generations = next((need.generations for need in needs if need.generations), ())
    if gpu.compute_capability is None or int(float(gpu.compute_capability)) in generations or not generations:
        return None
    *others, last = (f"{generation}.x" for generation in generations)
    told = f"{', '.join(others)} or {last}" if others else last
    return f"the kernels of its attention run on compute capability {told}; {gpu.name} has {gpu.compute_capability}"


def check_run(gpu: Gpu, needs: Iterable[KernelNeed]) -> None:
    """Raise RefusedStartError if no kernel runs a model's attention on a GPU: a number of such GPUs serves nobody.

    Args:
        gpu: the GPU type.
        needs: what the layers need of a kernel.
    """
    needs = tuple(needs)
    if (reason := unrun(gpu, needs)) is not None:
        raise RefusedStartError(reason, field="gpu", accepted="a GPU of such a compute capability, or another model")


def _check_gpu(gpu: Gpu, device: Device) -> None:
    """Raise RefusedStartError if the engine does not run on a GPU at all."""
    if device.is_vllm:
        return
    if device.name == "tensorrt-llm" and gpu.vendor != "nvidia":
        raise RefusedStartError(
            f"{device.title} runs on NVIDIA's GPUs alone, and {gpu.name} is none",
            field="gpu",
            accepted="a GPU of NVIDIA's, or engine=vllm",
        )
    first = FIRST[device.name]
    if gpu.compute_capability is not None and float(gpu.compute_capability) < first:
        raise RefusedStartError(
            f"{device.title} runs from compute capability {first}; {gpu.name} has {gpu.compute_capability}",
            field="gpu",
            accepted=f"a GPU of compute capability {first} or newer, or engine=vllm",
        )


def lacks_kernels(gpu: Gpu, engine: EngineName, weight_format: WeightFormat) -> bool:
    """Return whether no kernel of an engine runs a format on a GPU."""
    if gpu.compute_capability is not None:
        return float(gpu.compute_capability) < FIRST_OF_FORMAT.get(engine, {}).get(weight_format, 0.0)
    if weight_format == "nvfp4":
        return True
    return weight_format == "fp8" and gpu.vendor != "intel" and "fp8" not in gpu.peak_flop_per_s
