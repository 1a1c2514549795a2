"""What engines refuse by the class of a model alone: classes that a version does not have yet, or no longer.

Source:
    vLLM 0.33 `model_executor/models/registry.py` (`_PREVIOUSLY_SUPPORTED_MODELS`: the last version of each); the
    same file of 0.8.0 to 0.32 (`engine/families/since.py`: the first, and those of SGLang and TensorRT-LLM).
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Final, get_args

from packaging.version import Version

from service.engine.engines.device import Device
from service.engine.errors import RefusedStartError
from service.engine.inputs import EngineName

HOSTED_SINCE: Final = "0.30"  # tables of n-grams lie in the host's memory, unless turned off
REFUSING: Final[AbstractSet[EngineName]] = frozenset({"vllm", "sglang"})  # others may serve a class in other ways


def check_class(name: str, lacked_until: Mapping[EngineName, str], last: str, device: Device) -> None:
    """Raise RefusedStartError if the engine's version does not have a model's class yet, or no longer.

    Args:
        name: the class.
        lacked_until: the newest version of each engine that is known to lack it.
        last: the last version of vLLM that has it; empty if the newest does.
        device: the engine's version.
    """
    lacking = lacked_until.get(device.name)
    if lacking is not None and device.name in REFUSING and lacks_class(lacking, device.release):
        raise RefusedStartError(
            f"{device.title} {device.release} has no {name} yet: {lacking} still lacks it",
            field="engine_version",
            accepted=f"newer than {lacking}",
        )
    version = Version(device.plan.version)
    if not device.is_vllm:
        return
    if last and version > Version(last):
        raise RefusedStartError(
            f"{device.engine} no longer has {name}, which vLLM had until {last}",
            field="engine_version",
            accepted=f"{last}, or older",
        )


def check_hosted(name: str, hosted_parameters: int, device: Device, *, is_unified: bool) -> None:
    """Raise RefusedStartError where it is not known that a model's tables lie in the host's memory, beside the GPUs'.

    Source: vLLM 0.30 `config/engram.py` (`_default_cpu_offload`); 0.29 `models/qwen4_exp/nvidia/ple_layer.py` has none.

    Args:
        name: the class.
        hosted_parameters: of its tables.
        device: the engine's version.
        is_unified: the GPU and the host draw on one memory. [yes or no]
    """
    where = f"the tables of n-grams of {name}, {hosted_parameters:,} parameters,"
    if not device.is_vllm:
        raise RefusedStartError(f"where {device.title} keeps {where} has no rule here", field="engine", accepted="vllm")
    if Version(device.plan.version) < Version(HOSTED_SINCE):
        raise RefusedStartError(
            f"{device.engine} keeps {where} on its GPUs, which has no rule here",
            field="engine_version",
            accepted=f"{HOSTED_SINCE}, or newer",
        )
    if is_unified:
        raise RefusedStartError(
            f"{where} lie in the host's memory, which is this GPU's own: what is left of it has no rule here",
            field="gpu",
            accepted="a GPU with memory of its own",
        )


def check_convolved(name: str, device: Device) -> None:
    """Raise RefusedStartError where it is not known how an engine keeps what short convolutions take in.

    Args:
        name: the class.
        device: tells the engine.
    """
    if not device.is_vllm:
        raise RefusedStartError(
            f"how {device.title} keeps what the convolutions of {name} take in has no rule here",
            field="engine",
            accepted="vllm",
        )


def check_made_at_load(what: str, weight_format: str, field: str) -> None:
    """Raise RefusedStartError for what is made of a checkpoint, a part of which is not made so.

    Sources: vLLM 0.33 `models/qwen4_exp/common/ngram_embedding.py` ("only supports serialized FP8 checkpoints");
        `models/inkling/nvidia/moe.py` (`load_expert_weight`, which copies past the loaders that would make it).

    Args:
        what: that part, and of which class.
        weight_format: what was to be made.
        field: what the caller would change.
    """
    raise RefusedStartError(
        f"vLLM makes no {weight_format} of the {what} while it loads",
        field=field,
        accepted="the checkpoint as it is, or model=OWNER/REPOSITORY of one that is stored so",
    )


def lacks_class(lacking: str, release: str) -> bool:
    """Return whether a release is none newer than one that lacks a class; an unstated one is the newest.

    >>> lacks_class("0.10.0", "0.9.2"), lacks_class("0.10.0", "0.10.1.1"), lacks_class("0.10.0", "")
    (True, False, False)
    """
    return bool(release) and Version(release) <= Version(lacking)


def is_within(release: str, since: str, until: str) -> bool:
    """Return whether a release is not before one version and before another; an unstated one is the newest.

    >>> is_within("0.5.17", "0.5.17", "0.5.18"), is_within("", "0.5.17", "0.5.18"), is_within("", "0.5.20", "")
    (True, False, True)
    """
    if not release:
        return not until
    version = Version(release)
    return (not since or version >= Version(since)) and (not until or version < Version(until))


def check_served(name: str, lacked_by: AbstractSet[EngineName], device: Device) -> None:
    """Raise RefusedStartError if SGLang has no class for a model.

    TensorRT-LLM may serve one that its usual backend lacks in other ways (AutoDeploy, engines built ahead): there only
    the command is withheld.

    Args:
        name: the class.
        lacked_by: the engines that have none.
        device: tells the engine.
    """
    if device.name == "sglang" and device.name in lacked_by:
        others = (engine for engine in get_args(EngineName) if engine not in lacked_by)
        raise RefusedStartError(f"SGLang has no {name}", field="engine", accepted=" or ".join(others))
