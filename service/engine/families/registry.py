"""The one table of architectures: class name to the rule that reads its attention."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from service.engine.config_reader import ConfigReader, is_list, text_reader, unknown_kind
from service.engine.errors import UnsupportedModelError
from service.engine.families.parts.attention import (
    Mixers,
    chatglm,
    falcon,
    full_only,
    gated_like_llama,
    gemma3n,
    gemma4,
    gpt_oss,
    laguna,
    llama4,
    mimo_v2,
    minimax_m3,
    multi_query,
    nemotron_nas,
    opt,
    patterned,
    plamo3,
    qwen,
    qwen_moe,
    step,
    step3_text,
    windowed_by_default,
    windowed_like_llama,
)
from service.engine.families.parts.compressed import compressed
from service.engine.families.parts.latent import (
    hunyuan_v4,
    kimi_linear,
    latent,
    latent_heads,
    latent_if_stated,
    latent_twice,
    sparse_latent,
)
from service.engine.families.parts.recurrent import (
    bailing_linear,
    bamba,
    falcon_h1,
    granite_hybrid,
    jamba,
    lfm2,
    mamba1,
    mamba2,
    nemotron_h,
    olmo_hybrid,
    qwen_hybrid,
    zamba2,
)

AttentionRule = Callable[[ConfigReader], Mixers]

_LIKE_LLAMA = (
    "LlamaForCausalLM",
    "LLaMAForCausalLM",
    "InternLM3ForCausalLM",
    "IQuestCoderForCausalLM",
    "TeleChat3ForCausalLM",
    "Ministral3ForCausalLM",
    "Mistral3ForConditionalGeneration",
    "GraniteForCausalLM",
    "GraniteMoeForCausalLM",
    "GraniteMoeSharedForCausalLM",
    "MinistralForCausalLM",
    "HeliumForCausalLM",
    "HunYuanDenseV1ForCausalLM",
    "SolarForCausalLM",
    "HyperCLOVAXForCausalLM",
    "ApertusForCausalLM",
    "SmolLM3ForCausalLM",
    "SeedOssForCausalLM",
    "ArceeForCausalLM",
    "Phi3ForCausalLM",
    "MixtralForCausalLM",
    "PhiMoEForCausalLM",
    "Starcoder2ForCausalLM",
    "Olmo3ForCausalLM",
    "Exaone4ForCausalLM",
    "ExaoneMoeForCausalLM",
    "ExaoneMoEForCausalLM",
    "CwmForCausalLM",
    "GraniteSWAForCausalLM",
    "GraniteMoeSWAForCausalLM",
    "Jais2ForCausalLM",
    "Kolibri1ForCausalLM",
    "MellumForCausalLM",
    "PanguEmbeddedForCausalLM",
    "TeleChat2ForCausalLM",
    "TeleFLMForCausalLM",
)
_FULL = (
    "ExaoneForCausalLM",
    "OrionForCausalLM",
    "BailingMoeForCausalLM",
    "BailingMoeV2ForCausalLM",
    "HunYuanMoEV1ForCausalLM",
    "GPT2LMHeadModel",
    "GPTJForCausalLM",
    "GPTNeoXForCausalLM",
    "BloomForCausalLM",
    "PhiForCausalLM",
    "GemmaForCausalLM",
    "Glm4ForCausalLM",
    "GlmForCausalLM",
    "Glm4MoeForCausalLM",
    "MiniMaxM2ForCausalLM",
    "MiniCPMForCausalLM",
    "InternLM2ForCausalLM",
    "StableLmForCausalLM",
    "NemotronForCausalLM",
    "OlmoForCausalLM",
    "Olmo2ForCausalLM",
    "OlmoeForCausalLM",
    "FlexOlmoForCausalLM",
    "CohereForCausalLM",
    "Ernie4_5ForCausalLM",
    "Ernie4_5_MoeForCausalLM",
    "Dots1ForCausalLM",
    "DbrxForCausalLM",
    "HYV3ForCausalLM",
    "Param2MoEForCausalLM",
    "SarvamMoEForCausalLM",
)

ARCHITECTURES: Final[Mapping[str, AttentionRule]] = MappingProxyType(
    dict.fromkeys(_LIKE_LLAMA, windowed_like_llama)
    | dict.fromkeys(_FULL, full_only)
    | {
        "MistralForCausalLM": windowed_by_default(4096),
        "Qwen2ForCausalLM": qwen,
        "Qwen3ForCausalLM": qwen,
        "MiMoForCausalLM": qwen,
        "Qwen2MoeForCausalLM": qwen_moe,
        "Qwen3MoeForCausalLM": qwen_moe,
        "Qwen3VLForConditionalGeneration": full_only,
        "Qwen3VLMoeForConditionalGeneration": full_only,
        "Gemma2ForCausalLM": patterned(2, 4096),
        "Gemma3ForCausalLM": patterned(6, 4096),
        "Gemma3ForConditionalGeneration": patterned(6, 4096),
        "Cohere2ForCausalLM": patterned(4, 4096, extra=1),
        "Cohere2MoeForCausalLM": patterned(4, 4096, extra=1),
        "GptOssForCausalLM": gpt_oss,
        "Llama4ForCausalLM": llama4,
        "Llama4ForConditionalGeneration": llama4,
        "ChatGLMModel": chatglm,
        "ChatGLMForConditionalGeneration": chatglm,
        "AfmoeForCausalLM": gated_like_llama,
        "FalconForCausalLM": falcon,
        "GPTBigCodeForCausalLM": multi_query,
        "OPTForCausalLM": opt,
        "DeciLMForCausalLM": nemotron_nas,
        "MiMoV2FlashForCausalLM": mimo_v2,
        "MiMoV2ForCausalLM": mimo_v2,
        "DeepseekForCausalLM": full_only,
        "DeepseekV2ForCausalLM": latent_if_stated,
        "DeepseekV3ForCausalLM": latent_if_stated,
        "KimiK25ForConditionalGeneration": latent,
        "KimiVLForConditionalGeneration": latent,
        "KimiLinearForCausalLM": kimi_linear,
        "KimiK3ForConditionalGeneration": kimi_linear,
        "AXK1ForCausalLM": latent,
        "Mistral4ForCausalLM": latent,
        "MiniCPM3ForCausalLM": latent_heads,
        "MistralLarge3ForCausalLM": latent,
        "PanguUltraMoEForCausalLM": latent,
        "SarvamMLAForCausalLM": latent,
        "LongcatFlashForCausalLM": latent_twice,
        "HYV4ForCausalLM": hunyuan_v4,
        "BailingMoeV2_5ForCausalLM": bailing_linear,
        "OlmoHybridForCausalLM": olmo_hybrid,
        "Step3TextForCausalLM": step3_text,
        "Plamo3ForCausalLM": plamo3,
        "VaultGemmaForCausalLM": patterned(2, 4096),
        "AriaForConditionalGeneration": full_only,
        "Ernie4_5_VLMoeForConditionalGeneration": full_only,
        "Glm4MoeLiteForCausalLM": latent,
        "DeepseekV32ForCausalLM": sparse_latent,
        "GlmMoeDsaForCausalLM": sparse_latent,
        "DeepseekV4ForCausalLM": compressed,
        "LagunaForCausalLM": laguna,
        "MuseGlimmerForCausalLM": gated_like_llama,
        "MuseGlimmerForConditionalGeneration": gated_like_llama,
        "Step3p5ForCausalLM": step,
        "Step3p7ForConditionalGeneration": step,
        "MiniMaxM3ForCausalLM": minimax_m3,
        "MiniMaxM3SparseForCausalLM": minimax_m3,
        "MiniMaxM3SparseForConditionalGeneration": minimax_m3,
        "Gemma3nForCausalLM": gemma3n,
        "Gemma3nForConditionalGeneration": gemma3n,
        "Gemma4ForCausalLM": gemma4,
        "Gemma4ForConditionalGeneration": gemma4,
        "Qwen3NextForCausalLM": qwen_hybrid,
        "Qwen3_5ForCausalLM": qwen_hybrid,
        "Qwen3_5MoeForCausalLM": qwen_hybrid,
        "Qwen3_5ForConditionalGeneration": qwen_hybrid,
        "Qwen3_5MoeForConditionalGeneration": qwen_hybrid,
        "NemotronHForCausalLM": nemotron_h,
        "GraniteMoeHybridForCausalLM": granite_hybrid,
        "FalconH1ForCausalLM": falcon_h1,
        "Zamba2ForCausalLM": zamba2,
        "BambaForCausalLM": bamba,
        "JambaForCausalLM": jamba,
        "Lfm2ForCausalLM": lfm2,
        "Lfm2MoeForCausalLM": lfm2,
        "MambaForCausalLM": mamba1,
        "FalconMambaForCausalLM": mamba1,
        "Mamba2ForCausalLM": mamba2,
    }
)

# Multimodal classes around a language model: its class, or None where `text_config` names it.
WRAPPERS: Final[Mapping[str, str | None]] = MappingProxyType(
    {
        "Qwen2VLForConditionalGeneration": "Qwen2ForCausalLM",
        "Qwen2_5_VLForConditionalGeneration": "Qwen2ForCausalLM",
        "Glm4vForConditionalGeneration": "Glm4ForCausalLM",
        "Glm4vMoeForConditionalGeneration": "Glm4MoeForCausalLM",
        "InternVLForConditionalGeneration": None,
        "LlavaForConditionalGeneration": None,
        "LlavaNextForConditionalGeneration": None,
        "LlavaOnevisionForConditionalGeneration": None,
        "Idefics3ForConditionalGeneration": None,
        "SmolVLMForConditionalGeneration": None,
        "PaliGemmaForConditionalGeneration": None,
        "DeepseekOCRForCausalLM": "DeepseekV2ForCausalLM",
        "DeepseekVLV2ForCausalLM": "DeepseekV2ForCausalLM",
        "NemotronH_Nano_VL_V2": "NemotronHForCausalLM",
        "NemotronH_Nano_Omni_Reasoning_V3": "NemotronHForCausalLM",
        "NemotronH_Super_Omni_Reasoning_V3": "NemotronHForCausalLM",
        "NemotronH_Omni_Reasoning_V3": "NemotronHForCausalLM",
        "MiniCPMV4_6ForConditionalGeneration": None,
        "UltravoxModel": None,
        "Ovis": None,
        "Ovis2_5": None,
        "Ovis2_6ForCausalLM": None,
        "Ovis2_6_MoeForCausalLM": None,
        "AudioFlamingo3ForConditionalGeneration": "Qwen2ForCausalLM",
        "KeyeForConditionalGeneration": "Qwen3ForCausalLM",
        "KeyeVL1_5ForConditionalGeneration": "Qwen3ForCausalLM",
        "InternVLChatModel": None,
        "SkyworkR1VChatModel": None,
        "H2OVLChatModel": None,
        "NVLM_D": None,
        "QianfanOCRForConditionalGeneration": None,
        "InternS1ForConditionalGeneration": None,
        "Eagle2_5_VLForConditionalGeneration": None,
        "Cohere2VisionForConditionalGeneration": None,
        "Lfm2VlForConditionalGeneration": None,
        "LightOnOCRForConditionalGeneration": None,
        "LlavaNextVideoForConditionalGeneration": None,
        "BeeForConditionalGeneration": None,
        "RForConditionalGeneration": None,
        "OpenCUAForConditionalGeneration": None,
        "HCXVisionV2ForCausalLM": None,
        "Exaone4_5_ForConditionalGeneration": "Exaone4ForCausalLM",
        "PaddleOCRVLForConditionalGeneration": "Ernie4_5ForCausalLM",
        "GlmOcrForConditionalGeneration": "Glm4ForCausalLM",
        "GLM4VForCausalLM": "ChatGLMModel",
        "Qwen2_5OmniModel": "Qwen2ForCausalLM",
        "Qwen2_5OmniForConditionalGeneration": "Qwen2ForCausalLM",
        "Qwen3OmniMoeForConditionalGeneration": "Qwen3MoeForCausalLM",
        "Qwen2AudioForConditionalGeneration": "Qwen2ForCausalLM",
        "DotsOCRForCausalLM": "Qwen2ForCausalLM",
        "Step3VLForConditionalGeneration": "Step3TextForCausalLM",
        "Phi3VForCausalLM": "LlamaForCausalLM",
        "Phi4MMForCausalLM": "Phi3ForCausalLM",
        "Gemma4UnifiedForConditionalGeneration": "Gemma4ForCausalLM",
    }
)
LANGUAGE_MODELS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "llama": "LlamaForCausalLM",
        "mistral": "MistralForCausalLM",
        "qwen2": "Qwen2ForCausalLM",
        "qwen3": "Qwen3ForCausalLM",
        "qwen3_moe": "Qwen3MoeForCausalLM",
        "gemma": "GemmaForCausalLM",
        "gemma2": "Gemma2ForCausalLM",
        "phi3": "Phi3ForCausalLM",
        "gpt_oss": "GptOssForCausalLM",
        "cohere": "CohereForCausalLM",
        "cohere2": "Cohere2ForCausalLM",
        "deepseek_v2": "DeepseekV2ForCausalLM",
        "deepseek_v3": "DeepseekV3ForCausalLM",
        "gemma3_text": "Gemma3ForCausalLM",
        "glm4": "Glm4ForCausalLM",
        "glm4_moe": "Glm4MoeForCausalLM",
        "granite": "GraniteForCausalLM",
        "granitemoe": "GraniteMoeForCausalLM",
        "granitemoehybrid": "GraniteMoeHybridForCausalLM",
        "hyperclovax": "HyperCLOVAXForCausalLM",
        "internlm2": "InternLM2ForCausalLM",
        "lfm2": "Lfm2ForCausalLM",
        "lfm2_moe": "Lfm2MoeForCausalLM",
        "mixtral": "MixtralForCausalLM",
        "mistral4": "Mistral4ForCausalLM",
        "nemotron_h": "NemotronHForCausalLM",
        "olmo2": "Olmo2ForCausalLM",
        "opt": "OPTForCausalLM",
        "phi": "PhiForCausalLM",
        "qwen2_moe": "Qwen2MoeForCausalLM",
        "qwen3_5_text": "Qwen3_5ForCausalLM",
        "qwen3_5_moe_text": "Qwen3_5MoeForCausalLM",
        "seed_oss": "SeedOssForCausalLM",
        "smollm3": "SmolLM3ForCausalLM",
    }
)
# MiniCPM's multimodal classes take their language model from the version they state.
MINICPM_VERSIONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "MiniCPMV 2.0": "MiniCPMForCausalLM",
        "MiniCPMV 2.5": "LlamaForCausalLM",
        "MiniCPMV 2.6": "Qwen2ForCausalLM",
        "MiniCPMV 4.0": "LlamaForCausalLM",
        "MiniCPMV 4.5": "Qwen3ForCausalLM",
        "MiniCPMO 2.6": "Qwen2ForCausalLM",
    }
)


def language_model(config: Mapping[str, object], name: str) -> str:
    """Return the class of the language model inside a multimodal one; any other class is its own.

    Raises:
        UnsupportedModelError: `text_config` names a model type without a rule here.
    """
    if name == "Mistral3ForConditionalGeneration" and text_reader(config).own("model_type") == "mistral4":
        return "Mistral4ForCausalLM"
    if name in ("MiniCPMV", "MiniCPMO"):
        version = f"{name} {float(ConfigReader(config).number('version', default=2.6))}"
        if version not in MINICPM_VERSIONS:
            raise unknown_kind("version", version, ", ".join(MINICPM_VERSIONS))
        return MINICPM_VERSIONS[version]
    if name not in WRAPPERS:
        return name
    stated = WRAPPERS[name]
    if stated is not None:
        return stated
    inner = text_reader(config)
    named = inner.own("architectures")
    if is_list(named) and named and str(named[0]) != name and str(named[0]) in ARCHITECTURES:
        return str(named[0])
    kind = str(inner.own("model_type") or "")
    if kind not in LANGUAGE_MODELS:
        raise unknown_kind("text_config.model_type", kind, ", ".join(LANGUAGE_MODELS))
    return LANGUAGE_MODELS[kind]


def attention_rule(name: str) -> AttentionRule:
    """Return the rule of an architecture.

    Raises:
        UnsupportedModelError: the table has no such architecture; it is never approximated.
    """
    rule = ARCHITECTURES.get(name)
    if rule is None:
        raise UnsupportedModelError(
            f"there is no rule yet for the architecture {name[:80]!r}, so it is refused rather than approximated",
            field="model_config.architectures",
            accepted=", ".join(sorted({*ARCHITECTURES, *WRAPPERS, "MiniCPMV", "MiniCPMO"})),
        )
    return rule
