"""What vLLM refuses by the class of a model alone: classes that its version no longer has.

Source:
    vLLM 0.33 `model_executor/models/registry.py` (`_PREVIOUSLY_SUPPORTED_MODELS`: the last version of each).
"""

from packaging.version import Version

from service.engine.engines.device import Device
from service.engine.errors import RefusedStartError


def check_class(name: str, last: str, device: Device) -> None:
    """Raise RefusedStartError if the engine's version no longer has a model's class.

    Args:
        name: the class.
        last: the last version that has it; empty if the newest does.
        device: the engine's version.
    """
    if not last or not device.is_vllm_on_cuda or Version(device.plan.version) <= Version(last):
        return
    raise RefusedStartError(
        f"{device.engine} no longer has {name}, which vLLM had until {last}",
        field="engine_version",
        accepted=f"{last}, or older",
    )
