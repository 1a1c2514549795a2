"""What vLLM refuses by the class of a model alone: classes that a version no longer has, and those without stages.

Sources:
    vLLM 0.33 `model_executor/models/registry.py` (`_PREVIOUSLY_SUPPORTED_MODELS`: the last version of each), and
    `interfaces.py` (`SupportsPP`) with the bases of each class; "Pipeline parallelism is not supported for this model".
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from packaging.version import Version

from service.engine.engines.device import Device
from service.engine.errors import RefusedStartError

LAST_VERSIONS: Final[Mapping[str, str]] = MappingProxyType({"BambaForCausalLM": "0.23", "Dots1ForCausalLM": "0.23"})
WITHOUT_STAGES: Final = frozenset(
    {
        "AriaForConditionalGeneration", "Gemma3nForCausalLM", "Gemma3nForConditionalGeneration",
        "Idefics3ForConditionalGeneration", "Mamba2ForCausalLM", "NemotronH_Nano_Omni_Reasoning_V3",
        "NemotronH_Nano_VL_V2", "NemotronH_Omni_Reasoning_V3", "NemotronH_Super_Omni_Reasoning_V3",
        "PaddleOCRVLForConditionalGeneration", "Phi4MMForCausalLM", "SmolVLMForConditionalGeneration",
        "Zamba2ForCausalLM",
    }
)  # fmt: skip


def check_class(name: str, device: Device) -> None:
    """Raise RefusedStartError if the engine's version no longer has a model's class."""
    last = LAST_VERSIONS.get(name)
    if last is None or not device.is_vllm_on_cuda or Version(device.plan.version) <= Version(last):
        return
    raise RefusedStartError(
        f"{device.engine} no longer has {name}, which vLLM had until {last}",
        field="engine_version",
        accepted=f"{last}, or older",
    )
