"""Classes that instantiate embeddings, or these and the output head, on every pipeline stage, used there or not.

Source:
    vLLM 0.33 `model_executor/models/` (each class's constructor asks neither `is_first_rank` nor `is_last_rank`).
"""

from typing import Final

NAMES: Final = """
    AyaVisionForConditionalGeneration Blip2ForConditionalGeneration BloomForCausalLM ChatGLMForConditionalGeneration
    ChatGLMModel Cohere2ForCausalLM Cohere2MoeForCausalLM Cohere2VisionForConditionalGeneration CohereForCausalLM
    DbrxForCausalLM FalconForCausalLM FalconMambaForCausalLM GLM4VForCausalLM GPT2LMHeadModel GPTJForCausalLM
    Gemma2ForCausalLM Gemma3ForCausalLM Gemma3ForConditionalGeneration Gemma4ForCausalLM Gemma4ForConditionalGeneration
    Gemma4UnifiedForConditionalGeneration GemmaForCausalLM GptOssForCausalLM GraniteMoeForCausalLM
    GraniteMoeHybridForCausalLM GraniteMoeSWAForCausalLM GraniteMoeSharedForCausalLM HYV3ForCausalLM
    InternLM2ForCausalLM JambaForCausalLM MambaForCausalLM MiniCPM3ForCausalLM MiniCPMForCausalLM MixtralForCausalLM
    MolmoForCausalLM MuseGlimmerForCausalLM MuseGlimmerForConditionalGeneration NemotronHForCausalLM OPTForCausalLM
    OlmoHybridForCausalLM OlmoeForCausalLM OrionForCausalLM PhiMoEForCausalLM Plamo3ForCausalLM Qwen2MoeForCausalLM
    Qwen3MoeForCausalLM Qwen3NextForCausalLM Qwen3OmniMoeForConditionalGeneration Qwen3VLMoeForConditionalGeneration
    Rnj1ForCausalLM StableLmForCausalLM
"""
REPEAT_ENDS: Final = frozenset(NAMES.split())
EMBEDDINGS_ALONE: Final = """
    Lfm2ForCausalLM Lfm2MoeForCausalLM Lfm2VlForConditionalGeneration Qwen3_5ForCausalLM
    Qwen3_5ForConditionalGeneration Qwen3_5MoeForCausalLM Qwen3_5MoeForConditionalGeneration
"""
REPEAT_EMBEDDINGS: Final = REPEAT_ENDS | frozenset(EMBEDDINGS_ALONE.split())


def repeats_ends(name: str) -> bool:
    """Return whether every stage of a class holds embeddings and output head.

    >>> repeats_ends("LlamaForCausalLM"), repeats_ends("GptOssForCausalLM")
    (False, True)
    """
    return name in REPEAT_ENDS


def repeats_embeddings(name: str) -> bool:
    """Return whether every stage of a class holds embeddings, whatever it does of its head.

    >>> repeats_embeddings("LlamaForCausalLM"), repeats_embeddings("Qwen3_5MoeForConditionalGeneration")
    (False, True)
    """
    return name in REPEAT_EMBEDDINGS
