"""Classes that SGLang and TensorRT-LLM do not serve, where no command starts the model, or not in pipeline stages.

SGLang runs a class that it lacks by that of the Transformers library, unless this lacks it too, or its attention cannot
be exchanged. TensorRT-LLM's PyTorch backend, which `trtllm-serve` starts, runs the classes of its own index alone;
AutoDeploy, which runs more, is not what is sized.

SGLang splits a class by layers whose `forward` takes `pp_proxy_tensors`, as that of the Transformers library does; of
Granite 4.0, whose embeddings are tied, the last stage fails ("'PPMissingLayer' object has no attribute 'weight'").

Sources:
    SGLang 0.5.23 `srt/models/` (`EntryClass`), `srt/model_loader/utils.py` (`resolve_transformers_arch`); Transformers
    5 (`is_backend_compatible`, which classes that bring older code do not have); `srt/model_executor/model_runner.py`
    ("Pipeline Parallel is not compatible with this model.").
    TensorRT-LLM `tensorrt_llm/_torch/models/_arch_index.py` (`MODEL_ARCH_TO_MODULE`), and the `modeling_*.py` that came
    to the same folder by November 2026.
"""

from typing import Final

from service.engine.inputs import EngineName

SGLANG_LACKS_NAMES: Final = """
    AquilaForCausalLM AquilaModel ArcticForCausalLM BaiChuanForCausalLM BambaForCausalLM BloomForCausalLM
    FalconForCausalLM GLM4VForCausalLM H2OVLChatModel InternLMForCausalLM JAISLMHeadModel JambaForCausalLM
    MPTForCausalLM MiniMaxM1ForCausalLM MiniMaxText01ForCausalLM MolmoForCausalLM MoonshotKimiaForCausalLM
    MptForCausalLM NVLM_D OlmoHybridForCausalLM Ovis Ovis2_5 Phi3VForCausalLM Phi4ForCausalLMV RWForCausalLM
    StableLMEpochForCausalLM TeleChat2ForCausalLM TeleChatForCausalLM Zamba2ForCausalLM
"""
SGLANG_LACKS: Final = frozenset(SGLANG_LACKS_NAMES.split())
SGLANG_WITHOUT_STAGES_NAMES: Final = """
    AfmoeForCausalLM BaichuanForCausalLM ChatGLMModel Cohere2ForCausalLM Cohere2MoeForCausalLM
    Cohere2VisionForConditionalGeneration CohereForCausalLM DbrxForCausalLM DeepseekForCausalLM
    DeepseekOCRForCausalLM DotsOCRForCausalLM Ernie4_5_MoeForCausalLM Ernie4_5_VLMoeForConditionalGeneration
    ExaoneForCausalLM FalconH1ForCausalLM FalconMambaForCausalLM GPT2LMHeadModel GPTBigCodeForCausalLM
    GPTJForCausalLM Gemma2ForCausalLM Gemma3ForCausalLM Gemma3ForConditionalGeneration Gemma3nForCausalLM
    Gemma3nForConditionalGeneration Gemma4UnifiedForConditionalGeneration GemmaForCausalLM GraniteForCausalLM
    GraniteMoeForCausalLM GraniteMoeHybridForCausalLM GraniteMoeSWAForCausalLM GraniteMoeSharedForCausalLM
    GraniteSWAForCausalLM
    Grok1ForCausalLM Grok1ModelForCausalLM HYV3ForCausalLM HYV4ForCausalLM HunYuanDenseV1ForCausalLM
    HunYuanMoEV1ForCausalLM InternLM2ForCausalLM InternS1ForConditionalGeneration InternVLChatModel
    KimiVLForConditionalGeneration Lfm2ForCausalLM Lfm2MoeForCausalLM Lfm2VlForConditionalGeneration
    LightOnOCRForConditionalGeneration Llama4ForConditionalGeneration LongcatFlashForCausalLM Mamba2ForCausalLM
    MambaForCausalLM MiMoForCausalLM MiniCPM3ForCausalLM MiniCPMForCausalLM MiniCPMO MiniCPMV
    MiniCPMV4_6ForConditionalGeneration MiniCPMV4_7ForConditionalGeneration MuseGlimmerForCausalLM
    MuseGlimmerForConditionalGeneration
    NemotronH_Nano_Omni_Reasoning_V3 NemotronH_Nano_VL_V2 NemotronH_Omni_Reasoning_V3 Olmo2ForCausalLM
    OlmoForCausalLM OlmoeForCausalLM OrionForCausalLM PaddleOCRVLForConditionalGeneration PersimmonForCausalLM
    Phi4MMForCausalLM PhiForCausalLM PhiMoEForCausalLM PixtralForConditionalGeneration QWenLMHeadModel
    Qwen2AudioForConditionalGeneration Qwen2VLForConditionalGeneration Qwen3NextForCausalLM StableLmForCausalLM
    Starcoder2ForCausalLM Step3VLForConditionalGeneration Step3p7ForConditionalGeneration
    StepVLForConditionalGeneration VoxtralForConditionalGeneration XverseForCausalLM
"""
SGLANG_WITHOUT_STAGES: Final = frozenset(SGLANG_WITHOUT_STAGES_NAMES.split())
TENSORRT_LLM_HAS_NAMES: Final = """
    AfmoeForCausalLM ApertusForCausalLM ChatGLMForConditionalGeneration ChatGLMModel Cohere2ForCausalLM
    Cohere2VisionForConditionalGeneration DeciLMForCausalLM DeepseekV32ForCausalLM DeepseekV3ForCausalLM
    DeepseekV4ForCausalLM Exaone4ForCausalLM Exaone4_5_ForConditionalGeneration ExaoneMoEForCausalLM
    ExaoneMoeForCausalLM Gemma2ForCausalLM Gemma3ForCausalLM Gemma3ForConditionalGeneration Gemma4ForCausalLM
    Gemma4ForConditionalGeneration Gemma4UnifiedForConditionalGeneration Glm4MoeForCausalLM
    Glm5NextForConditionalGeneration GlmMoeDsaForCausalLM GptOssForCausalLM HCXVisionForCausalLM HCXVisionModel
    HunYuanDenseV1ForCausalLM HunYuanMoEV1ForCausalLM KimiK25ForConditionalGeneration KimiK3ForConditionalGeneration
    KimiLinearForCausalLM Kolibri1ForCausalLM LagunaForCausalLM Llama4ForConditionalGeneration LlamaForCausalLM
    LlavaLlamaModel LlavaNextForConditionalGeneration MiniCPMV4_6ForConditionalGeneration MiniMaxM2ForCausalLM
    MiniMaxM3SparseForCausalLM MiniMaxM3SparseForConditionalGeneration Mistral3ForConditionalGeneration
    MistralForCausalLM MistralLarge3ForCausalLM MixtralForCausalLM MllamaForConditionalGeneration
    NemotronForCausalLM NemotronHForCausalLM NemotronHPuzzleForCausalLM NemotronH_Nano_Omni_Reasoning_V3
    NemotronH_Nano_VL_V2 NemotronH_Omni_Reasoning_V3 Phi3ForCausalLM Phi4MMForCausalLM
    PixtralForConditionalGeneration Qwen2ForCausalLM Qwen2MoeForCausalLM Qwen2VLForConditionalGeneration
    Qwen2_5_VLForConditionalGeneration Qwen3ForCausalLM Qwen3MoeForCausalLM Qwen3NextForCausalLM
    Qwen3VLForConditionalGeneration Qwen3VLMoeForConditionalGeneration Qwen3_5ForCausalLM
    Qwen3_5ForConditionalGeneration Qwen3_5MoeForCausalLM Qwen3_5MoeForConditionalGeneration Qwen4ExpForCausalLM
    Qwen4ExpForConditionalGeneration SeedOssForCausalLM Starcoder2ForCausalLM Step3p5ForCausalLM
    Step3p7ForConditionalGeneration
"""
TENSORRT_LLM_HAS: Final = frozenset(TENSORRT_LLM_HAS_NAMES.split())


def lacked_by(name: str) -> frozenset[EngineName]:
    """Return the engines whose newest version has no class for a model.

    >>> sorted(lacked_by("JambaForCausalLM")), sorted(lacked_by("Olmo3ForCausalLM")), lacked_by("LlamaForCausalLM")
    (['sglang', 'tensorrt-llm'], ['tensorrt-llm'], frozenset())
    """
    without: list[EngineName] = []
    if name in SGLANG_LACKS:
        without.append("sglang")
    if name not in TENSORRT_LLM_HAS:
        without.append("tensorrt-llm")
    return frozenset(without)


def unstaged_by(name: str) -> frozenset[EngineName]:
    """Return the engines whose class for a model has no pipeline stages, besides vLLM.

    >>> sorted(unstaged_by("Gemma3ForConditionalGeneration")), sorted(unstaged_by("LlamaForCausalLM"))
    (['sglang'], [])
    """
    return frozenset({"sglang"}) if name in SGLANG_WITHOUT_STAGES else frozenset()
