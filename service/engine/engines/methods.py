"""Which quantizations a version of vLLM loads, and from which compute capability: by method, as checkpoints name it.

    method               scheme           versions: lowest capability
    fp8                  tensor           0.8: 8.0    0.14: 7.5
    fp8                  block, experts   0.8: 8.9    0.9: 8.0     0.14: 7.5
    compressed-tensors   fp8              0.8: 8.0    0.16: 7.5
    compressed-tensors   fp8 block        0.11: 8.9   0.16: 7.5
    compressed-tensors   int8, both       7.5, and below 10.0
    compressed-tensors   int8, int4       0.8: 8.0    0.12: 7.5
    compressed-tensors   nvfp4            0.9: 8.0    0.16: 7.5
    compressed-tensors   mxfp4            0.14: 8.0
    compressed-tensors   mxfp8            0.20: 7.5
    compressed-tensors   int4 with fp8    0.14: 9.0 alone
    modelopt             fp8              0.8: 8.9    0.27: 8.0
    modelopt             fp8 channel      0.14: 8.9   0.27: 8.0
    modelopt             fp8 block        0.14: 8.9   0.27: 8.0
    modelopt             nvfp4            0.8: 10.0   0.9: 8.0     0.14: 7.5
    modelopt             W4A16_NVFP4      0.24: 7.5
    modelopt             mixed            0.17: 8.9   0.24: 7.5
    modelopt             mxfp8            0.24: 8.0
    mxfp4                                 0.10: 8.0
    awq                                   7.5; of 8 bits up to 0.13
    gptq                                  0.8: 6.0    0.22: 7.5
    gptq, asymmetric                      6.0 up to 0.21
    gptq, ordered by activations          0.8: 6.0    0.22: 7.5, up to 0.29
    auto-round           int4, int8       0.9: 6.0    0.22: 7.5
    auto-round           mxfp8, blocks    0.29: 7.5
    auto-round           mxfp4            0.29: 8.0
    auto-round           asymmetric       6.0 up to 0.21, packed as GPTQ
    quark                fp8              0.8: 8.9    in blocks from 0.33 on
    quark                int8, mxfp4      0.8: 7.5    0.9: 7.0
    quark                int4, nvfp4      0.33: 7.0   0.33: 7.5
    torchao                               7.5; int4 8.0, fp8 of both operands 8.9
    fbgemm_fp8                            8.0, and since 0.14 by `--allow-deprecated-quantization` alone
    bitsandbytes                          7.0 up to 0.27

Below the first version of a line, and behind the last, the method is not loaded at all.

Sources:
    vLLM 0.8.5 to 0.33 `model_executor/layers/quantization/` (`__init__.py`: the methods of a version;
    `get_min_capability` of each config and, in `compressed_tensors/schemes/`, of each scheme; `fp8.py`: Marlin for
    blocks and experts since 0.9), `config/vllm.py` (`_get_quantization_config`, which raises); issue 17581 (blocks on
    8.6 in 0.8.5).
    gptq: pull requests 38288 (0.22: Marlin alone, which needs 7.5) and 54809 (no order of activations).
    auto-round: pull request 17850 (0.9). quark: pull requests 16943 (MXFP4, 0.9) and 48606 (int4, after 0.28); blocks,
    int4 and nvfp4 are not looked for in versions between.
    experts of compressed-tensors: `compressed_tensors_moe/` (`get_moe_method`, which raises; `..._wna16.py` asserts
    groups where Humming goes before Marlin: `utils/humming/priority.py`).
    int8 of both operands: docs.vllm.ai/en/latest/features/quantization/int8 (Blackwell), pull request 25935.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from packaging.version import Version

from service.engine.engines.classes import check_class
from service.engine.engines.device import ADA, AMPERE, HOPPER, TURING, Capability, Device
from service.engine.engines.platforms import DENSE_ALONE, UNRUN_SCHEMES
from service.engine.errors import RefusedStartError
from service.engine.formats.compressed_tensors import FP8_BESIDE, ROWS
from service.engine.formats.modelopt import NVFP4_ALONE
from service.engine.formats.packed import ACTIVATION_ORDER
from service.engine.formats.quantization import FBGEMM, Quantization
from service.engine.formats.scheme import ASYMMETRIC
from service.engine.formats.torch_ao import FLOAT_OF_BOTH
from service.engine.layers import Architecture

OLDEST: Final = Version("0.8")  # that stands in for those before it
EXPERTS_ALIKE: Final = Version("0.9")  # from which on experts run where dense matrices do
GROUPS_ALONE: Final = Version("0.33")  # whose kernels for integers on Hopper take groups alone, in experts
VOLTA: Final[Capability] = (7, 0)
BLACKWELL: Final[Capability] = (10, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Loading:
    """From which version on a method runs, and on which GPUs; `lowest` is None where it is no longer loaded."""

    since: str
    lowest: Capability | None
    below: Capability | None = None  # the first capability that does not run it


def _lines(*lines: tuple[str, Capability | None]) -> tuple[Loading, ...]:
    return tuple(Loading(since=since, lowest=lowest) for since, lowest in lines)


_PACKED: Final = _lines(("0.12", TURING), ("0.8", AMPERE))
_FP8: Final = _lines(("0.16", TURING), ("0.8", AMPERE))
# By method and scheme, the newest first; the empty scheme stands for every other.
LOADED: Final[Mapping[tuple[str, str], tuple[Loading, ...]]] = MappingProxyType({
    ("fp8", ""): _lines(("0.14", TURING), ("0.8", AMPERE)),
    ("fp8", "fp8-block"): _lines(("0.14", TURING), ("0.9", AMPERE), ("0.8", ADA)),
    ("fp8", "experts"): _lines(("0.14", TURING), ("0.9", AMPERE), ("0.8", ADA)),
    ("compressed-tensors", ""): _PACKED,
    ("compressed-tensors", "fp8-tensor"): _FP8,
    ("compressed-tensors", "fp8-channel"): _FP8,
    ("compressed-tensors", "fp8-block"): _lines(("0.16", TURING), ("0.11", ADA)),
    ("compressed-tensors", "int8-both"): (Loading(since="0.8", lowest=TURING, below=BLACKWELL),),
    ("compressed-tensors", "nvfp4"): _lines(("0.16", TURING), ("0.9", AMPERE)),
    ("compressed-tensors", "mxfp4"): _lines(("0.14", AMPERE)),
    ("compressed-tensors", FP8_BESIDE): (Loading(since="0.14", lowest=HOPPER, below=BLACKWELL),),
    ("compressed-tensors", "mxfp8"): _lines(("0.20", TURING)),
    ("modelopt", ""): _lines(("0.27", AMPERE), ("0.8", ADA)),
    ("modelopt", "fp8-channel"): _lines(("0.27", AMPERE), ("0.14", ADA)),
    ("modelopt", "fp8-block"): _lines(("0.27", AMPERE), ("0.14", ADA)),
    ("modelopt", "nvfp4"): _lines(("0.14", TURING), ("0.9", AMPERE), ("0.8", BLACKWELL)),
    ("modelopt", NVFP4_ALONE): _lines(("0.24", TURING)),
    ("modelopt", "mixed"): _lines(("0.24", TURING), ("0.17", ADA)),
    ("modelopt", "mxfp8"): _lines(("0.24", AMPERE)),
    ("mxfp4", ""): _lines(("0.10", AMPERE)),
    ("awq", ""): _lines(("0.8", TURING)),
    ("awq", "int8-group"): _lines(("0.14", None), ("0.8", TURING)),
    ("gptq", ""): _lines(("0.22", TURING), ("0.8", (6, 0))),
    ("gptq", ASYMMETRIC): _lines(("0.22", None), ("0.8", (6, 0))),
    ("gptq", ACTIVATION_ORDER): _lines(("0.30", None), ("0.22", TURING), ("0.8", (6, 0))),
    ("auto-round", ""): _lines(("0.22", TURING), ("0.9", (6, 0))),
    ("auto-round", "fp8-block"): _lines(("0.29", TURING)),
    ("auto-round", "mxfp8"): _lines(("0.29", TURING)),
    ("auto-round", "mxfp4"): _lines(("0.29", AMPERE)),
    ("auto-round", ASYMMETRIC): _lines(("0.22", None), ("0.9", (6, 0))),
    ("quark", ""): _lines(("0.8", ADA)),
    ("quark", "fp8-block"): _lines(("0.33", ADA)),
    ("quark", "int8-group"): _lines(("0.8", TURING)),
    ("quark", "int8-both"): (Loading(since="0.8", lowest=TURING, below=BLACKWELL),),
    ("quark", "int4-group"): _lines(("0.33", VOLTA)),
    ("quark", "mxfp4"): _lines(("0.9", VOLTA)),
    ("quark", "nvfp4"): _lines(("0.33", TURING)),
    ("torchao", ""): _lines(("0.8", TURING)),
    ("torchao", FLOAT_OF_BOTH): _lines(("0.8", ADA)),
    ("torchao", "int4-group"): _lines(("0.8", AMPERE)),
    (FBGEMM, ""): _lines(("0.8", AMPERE)),
    ("bitsandbytes", ""): _lines(("0.28", None), ("0.8", (7, 0))),
})  # fmt: skip

# Methods that a version loads only when told to, and the first that was read which does.
DEPRECATED: Final[Mapping[str, str]] = MappingProxyType({FBGEMM: "0.14"})
FORMAT: Final = "weight_format"  # at fault where the GPU is not
WEIGHTS_ALONE: Final = "a checkpoint of int8 weights alone (GPTQ-Int8, W8A16)"


def is_deprecated(stored: Quantization, version: str) -> bool:
    """Return whether a version of vLLM loads a method only when told to.

    Source: vLLM 0.14.1 to 0.33 `layers/quantization/__init__.py` (`DEPRECATED_QUANTIZATION_METHODS`).
    """
    since = DEPRECATED.get(stored.method)
    return since is not None and Version(version) >= Version(since)


def check_loading(architecture: Architecture, quantization: Quantization, device: Device, field: str) -> None:
    """Raise RefusedStartError if the engine's version has no class for a model, or does not load its checkpoint."""
    check_class(architecture.name, architecture.lacked_until, architecture.last_vllm, device)
    check_method(quantization, device, field, architecture)


