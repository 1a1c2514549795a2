"""What vLLM refuses by the class of a model alone: classes that its version does not have yet, or no longer.

Source:
    vLLM 0.33 `model_executor/models/registry.py` (`_PREVIOUSLY_SUPPORTED_MODELS`: the last version of each); the
    same file of 0.8.5 to 0.32 (`engine/families/since.py`: the first).
"""

from packaging.version import Version

from service.engine.engines.device import Device
from service.engine.errors import RefusedStartError


def check_class(name: str, lacked_until: str, last: str, device: Device) -> None:
    """Raise RefusedStartError if the engine's version does not have a model's class yet, or no longer.

    Args:
        name: the class.
        lacked_until: the newest version that is known to lack it; empty if all have it.
        last: the last version that has it; empty if the newest does.
        device: the engine's version.
    """
    if not device.is_vllm_on_cuda:
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
