"""The newest version of vLLM that is known to lack a class: before it has one, nothing says how it serves the model.

A class stands at the last of these versions whose registry does not name it; which of the versions up to the next one
brought it is not known, so those are not refused: 0.8.5, 0.9.2, 0.10.2, 0.11.0, 0.11.2, 0.12.0, 0.13.0, 0.14.1, 0.15.1,
0.16.0, 0.17.1, 0.18.0, 0.19.1, 0.20.2, and the last patch of each release from 0.22 to 0.33.

Source:
    vLLM `model_executor/models/registry.py` of these versions.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

LACKED: Final[Mapping[str, str]] = MappingProxyType({
    "0.8.5": """
        Dots1ForCausalLM Ernie4_5_MoeForCausalLM FalconH1ForCausalLM Gemma3nForConditionalGeneration
        Glm4vForConditionalGeneration GraniteMoeHybridForCausalLM HunYuanMoEV1ForCausalLM
        KeyeForConditionalGeneration MiMoForCausalLM NemotronHForCausalLM Ovis Qwen2_5OmniForConditionalGeneration
    """,
    "0.9.2": """
        ApertusForCausalLM ArceeForCausalLM BailingMoeForCausalLM Cohere2VisionForConditionalGeneration
        Ernie4_5ForCausalLM Ernie4_5_VLMoeForConditionalGeneration Exaone4ForCausalLM Gemma3nForCausalLM
        Glm4MoeForCausalLM Glm4vMoeForConditionalGeneration GptOssForCausalLM HunYuanDenseV1ForCausalLM
        InternS1ForConditionalGeneration InternVLForConditionalGeneration KeyeVL1_5ForConditionalGeneration
        Lfm2ForCausalLM Llama4ForCausalLM Ovis2_5 Qwen3NextForCausalLM RForConditionalGeneration SeedOssForCausalLM
        SmolLM3ForCausalLM Step3TextForCausalLM Step3VLForConditionalGeneration
    """,
    "0.10.2": """
        BailingMoeV2ForCausalLM CwmForCausalLM DeepseekV32ForCausalLM DotsOCRForCausalLM LongcatFlashForCausalLM
        NemotronH_Nano_VL_V2 Olmo3ForCausalLM Qwen3VLForConditionalGeneration Qwen3VLMoeForConditionalGeneration
    """,
    "0.11.0": """
        AfmoeForCausalLM BeeForConditionalGeneration DeepseekOCRForCausalLM FlexOlmoForCausalLM
        KimiLinearForCausalLM Lfm2MoeForCausalLM LightOnOCRForConditionalGeneration MiniMaxM2ForCausalLM
        PaddleOCRVLForConditionalGeneration PanguEmbeddedForCausalLM PanguUltraMoEForCausalLM
        Qwen3OmniMoeForConditionalGeneration
    """,
    "0.11.2": """
        MistralLarge3ForCausalLM OpenCUAForConditionalGeneration Plamo3ForCausalLM
    """,
    "0.12.0": """
        AudioFlamingo3ForConditionalGeneration Jais2ForCausalLM
    """,
    "0.13.0": """
        ExaoneMoEForCausalLM IQuestCoderForCausalLM Lfm2VlForConditionalGeneration MiMoV2FlashForCausalLM
    """,
    "0.14.1": """
        Eagle2_5_VLForConditionalGeneration Glm4MoeLiteForCausalLM KimiK25ForConditionalGeneration
        Step3p5ForCausalLM
    """,
    "0.15.1": """
        GlmMoeDsaForCausalLM GlmOcrForConditionalGeneration
    """,
    "0.16.0": """
        AXK1ForCausalLM BailingMoeV2_5ForCausalLM Ovis2_6ForCausalLM Ovis2_6_MoeForCausalLM
        Qwen3_5ForConditionalGeneration Qwen3_5MoeForConditionalGeneration
    """,
    "0.17.1": """
        HCXVisionV2ForCausalLM HyperCLOVAXForCausalLM OlmoHybridForCausalLM SarvamMLAForCausalLM
        SarvamMoEForCausalLM
    """,
    "0.18.0": """
        Gemma4ForCausalLM Gemma4ForConditionalGeneration
    """,
    "0.19.1": """
        DeepseekV4ForCausalLM Exaone4_5_ForConditionalGeneration HYV3ForCausalLM Ministral3ForCausalLM
        NemotronH_Nano_Omni_Reasoning_V3 NemotronH_Super_Omni_Reasoning_V3 Param2MoEForCausalLM TeleChat3ForCausalLM
    """,
    "0.20.2": """
        Cohere2MoeForCausalLM LagunaForCausalLM MiMoV2ForCausalLM MiniCPMV4_6ForConditionalGeneration
        QianfanOCRForConditionalGeneration
    """,
    "0.22.0": """
        Gemma4UnifiedForConditionalGeneration MellumForCausalLM Step3p7ForConditionalGeneration
    """,
    "0.23.0": """
        MiniMaxM3SparseForCausalLM MiniMaxM3SparseForConditionalGeneration
    """,
    "0.26.0": """
        ExaoneMoeForCausalLM KimiK3ForConditionalGeneration Qwen3_5ForCausalLM Qwen3_5MoeForCausalLM
        VaultGemmaForCausalLM
    """,
    "0.27.1": """
        MuseGlimmerForCausalLM MuseGlimmerForConditionalGeneration
    """,
    "0.28.0": """
        GraniteMoeSWAForCausalLM GraniteSWAForCausalLM HYV4ForCausalLM NemotronH_Omni_Reasoning_V3
    """,
    "0.32.0": """
        Kolibri1ForCausalLM
    """,
})  # fmt: skip
LACKED_UNTIL: Final[Mapping[str, str]] = MappingProxyType(
    {name: version for version, names in LACKED.items() for name in names.split()}
)


def lacked_until(name: str) -> str:
    """Return the newest version that is known to lack a class; empty where all that are planned have it.

    >>> lacked_until("Qwen3NextForCausalLM"), lacked_until("LlamaForCausalLM")
    ('0.9.2', '')
    """
    return LACKED_UNTIL.get(name, "")