def check_method(quantization: Quantization, device: Device, field: str, architecture: Architecture) -> None:
    """Raise RefusedStartError if the engine's version does not load a checkpoint's quantization, or not on this GPU.

    Args:
        quantization: how the checkpoint stores its weights.
        device: the GPU's generation and the engine's version.
        field: what the caller would change.
        architecture: the model, whose experts some methods run on fewer GPUs.
    """
    unlisted = _unlisted(device, quantization, architecture)
    if unlisted is not None:
        raise RefusedStartError(unlisted[0], field=field, accepted=unlisted[1])
    if not device.is_vllm or not quantization.method:
        return
    refusals = [
        _refusal(device, stored, architecture)
        for stored in ([each for _, each in quantization.groups if each.method] or (quantization,))
    ]
    for refusal in (*refusals, _refusal_of_experts(device, quantization, architecture)):
        if refusal is not None:
            raise RefusedStartError(refusal[0], field=(*refusal[2:], field)[0], accepted=refusal[1])


def _refusal(device: Device, stored: Quantization, architecture: Architecture) -> tuple[str, ...] | None:
    """Return why a version does not run a quantization on a GPU, and what would be accepted; None where it does.

    Where no GPU has it run, the format is at fault, which then stands behind both.

    Which of NVIDIA's GPUs run it is known; of other vendors' only from which version on it is loaded at all.
    """
    scheme = scheme_of(stored)
    what = scheme if scheme.startswith(stored.method) else f"{stored.method} {scheme}"
    version = max(Version(device.plan.version), OLDEST)
    lines = lines_of(stored, has_experts=version < EXPERTS_ALIKE and architecture.has_experts)
    line = next((line for line in lines if version >= Version(line.since)), None)
    if line is None:
        return f"{device.engine} does not load {what} yet", f"engine_version {lines[-1].since} or newer", FORMAT
    if not device.is_vllm_on_cuda:
        return None
    if line.lowest is None:
        return (
            f"{device.engine} no longer loads {what}",
            f"an engine_version below {line.since}, or another format",
            FORMAT,
        )
    if device.capability < line.lowest:
        return _on_gpus(device, what, f"from compute capability {_dotted(line.lowest)}")
    if line.below is not None and device.capability >= line.below:
        reason, accepted = _on_gpus(device, what, f"below compute capability {_dotted(line.below)}")
        return reason, f"{WEIGHTS_ALONE}, {accepted}" if scheme == "int8-both" else accepted
    return None


