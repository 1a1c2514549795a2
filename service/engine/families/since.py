"""The newest version of each engine that is known to lack a class: before it has one, nothing says how it serves it.

A class stands at the last version read that does not name it; which version up to the next one read brought it is not
known, so those are not refused. SGLang from 0.4.7 on runs a class that it lacks by that of the Transformers library: it
stands where neither it nor the release of the library that it pins has the class, with attention to be exchanged.

Sources:
    vLLM `model_executor/models/registry.py` of 51 releases, 0.6.3.post1 to 0.33.0 (SolarOpenForCausalLM by
    Transformers 5 alone, which 0.18.1 does not take yet); SGLang `srt/models/` (`EntryClass`) and `transformers==`
    of 31 releases, 0.4.3.post4 to 0.5.23; TensorRT-LLM docs/source/release-notes.md, the release pages of v1.0.0rc3
    to v1.3.0rc20 and "Supported Models" of 1.0.0 to 1.4.0rc1. Of those said to be absent from its 1.2 some only
    came to the index later.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, get_args

from service.engine.inputs import EngineName


def by_class(versions: Mapping[str, str]) -> Mapping[str, str]:
    """Return the version of each class, from names by version."""
    return MappingProxyType({name: version for version, names in versions.items() for name in names.split()})


VLLM_LACKED: Final[Mapping[str, str]] = by_class({
    "0.6.3.post1": """
        AriaForConditionalGeneration Cohere2ForCausalLM FalconMambaForCausalLM GlmForCausalLM H2OVLChatModel
        Idefics3ForConditionalGeneration Olmo2ForCausalLM Qwen2AudioForConditionalGeneration TeleChat2ForCausalLM
    """,
    "0.6.5": "DeepseekV3ForCausalLM",
    "0.6.6.post1": "DeepseekVLV2ForCausalLM InternLM3ForCausalLM",
    "0.7.0": "BambaForCausalLM GLM4VForCausalLM Mamba2ForCausalLM MiniCPMO Qwen2_5_VLForConditionalGeneration",
    "0.7.3": """
        Gemma3ForCausalLM Gemma3ForConditionalGeneration GraniteMoeSharedForCausalLM Grok1ModelForCausalLM
        Phi4MMForCausalLM Zamba2ForCausalLM
    """,
    "0.8.1": """
        TeleFLMForCausalLM
    """,
    "0.8.2": """
        Llama4ForConditionalGeneration MiniMaxText01ForCausalLM Mistral3ForConditionalGeneration
        SkyworkR1VChatModel
    """,
    "0.8.3": """
        ChatGLMForConditionalGeneration Glm4ForCausalLM Qwen3ForCausalLM Qwen3MoeForCausalLM
        SmolVLMForConditionalGeneration
    """,
    "0.8.4": """
        KimiVLForConditionalGeneration Qwen2_5OmniModel
    """,
    "0.8.5.post1": """
        FalconH1ForCausalLM GraniteMoeHybridForCausalLM MiMoForCausalLM Ovis Qwen2_5OmniForConditionalGeneration
    """,
    "0.9.0.1": """
        NemotronHForCausalLM
    """,
    "0.9.1": """
        Dots1ForCausalLM Ernie4_5_MoeForCausalLM Gemma3nForConditionalGeneration Glm4vForConditionalGeneration
        HunYuanMoEV1ForCausalLM KeyeForConditionalGeneration MiniMaxM1ForCausalLM
    """,
    "0.9.2": """
        ArceeForCausalLM BailingMoeForCausalLM Exaone4ForCausalLM Glm4MoeForCausalLM HunYuanDenseV1ForCausalLM
        MiniMaxForCausalLM VoxtralForConditionalGeneration
    """,
    "0.10.0": """
        Cohere2VisionForConditionalGeneration Ernie4_5ForCausalLM Gemma3nForCausalLM
        Glm4vMoeForConditionalGeneration GptOssForCausalLM InternS1ForConditionalGeneration Llama4ForCausalLM
        SmolLM3ForCausalLM Step3TextForCausalLM Step3VLForConditionalGeneration
    """,
    "0.10.1.1": """
        ApertusForCausalLM Ernie4_5_VLMoeForConditionalGeneration InternVLForConditionalGeneration
        KeyeVL1_5ForConditionalGeneration Lfm2ForCausalLM Ovis2_5 Qwen3NextForCausalLM RForConditionalGeneration
        SeedOssForCausalLM
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
        MistralLarge3ForCausalLM OpenCUAForConditionalGeneration Plamo3ForCausalLM TeleChatForCausalLM
    """,
    "0.12.0": """
        AudioFlamingo3ForConditionalGeneration Jais2ForCausalLM
    """,
    "0.13.0": """
        ExaoneMoEForCausalLM Grok1ForCausalLM IQuestCoderForCausalLM IsaacForConditionalGeneration
        Lfm2VlForConditionalGeneration MiMoV2FlashForCausalLM
    """,
    "0.14.1": """
        Eagle2_5_VLForConditionalGeneration Glm4MoeLiteForCausalLM GraniteSpeechPlusForConditionalGeneration
        KimiK25ForConditionalGeneration Molmo2ForConditionalGeneration MoonshotKimiaForCausalLM Phi4ForCausalLMV
        Step1ForCausalLM Step3p5ForCausalLM StepVLForConditionalGeneration
    """,
    "0.15.1": """
        DeepseekOCR2ForCausalLM GlmMoeDsaForCausalLM GlmOcrForConditionalGeneration NemotronHPuzzleForCausalLM
    """,
    "0.16.0": """
        AXK1ForCausalLM BailingMoeV2_5ForCausalLM Ovis2_6ForCausalLM Ovis2_6_MoeForCausalLM
        Qwen3_5ForConditionalGeneration Qwen3_5MoeForConditionalGeneration
    """,
    "0.17.1": """
        HCXVisionV2ForCausalLM HyperCLOVAXForCausalLM OlmoHybridForCausalLM SarvamMLAForCausalLM
        SarvamMoEForCausalLM
    """,
    "0.18.1": """
        Gemma4ForCausalLM Gemma4ForConditionalGeneration SolarOpenForCausalLM
    """,
    "0.19.1": """
        DeepseekV4ForCausalLM Exaone4_5_ForConditionalGeneration Granite4VisionForConditionalGeneration
        HYV3ForCausalLM Ministral3ForCausalLM NemotronH_Nano_Omni_Reasoning_V3 NemotronH_Super_Omni_Reasoning_V3
        Param2MoEForCausalLM Rnj1ForCausalLM TeleChat3ForCausalLM
    """,
    "0.20.2": """
        Cohere2MoeForCausalLM LagunaForCausalLM MiMoV2ForCausalLM QianfanOCRForConditionalGeneration
    """,
    "0.21.0": """
        InternS2PreviewForConditionalGeneration MiniCPMV4_6ForConditionalGeneration
    """,
    "0.22.0": """
        MellumForCausalLM
    """,
    "0.22.1": """
        Gemma4UnifiedForConditionalGeneration Step3p7ForConditionalGeneration
    """,
    "0.23.0": """
        MiniMaxM3SparseForCausalLM MiniMaxM3SparseForConditionalGeneration
    """,
    "0.25.1": """
        InklingForCausalLM InklingForConditionalGeneration
    """,
    "0.26.0": """
        ExaoneMoeForCausalLM KimiK3ForConditionalGeneration Qwen3_5ForCausalLM Qwen3_5MoeForCausalLM
        VaultGemmaForCausalLM
    """,
    "0.27.1": """
        BailingMoeV3ForCausalLM MuseGlimmerForCausalLM MuseGlimmerForConditionalGeneration
    """,
    "0.28.0": """
        GraniteMoeSWAForCausalLM GraniteSWAForCausalLM HYV4ForCausalLM NemotronH_Omni_Reasoning_V3
        Qwen4ExpForCausalLM Qwen4ExpForConditionalGeneration
    """,
    "0.29.0": """
        BailingMoeV3VLForConditionalGeneration Glm5NextForCausalLM Glm5NextForConditionalGeneration
    """,
    "0.31.0": """
        MiniCPMV4_7ForConditionalGeneration
    """,
    "0.32.0": """
        BeamForCausalLM Kolibri1ForCausalLM MiniCPMOcrForConditionalGeneration
    """,
})  # fmt: skip
SGLANG_LACKED: Final[Mapping[str, str]] = by_class({
    "0.4.3.post4": """
        DeepseekVLV2ForCausalLM Gemma3ForCausalLM Gemma3ForConditionalGeneration MiniCPMO
    """,
    "0.4.4.post4": """
        Llama4ForCausalLM Llama4ForConditionalGeneration Qwen3ForCausalLM Qwen3MoeForCausalLM
    """,
    "0.4.5.post3": """
        InternVLChatModel KimiVLForConditionalGeneration LlavaForConditionalGeneration MiMoForCausalLM
        Mistral3ForConditionalGeneration
    """,
    "0.4.6.post5": """
        FuyuForCausalLM GPTNeoXForCausalLM Glm4ForCausalLM GlmForCausalLM HeliumForCausalLM
        Idefics3ForConditionalGeneration InternVLForConditionalGeneration LlavaNextForConditionalGeneration
        LlavaNextVideoForConditionalGeneration LlavaOnevisionForConditionalGeneration OPTForCausalLM
        PaliGemmaForConditionalGeneration Phi4MMForCausalLM PhiForCausalLM SmolVLMForConditionalGeneration
        Starcoder2ForCausalLM
    """,
    "0.4.7.post1": """
        Gemma3nForCausalLM Gemma3nForConditionalGeneration HunYuanMoEV1ForCausalLM
    """,
    "0.4.8.post1": """
        ArceeForCausalLM AriaForConditionalGeneration Dots1ForCausalLM Ernie4_5ForCausalLM
        Ernie4_5_MoeForCausalLM Exaone4ForCausalLM Glm4MoeForCausalLM Glm4vForConditionalGeneration
        GraniteMoeForCausalLM HunYuanDenseV1ForCausalLM InternS1ForConditionalGeneration Lfm2ForCausalLM
        MiniMaxForCausalLM PersimmonForCausalLM PhiMoEForCausalLM Qwen2AudioForConditionalGeneration
        Qwen2_5OmniForConditionalGeneration SmolLM3ForCausalLM
    """,
    "0.4.9.post6": """
        Step3VLForConditionalGeneration
    """,
    "0.4.10.post2": """
        BailingMoeForCausalLM Cohere2VisionForConditionalGeneration DeciLMForCausalLM
        Glm4vMoeForConditionalGeneration GptOssForCausalLM
    """,
    "0.5.1.post3": """
        ApertusForCausalLM LongcatFlashForCausalLM Qwen3NextForCausalLM SeedOssForCausalLM
    """,
    "0.5.2": """
        BailingMoeV2ForCausalLM DeepseekV32ForCausalLM DotsOCRForCausalLM FalconH1ForCausalLM
        FlexOlmoForCausalLM Lfm2VlForConditionalGeneration MinistralForCausalLM NemotronHForCausalLM
        Olmo3ForCausalLM Qwen3OmniMoeForConditionalGeneration Qwen3VLForConditionalGeneration
        Qwen3VLMoeForConditionalGeneration SolarForCausalLM VaultGemmaForCausalLM
    """,
    "0.5.3.post3": """
        DeepseekOCRForCausalLM KimiLinearForCausalLM MiniMaxM2ForCausalLM
    """,
    "0.5.4.post3": """
        OrionForCausalLM TeleFLMForCausalLM
    """,
    "0.5.5.post3": """
        Ministral3ForCausalLM MistralLarge3ForCausalLM NemotronH_Nano_VL_V2 PaddleOCRVLForConditionalGeneration
        PixtralForConditionalGeneration
    """,
    "0.5.6.post2": """
        MiMoV2FlashForCausalLM
    """,
    "0.5.7": """
        AfmoeForCausalLM Glm4MoeLiteForCausalLM IQuestCoderForCausalLM
    """,
    "0.5.8.post1": """
        BailingMoeV2_5ForCausalLM DeepseekOCR2ForCausalLM Ernie4_5_VLMoeForConditionalGeneration
        ExaoneMoEForCausalLM GPTJForCausalLM GlmMoeDsaForCausalLM GlmOcrForConditionalGeneration
        GraniteMoeHybridForCausalLM KimiK25ForConditionalGeneration Lfm2MoeForCausalLM
        LightOnOCRForConditionalGeneration Qwen3_5ForConditionalGeneration Qwen3_5MoeForConditionalGeneration
        Step3p5ForCausalLM StepVLForConditionalGeneration
    """,
    "0.5.9": """
        CwmForCausalLM ExaoneMoeForCausalLM GraniteMoeSharedForCausalLM Jais2ForCausalLM SarvamMLAForCausalLM
        SarvamMoEForCausalLM SolarOpenForCausalLM
    """,
    "0.5.10.post1": """
        AudioFlamingo3ForConditionalGeneration Gemma4ForCausalLM Gemma4ForConditionalGeneration HYV3ForCausalLM
        MiMoV2ForCausalLM Mistral4ForCausalLM NemotronH_Nano_Omni_Reasoning_V3
        QianfanOCRForConditionalGeneration
    """,
    "0.5.11": """
        DeepseekV4ForCausalLM InternS2PreviewForConditionalGeneration LagunaForCausalLM
        MiniCPMV4_6ForConditionalGeneration
    """,
    "0.5.12.post1": """
        Cohere2MoeForCausalLM Exaone4_5_ForConditionalGeneration Gemma4UnifiedForConditionalGeneration
        Granite4VisionForConditionalGeneration NemotronHPuzzleForCausalLM Step3p7ForConditionalGeneration
    """,
    "0.5.14": """
        HyperCLOVAXForCausalLM MellumForCausalLM MiniMaxM3SparseForConditionalGeneration
    """,
    "0.5.15.post1": """
        MiniMaxM3SparseForCausalLM
    """,
    "0.5.16": """
        KimiK3ForConditionalGeneration Qwen3_5ForCausalLM Qwen3_5MoeForCausalLM
    """,
    "0.5.17": """
        MuseGlimmerForCausalLM MuseGlimmerForConditionalGeneration
    """,
    "0.5.18": """
        BailingMoeV3ForCausalLM GraniteMoeSWAForCausalLM GraniteSWAForCausalLM
    """,
    "0.5.19": """
        FalconMambaForCausalLM HYV4ForCausalLM Mamba2ForCausalLM MambaForCausalLM NemotronH_Omni_Reasoning_V3
    """,
    "0.5.20": """
        BailingMoeV3VLForConditionalGeneration
    """,
    "0.5.21": """
        AXK1ForCausalLM NemotronForCausalLM
    """,
})  # fmt: skip
TENSORRT_LLM_LACKED: Final[Mapping[str, str]] = by_class({
    "1.0": """
        GptOssForCausalLM HunYuanDenseV1ForCausalLM HunYuanMoEV1ForCausalLM SeedOssForCausalLM
    """,
    "1.1": """
        DeepseekV32ForCausalLM ExaoneMoEForCausalLM Glm4MoeForCausalLM NemotronH_Nano_VL_V2 Qwen3NextForCausalLM
        Qwen3VLForConditionalGeneration Qwen3VLMoeForConditionalGeneration Starcoder2ForCausalLM
    """,
    "1.2": """
        AfmoeForCausalLM ApertusForCausalLM ChatGLMForConditionalGeneration ChatGLMModel Cohere2ForCausalLM
        Cohere2VisionForConditionalGeneration DeepseekV4ForCausalLM Exaone4_5_ForConditionalGeneration
        Gemma2ForCausalLM Gemma4ForCausalLM Gemma4ForConditionalGeneration Gemma4UnifiedForConditionalGeneration
        GlmMoeDsaForCausalLM KimiK25ForConditionalGeneration KimiK3ForConditionalGeneration
        KimiLinearForCausalLM Kolibri1ForCausalLM LagunaForCausalLM MiniCPMV4_6ForConditionalGeneration
        MiniMaxM3SparseForCausalLM MiniMaxM3SparseForConditionalGeneration NemotronH_Nano_Omni_Reasoning_V3
        NemotronH_Omni_Reasoning_V3 Qwen3_5ForCausalLM Qwen3_5ForConditionalGeneration Qwen3_5MoeForCausalLM
        Qwen3_5MoeForConditionalGeneration Step3p5ForCausalLM Step3p7ForConditionalGeneration
    """,
})  # fmt: skip
_TABLES: Final = VLLM_LACKED, SGLANG_LACKED, TENSORRT_LLM_LACKED
LACKED_UNTIL: Final[Mapping[EngineName, Mapping[str, str]]] = MappingProxyType(
    dict(zip(get_args(EngineName), _TABLES, strict=True))
)


def lacked_until(name: str) -> Mapping[EngineName, str]:
    """Return the newest version of each engine that is known to lack a class; without those that always had it.

    >>> dict(lacked_until("Qwen3NextForCausalLM")), dict(lacked_until("LlamaForCausalLM"))
    ({'vllm': '0.10.1.1', 'sglang': '0.5.1.post3', 'tensorrt-llm': '1.1'}, {})
    """
    return MappingProxyType({engine: names[name] for engine, names in LACKED_UNTIL.items() if name in names})
