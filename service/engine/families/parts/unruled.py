"""Classes that the engine serves, or served, and that have no rule here: what of them is not known, or not asked for.

Sources:
    vLLM 0.33 `models/step5/nvidia/csa_tail_ring.py`, `models/dots3_note/nvidia/attention.py`, `model_executor/models/`:
    hrm_text.py, iquest_loopcoder.py, dory.py, k2_horizon.py, longcat_flash_ngram.py, openpangu.py
    (`OpenPanguSinkAttention`), alice_ai.py, moondream3.py, domyn_edge.py, interns2_mobius.py, nemotron_vl.py,
    unlimited_ocr.py; `models/flint/model.py`, `models/muse_spark/nvidia/model.py`; `v1/core/kv_cache_planning.py`
    (`_get_packed_kv_cache_groups`); `model_executor/models/registry.py` (`_PREVIOUSLY_SUPPORTED_MODELS`).
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

_PLAN: Final = "how these share the pool's blocks is shown by no published plan"
_STEP: Final = f"it keeps summaries of selected regions and a ring of raw keys for each request; {_PLAN}"

# What stands in the way of a rule, and the classes.
_REASONS: Final[Mapping[str, str]] = MappingProxyType({
    _STEP: "Step5ForCausalLM Step5ForConditionalGeneration",
    "its layers run several times for a token, each time with a cache of its own":
        "DoryForCausalLM HrmTextForCausalLM IQuestLoopCoderForCausalLM OuroForCausalLM",
    "it looks n-grams up in tables beside that of tokens": "LongcatFlashNgramForCausalLM",
    "its values come from experts of their own": "K2HorizonForCausalLM",
    "it keeps learnt keys and values in front of every context": "PanguProMoEV2ForCausalLM",
    "it keeps windows of latents, which no other model has": "Dots3NoteForCausalLM",
    "its parts attend over the outputs of earlier layers, beside delta attention with softmax heads":
        "AliceAIForCausalLM",
    "its tables of rotary positions are learnt, one for every head": "InternS1ProForConditionalGeneration",
    "it transcribes speech, and what is asked of it is no prompt and no answer": """
        CohereAsrForConditionalGeneration FireRedASR2ForConditionalGeneration FunASRForConditionalGeneration
        GlmAsrForConditionalGeneration MossTranscribeDiarizeForConditionalGeneration
        Qwen3ASRForConditionalGeneration Qwen3ASRRealtimeGeneration VibeVoiceAsrForConditionalGeneration
        VoxtralRealtimeGeneration WhisperForConditionalGeneration
    """,
    "it answers with pictures or by diffusion, not a token at a time": """
        BagelForConditionalGeneration Cosmos3EdgeForConditionalGeneration Cosmos3ForConditionalGeneration
        DiffusionGemmaForBlockDiffusion
    """,
    "it answers with the movements of a robot or a car": "Alpamayo2Super OpenVLAForActionPrediction",
    "its answers attend to the prompt and to a window of their own, by kernels of its own": "UnlimitedOCRForCausalLM",
    "its attention runs by kernels of its own, beside a cache of 16 bits alone": "FlintForCausalLM",
    "each of its layers states how wide its heads are": "DomynEdgeForCausalLM",
    "its layers share blocks of experts": "InternS2MobiusForConditionalGeneration",
    "its queries and values are scaled by learnt matrices": "HfMoondream Moondream3ForCausalLM",
    "its streams are gated between layers, and its experts read them compressed": "MuseSparkForConditionalGeneration",
    "its tower, or all of it, is code that its checkpoint brings": "Llama_Nemotron_Nano_VL NanbeigeForCausalLM",
    "no published count of its parameters was found that a rule could be held to": """
        CohereCompassForConditionalGeneration DeepseekV4ForConditionalGeneration Emu3ForConditionalGeneration
        FunAudioChatForConditionalGeneration KananaVForConditionalGeneration
        LlavaOnevision2ForConditionalGeneration MiDashengLMModel MossAudioModel
        OpenPanguVLForConditionalGeneration
    """,
    "it answers with vectors or scores, not with tokens": """
        BertForMaskedLM BertForSequenceClassification BertForTokenClassification BertModel
        BertSpladeSparseEmbeddingModel BgeM3EmbeddingModel CLIPModel ClefFlashForJointSchema
        ClefOmniForJointSchema ColBERTJinaRobertaModel ColBERTLfm2Model ColBERTModernBertModel
        ColModernVBertForRetrieval ColPaliForRetrieval ColQwen3 ColQwen3_5 ColUltraVBertForRetrieval
        D3ForSequenceClassification DeepseekV3BidirectionalModel EmbeddingGemma2Model
        GPT2ForSequenceClassification Gemma2Model Gemma3TextModel GteModel GteNewForSequenceClassification
        GteNewModel HF_ColBERT InternLM2ForRewardModel JambaForSequenceClassification JinaEmbeddingsV5Model
        JinaForRanking JinaVLForRanking Lfm2BidirectionalModel LlamaBidirectionalForSequenceClassification
        LlamaBidirectionalModel LlamaModel LlamaNemotronVLForSequenceClassification LlamaNemotronVLModel
        MistralModel ModernBertForSequenceClassification ModernBertForTokenClassification ModernBertModel
        ModernVBertModel NomicBertModel OpenAIPrivacyFilterForTokenClassification OpsColQwen3Model
        Qwen2ForProcessRewardModel Qwen2ForRewardModel Qwen2Model Qwen3ASRForcedAlignerForTokenClassification
        Qwen3VLNemotronEmbedModel RobertaForMaskedLM RobertaForSequenceClassification
        RobertaForTokenClassification RobertaModel SiglipModel Terratorch VoyageQwen3BidirectionalEmbedModel
        XLMRobertaForSequenceClassification XLMRobertaForTokenClassification XLMRobertaModel
    """,
    "it drafts for another model, and is no model to serve by itself": """
        BailingMoeV25MTPModel BailingMoeV3MTPModel DFlash2BeamDraftModel DFlash2DraftModel DFlashDraftModel
        DFlashLagunaForCausalLM DFlashMuseGlimmerAssistantModel DFlashQwen3XPressModel DSparkDraftModel
        DSparkV41DraftModel DeepSeekMTPModel DeepSeekV4MTPModel DeepseekV32MTPModel Dots3NoteMTPModel
        Eagle3DeepseekV2ForCausalLM Eagle3DeepseekV3ForCausalLM Eagle3LlamaForCausalLM
        Eagle3MiniMaxM2ForCausalLM Eagle3Qwen2_5vlForCausalLM Eagle3Qwen3ForCausalLM Eagle3Qwen3vlForCausalLM
        EagleCohereForCausalLM EagleDeepSeekMTPModel EagleLlama4ForCausalLM EagleLlamaForCausalLM
        EagleMiniCPMForCausalLM EagleMistralForCausalLM EagleMistralLarge3ForCausalLM ErnieMTPModel
        Exaone4_5_MTP ExaoneMoeMTP ExtractHiddenStatesModel Gemma4DSparkModel Gemma4MTPModel Glm4MoeLiteMTPModel
        Glm4MoeMTPModel Glm5NextMTPModel GlmOcrMTPModel HYV3MTPModel HYV4MTPModel InklingMTPModel
        InternS2MobiusMTP K3DSparkModel KimiK3MTPModel LiLiCorrDraftModel LlamaForCausalLMEagle3
        LongCatFlashMTPModel MiMoMTPModel MiMoV2MTPModel MiMoV2OmniMTPModel MiniMaxM3MTP
        MuseGlimmerAssistantModel MuseSparkDSparkModel NemotronHMTPModel OpenPanguMTPModel PEagleDraftModel
        ParseAuxMTPModel PeagleLlamaForCausalLM PeagleQwen3ForCausalLM Qwen3DSparkModel Qwen3NextMTP
        Qwen3OmniDSparkModel Qwen3XPressModel Qwen3_5MTP Qwen3_5MoeMTP Qwen4ExpMTP Step3p5MTP Step5MTP
    """,
    "it names how the engine runs a model, not what the model is": """
        TransformersEmbeddingModel TransformersForCausalLM TransformersForMTP
        TransformersForSequenceClassification TransformersMoEEmbeddingModel TransformersMoEForCausalLM
        TransformersMoEForMTP TransformersMoEForSequenceClassification TransformersMultiModalEmbeddingModel
        TransformersMultiModalForCausalLM TransformersMultiModalForSequenceClassification
        TransformersMultiModalMoEForCausalLM
    """,
    "it reads documents with cross-attention to an encoder": """
        NemotronParseForConditionalGeneration RadioMBartPrefixForCausalLM
    """,
})  # fmt: skip
# Classes by the last version of vLLM that had them, and none of which is read here.
_GONE: Final[Mapping[str, str]] = MappingProxyType({
    "0.9.2": "Phi3SmallForCausalLM",
    "0.10.2": """
        DonutForConditionalGeneration MllamaForConditionalGeneration MotifForCausalLM Phi4FlashForCausalLM
    """,
    "0.12.0": "Phi4MultimodalForCausalLM",
    "0.23.0": """
        InternLM2VEForCausalLM MiniMaxVL01ForConditionalGeneration QwenVLForConditionalGeneration
        Tarsier2ForConditionalGeneration
    """,
    "0.24.0": """
        AyaVisionForConditionalGeneration MantisForConditionalGeneration MusicFlamingoForConditionalGeneration
        TarsierForConditionalGeneration
    """,
    "0.26.0": "Plamo2ForCausalLM",
    "0.28.0": """
        ChameleonForConditionalGeneration Cheers CheersForConditionalGeneration FireRedLIDForConditionalGeneration
        HCXVisionForCausalLM
    """,
})  # fmt: skip


def _reasons() -> dict[str, str]:
    """Return the reason of each class."""
    reasons = {name: reason for reason, names in _REASONS.items() for name in names.split()}
    gone = {name: f"vLLM had it until {last}" for last, names in _GONE.items() for name in names.split()}
    return reasons | gone


UNKNOWN: Final[Mapping[str, str]] = MappingProxyType(_reasons())