def _refusal_of_experts(
    device: Device, quantization: Quantization, architecture: Architecture
) -> tuple[str, str] | None:
    """Return why a version does not run how experts are stored; None where it does, and without experts."""
    is_known = device.is_vllm_on_cuda and (quantization.expert_variant or quantization.groups)
    if not is_known or not architecture.has_experts:
        return None
    last = next(index for index, layer in reversed([*enumerate(architecture.layers)]) if layer.mlp.has_experts)
    module = f"model.layers.{last}.mlp.experts.down_proj"
    stored = quantization.of(module)
    if not stored.expert_variant or stored.keeps(module):
        return None
    what = f"{stored.method} {stored.expert_variant}"
    if stored.expert_variant != ROWS:
        return f"{device.engine} does not run {what}", "another format"
    if device.generation == HOPPER[0] and Version(device.plan.version) >= GROUPS_ALONE:
        return f"{device.engine} does not run {what} on compute capability 9", "another format, or another GPU"
    return None


def _spelled(method: str, scheme: str) -> str:
    """Return a scheme with its method, which it may be called by itself.

    >>> _spelled("quark", "mxfp4"), _spelled("bitsandbytes", "bitsandbytes-4bit")
    ('quark mxfp4', 'bitsandbytes-4bit')
    """
    return scheme if scheme.startswith(method) else f"{method} {scheme}"


