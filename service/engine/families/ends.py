"""Classes that instantiate embeddings and output head on every pipeline stage, used there or not.

Source:
    vLLM 0.33 `model_executor/models/` (each class's constructor asks neither `is_first_rank` nor `is_last_rank`).
"""

from typing import Final

NAMES: Final = """
    ChatGLMModel ChatGLMForConditionalGeneration GLM4VForCausalLM DbrxForCausalLM FalconForCausalLM
    FalconMambaForCausalLM GPTJForCausalLM GptOssForCausalLM GraniteMoeForCausalLM GraniteMoeHybridForCausalLM
    GraniteMoeSharedForCausalLM HYV3ForCausalLM InternLM2ForCausalLM JambaForCausalLM MixtralForCausalLM
    MuseGlimmerForCausalLM MuseGlimmerForConditionalGeneration NemotronHForCausalLM OlmoHybridForCausalLM
    OlmoeForCausalLM OrionForCausalLM PhiMoEForCausalLM Plamo3ForCausalLM Qwen2MoeForCausalLM Qwen3MoeForCausalLM
    Qwen3NextForCausalLM StableLmForCausalLM
"""
REPEAT_ENDS: Final = frozenset(NAMES.split())


def repeats_ends(name: str) -> bool:
    """Return whether every stage of a class holds embeddings and output head.

    >>> repeats_ends("LlamaForCausalLM"), repeats_ends("GptOssForCausalLM")
    (False, True)
    """
    return name in REPEAT_ENDS
