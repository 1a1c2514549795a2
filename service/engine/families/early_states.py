"""Which classes of vLLM keep the states of early and middle layers, which an EAGLE-3 head reads, or hand them over.

Beside those that keep them the engine raises "Model does not support EAGLE3 interface" once the weights are loaded.
None of them did otherwise in any older version that was read, from 0.10.2 on. Classes that vLLM does not have are not
listed.

Fewer hand them on from one pipeline stage to the next, up to the head on the last one.

Sources:
    vLLM 0.33 `model_executor/models/` (classes without `SupportsEagle3`), `v1/worker/gpu_model_runner.py`
    (`_setup_eagle3_aux_hidden_state_outputs`), `v1/worker/gpu/spec_decode/eagle/eagle3_utils.py`;
    0.30 to 0.33 `supports_aux_hidden_states_over_pp` of `models/` and `model_executor/models/`.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

NAMES: Final = """
    AXK1ForCausalLM AriaForConditionalGeneration AudioFlamingo3ForConditionalGeneration BailingMoeForCausalLM
    BailingMoeV2ForCausalLM BailingMoeV2_5ForCausalLM BailingMoeV3ForCausalLM BailingMoeV3VLForConditionalGeneration
    BeeForConditionalGeneration Blip2ForConditionalGeneration BloomForCausalLM ChatGLMForConditionalGeneration
    ChatGLMModel Cohere2ForCausalLM Cohere2VisionForConditionalGeneration CohereForCausalLM DbrxForCausalLM
    DeciLMForCausalLM DeepseekOCR2ForCausalLM DeepseekOCRForCausalLM DeepseekVLV2ForCausalLM DotsOCRForCausalLM
    Eagle2_5_VLForConditionalGeneration Ernie4_5_MoeForCausalLM Ernie4_5_VLMoeForConditionalGeneration
    Exaone4ForCausalLM ExaoneForCausalLM ExaoneMoEForCausalLM ExaoneMoeForCausalLM FalconForCausalLM FalconH1ForCausalLM
    FalconMambaForCausalLM GLM4VForCausalLM GPT2LMHeadModel GPTJForCausalLM Gemma2ForCausalLM Gemma3ForCausalLM
    Gemma3ForConditionalGeneration Gemma3nForCausalLM Gemma3nForConditionalGeneration GemmaForCausalLM Glm4ForCausalLM
    Glm4MoeForCausalLM Glm4MoeLiteForCausalLM Glm4vForConditionalGeneration Glm4vMoeForConditionalGeneration
    GlmOcrForConditionalGeneration Granite4VisionForConditionalGeneration GraniteMoeHybridForCausalLM
    GraniteSpeechForConditionalGeneration GraniteSpeechPlusForConditionalGeneration H2OVLChatModel
    HCXVisionV2ForCausalLM HYV3ForCausalLM HYV4ForCausalLM HyperCLOVAXForCausalLM Idefics3ForConditionalGeneration
    InklingForCausalLM InklingForConditionalGeneration
    InternLM2ForCausalLM InternS1ForConditionalGeneration InternVLChatModel InternVLForConditionalGeneration
    IsaacForConditionalGeneration JambaForCausalLM KeyeForConditionalGeneration KeyeVL1_5ForConditionalGeneration
    KimiVLForConditionalGeneration Lfm2ForCausalLM Lfm2MoeForCausalLM Lfm2VlForConditionalGeneration
    LlavaNextForConditionalGeneration LlavaNextVideoForConditionalGeneration LlavaOnevisionForConditionalGeneration
    LongcatFlashForCausalLM Mamba2ForCausalLM MambaForCausalLM MiniCPMO MiniCPMV MixtralForCausalLM
    Molmo2ForConditionalGeneration MolmoForCausalLM MoonshotKimiaForCausalLM NVLM_D NemotronForCausalLM OPTForCausalLM
    OlmoHybridForCausalLM OlmoeForCausalLM OrionForCausalLM Ovis Ovis2_5 Ovis2_6ForCausalLM Ovis2_6_MoeForCausalLM
    PaddleOCRVLForConditionalGeneration PaliGemmaForConditionalGeneration PanguEmbeddedForCausalLM
    PanguUltraMoEForCausalLM Param2MoEForCausalLM Phi3VForCausalLM Phi4ForCausalLMV Phi4MMForCausalLM PhiMoEForCausalLM
    QianfanOCRForConditionalGeneration Qwen2AudioForConditionalGeneration Qwen2MoeForCausalLM
    Qwen2VLForConditionalGeneration Qwen2_5OmniForConditionalGeneration Qwen2_5OmniModel RForConditionalGeneration
    Rnj1ForCausalLM SarvamMoEForCausalLM SkyworkR1VChatModel SmolVLMForConditionalGeneration SolarForCausalLM
    StableLmForCausalLM Step3TextForCausalLM Step3VLForConditionalGeneration Step3p5ForCausalLM
    Step3p7ForConditionalGeneration StepVLForConditionalGeneration UltravoxModel VoxtralForConditionalGeneration
    Zamba2ForCausalLM
"""
KEEP_STATES: Final = frozenset(NAMES.split())
OVER_STAGES: Final[Mapping[str, str]] = MappingProxyType({
    name: version
    for version, names in {
        "0.30": """
            DeepseekV4ForCausalLM Ernie4_5ForCausalLM IQuestCoderForCausalLM InternLM3ForCausalLM
            KimiK3ForConditionalGeneration KimiLinearForCausalLM LLaMAForCausalLM Llama4ForCausalLM LlamaForCausalLM
            Ministral3ForCausalLM MistralForCausalLM Phi3ForCausalLM Qwen2ForCausalLM Qwen3ForCausalLM
            TeleChat2ForCausalLM TeleChat3ForCausalLM TeleFLMForCausalLM
        """,
        "0.32": "MiniMaxM3SparseForCausalLM MiniMaxM3SparseForConditionalGeneration SarvamMLAForCausalLM",
    }.items()
    for name in names.split()
})  # fmt: skip


def hands_early_states(name: str) -> bool:
    """Return whether a class hands over what an EAGLE-3 head reads.

    >>> hands_early_states("LlamaForCausalLM"), hands_early_states("MixtralForCausalLM")
    (True, False)
    """
    return name not in KEEP_STATES


def early_states_over_stages(name: str, inner: str) -> str:
    """Return since which version a class, or the language model inside, hands them on; empty where none does.

    >>> early_states_over_stages("Qwen2_5_VLForConditionalGeneration", "Qwen2ForCausalLM")
    '0.30'
    """
    return OVER_STAGES.get(name) or OVER_STAGES.get(inner, "")