def _unlisted(device: Device, stored: Quantization, architecture: Architecture) -> tuple[str, str] | None:
    """Return why a GPU's platform does not load a quantization, and what it does; None where it does not refuse."""
    loads = device.loads
    if loads.methods is None or not stored.method:
        return None
    name = _listed_as(stored)
    of_dense = DENSE_ALONE.get(loads.platform, frozenset())
    of_dense = of_dense if of_dense and architecture.has_experts else frozenset()
    is_unrun = (stored.method, stored.scheme) in UNRUN_SCHEMES.get(loads.platform, frozenset())
    taken = loads.methods - of_dense
    if name in taken and not is_unrun:
        return None
    what = f"experts by {name}" if name in of_dense else _spelled(name, stored.scheme) if is_unrun else name
    refused = f"{device.engine} on {loads.platform} does not load {what}"
    return refused, f"a checkpoint by {', '.join(sorted(taken))}, or another GPU"


def _listed_as(stored: Quantization) -> str:
    """Return a method as platforms tell it apart: what ModelOpt makes has a name by scheme."""
    if stored.method != "modelopt":
        return stored.method
    if stored.mixed:
        return "modelopt mixed"
    return f"modelopt {stored.scheme}" if stored.scheme in ("nvfp4", "mxfp8") else "modelopt"


def avoids_deep_gemm(device: Device, stored: Quantization) -> bool:
    """Return whether fp8 blocks start only where vLLM is kept from DeepGEMM: it takes it, and has no kernels of it."""
    on_workstation = device.is_vllm_on_cuda and device.generation == 12
    return on_workstation and device.plan.lacks_blocks_on_workstations and "fp8-block" in stored.schemes


def lines_of(stored: Quantization, *, has_experts: bool) -> tuple[Loading, ...]:
    """Return what versions say of a quantization, the newest first."""
    scheme = "experts" if has_experts and (stored.method, "experts") in LOADED else scheme_of(stored)
    return LOADED.get((stored.method, scheme)) or LOADED[stored.method, ""]


def scheme_of(stored: Quantization) -> str:
    """Return the scheme by which versions tell kernels of one method apart."""
    if stored.mixed or stored.variant:
        return stored.variant or "mixed"
    return stored.scheme


def _on_gpus(device: Device, what: str, where: str) -> tuple[str, str]:
    return f"{device.engine} runs {what} {where}; the GPU has {device.dotted}", f"another format, or a GPU {where}"


def _dotted(capability: Capability) -> str:
    return ".".join(map(str, capability))
