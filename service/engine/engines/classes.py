"""What engines refuse by the class of a model alone: classes that a version does not have yet, or no longer.

Source:
    vLLM 0.33 `model_executor/models/registry.py` (`_PREVIOUSLY_SUPPORTED_MODELS`: the last version of each); the
    same file of 0.8.5 to 0.32 (`engine/families/since.py`: the first).
"""

from collections.abc import Set as AbstractSet
from typing import get_args

from packaging.version import Version

from service.engine.engines.device import Device
from service.engine.errors import RefusedStartError
from service.engine.inputs import EngineName


def check_class(name: str, lacked_until: str, last: str, device: Device) -> None:
    """Raise RefusedStartError if the engine's version does not have a model's class yet, or no longer.

    Args:
        name: the class.
        lacked_until: the newest version that is known to lack it; empty if all have it.
        last: the last version that has it; empty if the newest does.
        device: the engine's version.
    """
    if not device.is_vllm:
        return
    version = Version(device.plan.version)
    if lacked_until and version <= Version(lacked_until):
        raise RefusedStartError(
            f"{device.engine} has no {name} yet: {lacked_until} still lacks it",
            field="engine_version",
            accepted=f"newer than {lacked_until}",
        )
    if last and version > Version(last):
        raise RefusedStartError(
            f"{device.engine} no longer has {name}, which vLLM had until {last}",
            field="engine_version",
            accepted=f"{last}, or older",
        )


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
