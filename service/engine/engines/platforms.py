"""Which ways of storing weights an engine loads on GPUs that are not NVIDIA's: by platform, as checkpoints name them.

Each platform lists what it loads, and the engine refuses the rest before it reads a weight. A list that a version does
not state is not asked. Versions between those that were read answer as the one before.

Sources:
    vLLM 0.8.5, 0.10.2, 0.12, 0.19, 0.23, 0.27, 0.30 and 0.33 `platforms/rocm.py`, `platforms/xpu.py` (a list from 0.27
    on; 0.23 has none), `platforms/interface.py` (`verify_quantization`), `layers/quantization/inc/inc.py` (auto-round).
    vllm-gaudi 0.10 to 0.26 `platform.py` (`supported_quantization`: modelopt since 0.15.1, gpt_oss_mxfp4 since 0.24),
    `ops/hpu_modelopt.py` ("FP8 only", and no experts), `ops/hpu_compressed_tensors.py` (`get_hpu_scheme`).
    SGLang 0.5.23 `srt/configs/model_config.py` (`rocm_supported_quantization`), `srt/layers/quantization/__init__.py`
    (mxfp4 on gfx95 alone, which is CDNA 4).
    Builds: docs.vllm.ai: projects/gaudi/en/latest ("vLLM Hardware Plugin for Intel Gaudi"), en/v0.10.0 installation of
    Gaudi (built from source before there was a plugin), getting_started/installation/gpu (wheels of ROCm and of XPU are
    not those of CUDA). SGLang: docs.sglang.io/docs/hardware-platforms (no Gaudi), docs.habana.ai
    PyTorch/SGLang_Inference (HabanaAI/sglang-fork). All seen 2026-11-28.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

from packaging.version import Version

from service.engine.inputs import EngineName, Gpu

Platform = Literal["CUDA", "ROCm", "XPU", "Gaudi"]
Listed = tuple[tuple[str, frozenset[str]], ...]  # since which version, the newest first


@dataclass(frozen=True, slots=True)
class Loads:
    """What a platform's software loads, by method; `methods` is None where it keeps no list."""

    platform: Platform = "CUDA"
    methods: frozenset[str] | None = None


_ROCM: Final = frozenset({"awq", "gptq", "fp8", "compressed-tensors", "quark"})
_ROCM_MODELOPT: Final = _ROCM | {"mxfp4", "modelopt", "modelopt mixed", "modelopt mxfp8", "modelopt nvfp4"}
_GAUDI: Final = frozenset({"awq", "gptq", "fp8", "compressed-tensors", "auto-round"})
_XPU: Final = frozenset({"awq", "gptq", "auto-round", "fp8", "mxfp4", "modelopt", "compressed-tensors"})
_SGLANG_ROCM: Final = frozenset({"awq", "fp8", "compressed-tensors", "quark", "auto-round", "modelopt mxfp8"})
LISTED: Final[Mapping[tuple[EngineName, Platform], Listed]] = MappingProxyType({
    ("vllm", "ROCm"): (
        ("0.33", _ROCM_MODELOPT | {"auto-round", "fbgemm_fp8", "torchao"}),
        ("0.30", _ROCM_MODELOPT | {"auto-round"}),
        ("0.23", _ROCM_MODELOPT | {"bitsandbytes"}),
        ("0.19", _ROCM | {"mxfp4", "bitsandbytes"}),
        ("0.10", _ROCM | {"mxfp4"}),
        ("0", _ROCM),
    ),
    ("vllm", "XPU"): (("0.27", _XPU),),
    ("vllm", "Gaudi"): (("0.24", _GAUDI | {"modelopt", "mxfp4"}), ("0.15", _GAUDI | {"modelopt"}), ("0", _GAUDI)),
    ("sglang", "ROCm"): (("0", _SGLANG_ROCM),),
})  # fmt: skip
# What a platform's list names and its kernels refuse, by method and scheme.
UNRUN_SCHEMES: Final[Mapping[Platform, frozenset[tuple[str, str]]]] = MappingProxyType(
    {"Gaudi": frozenset({("compressed-tensors", "mxfp4"), ("compressed-tensors", "mxfp8")})}
)
# Whose list has a line for dense matrices alone.
DENSE_ALONE: Final[Mapping[Platform, frozenset[str]]] = MappingProxyType({"Gaudi": frozenset({"modelopt"})})
# On which generations alone an engine has more.
OF_GENERATIONS: Final[Mapping[tuple[EngineName, str], frozenset[str]]] = MappingProxyType(
    {("sglang", "cdna4"): frozenset({"mxfp4"})}
)
# Of platforms that the engine's usual build does not run on, what does.
BUILT_FOR: Final[Mapping[tuple[EngineName, Platform], str]] = MappingProxyType({
    ("vllm", "Gaudi"): "its plugin vllm-gaudi beside it (before 0.11: vLLM built from source for Gaudi)",
    ("sglang", "Gaudi"): "Intel's fork HabanaAI/sglang-fork",
    ("vllm", "ROCm"): "vLLM's build for ROCm",
    ("sglang", "ROCm"): "SGLang's build for ROCm",
    ("vllm", "XPU"): "vLLM's build for XPU",
    ("sglang", "XPU"): "SGLang's build for XPU",
})  # fmt: skip
CUDA: Final = Loads()
NEWEST: Final = Version("9999")  # of engines whose newest release alone was read


def platform_of(gpu: Gpu) -> Platform:
    """Return under what software a GPU runs."""
    if gpu.vendor == "amd":
        return "ROCm"
    if gpu.vendor == "intel":
        return "Gaudi" if gpu.architecture.startswith("gaudi") else "XPU"
    return "CUDA"


def loads_on(gpu: Gpu, engine: EngineName, version: Version = NEWEST) -> Loads:
    """Return what an engine's version loads on a GPU."""
    platform = platform_of(gpu)
    lines = LISTED.get((engine, platform), ())
    listed = next((methods for since, methods in lines if version >= Version(since)), None)
    if listed is not None:
        listed |= OF_GENERATIONS.get((engine, gpu.architecture), frozenset())
    return Loads(platform, listed)


def build_for(gpu: Gpu, engine: EngineName) -> str | None:
    """Return which build of an engine runs on a GPU; None where the usual one does."""
    return BUILT_FOR.get((engine, platform_of(gpu)))
