"""Classes whose checkpoints bring code of their own, a tokenizer or a config, that engines run only when told to.

vLLM's own tests and recipes start them with `--trust-remote-code`; without it they do not load.

Sources:
    vLLM `tests/models/registry.py` (`trust_remote_code=True`); vLLM recipes, `models/` (`base_args`), for the classes
    that the former lacks: Kimi K3, Laguna, MiMo-V2.5 and MiniMax-M3.
"""

from typing import Final

NAMES: Final = """
    AXK1ForCausalLM AquilaForCausalLM AquilaModel ArcticForCausalLM BaiChuanForCausalLM BaichuanForCausalLM
    BailingMoeForCausalLM BailingMoeV2ForCausalLM BailingMoeV2_5ForCausalLM BeeForConditionalGeneration
    ChatGLMForConditionalGeneration ChatGLMModel DeciLMForCausalLM DeepseekForCausalLM DeepseekV2ForCausalLM
    DeepseekV3ForCausalLM DotsOCRForCausalLM Eagle2_5_VLForConditionalGeneration Ernie4_5_VLMoeForConditionalGeneration
    ExaoneForCausalLM GLM4VForCausalLM Grok1ForCausalLM Grok1ModelForCausalLM H2OVLChatModel HCXVisionV2ForCausalLM
    HunYuanMoEV1ForCausalLM HyperCLOVAXForCausalLM IQuestCoderForCausalLM InternLM2ForCausalLM InternLM3ForCausalLM
    InternLMForCausalLM InternS1ForConditionalGeneration InternVLChatModel IsaacForConditionalGeneration
    KeyeForConditionalGeneration KeyeVL1_5ForConditionalGeneration KimiK25ForConditionalGeneration
    KimiK3ForConditionalGeneration KimiLinearForCausalLM KimiVLForConditionalGeneration LagunaForCausalLM
    LongcatFlashForCausalLM MiMoForCausalLM MiMoV2FlashForCausalLM MiMoV2ForCausalLM MiMoV2OmniForCausalLM
    MiniCPM3ForCausalLM
    MiniCPMForCausalLM MiniCPMO MiniCPMV MiniMaxM1ForCausalLM MiniMaxM2ForCausalLM
    MiniMaxM3SparseForConditionalGeneration MiniMaxText01ForCausalLM Molmo2ForConditionalGeneration MolmoForCausalLM
    MoonshotKimiaForCausalLM NVLM_D NemotronHForCausalLM NemotronHPuzzleForCausalLM NemotronH_Nano_VL_V2
    OpenCUAForConditionalGeneration OrionForCausalLM Ovis Ovis2_5 Ovis2_6ForCausalLM Ovis2_6_MoeForCausalLM
    PaddleOCRVLForConditionalGeneration PanguEmbeddedForCausalLM PanguUltraMoEForCausalLM Phi3VForCausalLM
    Phi4ForCausalLMV Phi4MMForCausalLM PhiMoEForCausalLM Plamo3ForCausalLM QWenLMHeadModel RForConditionalGeneration
    SarvamMLAForCausalLM SarvamMoEForCausalLM SkyworkR1VChatModel SolarForCausalLM Step1ForCausalLM Step3TextForCausalLM
    Step3VLForConditionalGeneration StepVLForConditionalGeneration TeleChat2ForCausalLM TeleChatForCausalLM
    TeleFLMForCausalLM UltravoxModel XverseForCausalLM
"""
BRING_CODE: Final = frozenset(NAMES.split())


def brings_code(name: str) -> bool:
    """Return whether checkpoints of a class bring code of their own.

    >>> brings_code("LlamaForCausalLM"), brings_code("KimiK25ForConditionalGeneration")
    (False, True)
    """
    return name in BRING_CODE
