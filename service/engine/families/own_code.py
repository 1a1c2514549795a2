"""Classes whose checkpoints bring code of their own, a tokenizer or a config, that engines run only when told to.

vLLM's own tests and recipes start them with `--trust-remote-code`; without it they do not load.

Sources:
    vLLM `tests/models/registry.py` (`trust_remote_code=True`); vLLM recipes, `models/` (`base_args`), for the classes
    that the former lacks: Kimi K3, Laguna, MiMo-V2.5 and MiniMax-M3.
"""

from typing import Final

NAMES: Final = """
    AXK1ForCausalLM BailingMoeForCausalLM BailingMoeV2ForCausalLM BailingMoeV2_5ForCausalLM ChatGLMModel
    DeciLMForCausalLM DeepseekForCausalLM DeepseekV2ForCausalLM DeepseekV3ForCausalLM DotsOCRForCausalLM
    Ernie4_5_VLMoeForConditionalGeneration ExaoneForCausalLM HunYuanMoEV1ForCausalLM HyperCLOVAXForCausalLM
    IQuestCoderForCausalLM InternLM2ForCausalLM InternLM3ForCausalLM InternS1ForConditionalGeneration
    InternVLChatModel KimiK25ForConditionalGeneration KimiK3ForConditionalGeneration KimiLinearForCausalLM
    KimiVLForConditionalGeneration LagunaForCausalLM LongcatFlashForCausalLM MiMoForCausalLM
    MiMoV2FlashForCausalLM MiMoV2ForCausalLM MiniCPM3ForCausalLM MiniCPMForCausalLM MiniCPMV
    MiniMaxM2ForCausalLM MiniMaxM3SparseForConditionalGeneration NVLM_D NemotronHForCausalLM OrionForCausalLM
    Ovis2_5 Phi3VForCausalLM Phi4MMForCausalLM PhiMoEForCausalLM Plamo3ForCausalLM SarvamMLAForCausalLM
    SarvamMoEForCausalLM SolarForCausalLM Step3TextForCausalLM Step3VLForConditionalGeneration
    TeleChat2ForCausalLM
"""
BRING_CODE: Final = frozenset(NAMES.split())


def brings_code(name: str) -> bool:
    """Return whether checkpoints of a class bring code of their own.

    >>> brings_code("LlamaForCausalLM"), brings_code("KimiK25ForConditionalGeneration")
    (False, True)
    """
    return name in BRING_CODE
