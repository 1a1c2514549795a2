"""Classes that instantiate embeddings, or these and the output head, on every pipeline stage, used there or not.

Source:
    vLLM 0.33 `model_executor/models/` (each class's constructor asks neither `is_first_rank` nor `is_last_rank`).
"""

from typing import Final

from service.engine.layers import Ends

NAMES: Final = """
    AyaVisionForConditionalGeneration Blip2ForConditionalGeneration BloomForCausalLM ChatGLMForConditionalGeneration
    ChatGLMModel Cohere2ForCausalLM Cohere2MoeForCausalLM Cohere2VisionForConditionalGeneration CohereForCausalLM
    DbrxForCausalLM FalconForCausalLM FalconMambaForCausalLM GLM4VForCausalLM GPT2LMHeadModel GPTJForCausalLM
    Gemma2ForCausalLM Gemma3ForCausalLM Gemma3ForConditionalGeneration Gemma4ForCausalLM Gemma4ForConditionalGeneration
    Gemma4UnifiedForConditionalGeneration GemmaForCausalLM GptOssForCausalLM GraniteMoeForCausalLM
    GraniteMoeHybridForCausalLM GraniteMoeSWAForCausalLM GraniteMoeSharedForCausalLM HYV3ForCausalLM InklingForCausalLM
    InklingForConditionalGeneration InternLM2ForCausalLM JambaForCausalLM MambaForCausalLM MiniCPM3ForCausalLM
    MiniCPMForCausalLM MixtralForCausalLM MolmoForCausalLM MuseGlimmerForCausalLM MuseGlimmerForConditionalGeneration
    NemotronHForCausalLM OPTForCausalLM OlmoHybridForCausalLM OlmoeForCausalLM OrionForCausalLM PhiMoEForCausalLM
    Plamo3ForCausalLM Qwen2MoeForCausalLM Qwen3MoeForCausalLM Qwen3NextForCausalLM Qwen3OmniMoeForConditionalGeneration
    Qwen3VLMoeForConditionalGeneration Rnj1ForCausalLM StableLmForCausalLM
"""
REPEAT_ENDS: Final = frozenset(NAMES.split())
WHOLE_TABLE: Final = frozenset({"InklingForCausalLM", "InklingForConditionalGeneration"})  # on every rank
EMBEDDINGS_ALONE: Final = """
    Lfm2ForCausalLM Lfm2MoeForCausalLM Lfm2VlForConditionalGeneration Qwen3_5ForCausalLM
    Qwen3_5ForConditionalGeneration Qwen3_5MoeForCausalLM Qwen3_5MoeForConditionalGeneration
"""
REPEAT_EMBEDDINGS: Final = REPEAT_ENDS | frozenset(EMBEDDINGS_ALONE.split())


def ends_of(name: str) -> Ends:
    """Return what every stage of a class in vLLM holds of embeddings and output head.

    >>> [ends_of(name).repeats_table for name in ("LlamaForCausalLM", "GptOssForCausalLM")]
    [False, True]
    """
    return Ends(
        repeats_table=name in REPEAT_EMBEDDINGS,
        repeats_head=name in REPEAT_ENDS,
        has_whole_table=name in WHOLE_TABLE,
    )
