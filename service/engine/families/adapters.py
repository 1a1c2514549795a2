"""How vLLM adapts a class: not at all, or with one first factor for projections that checkpoints store as one.

Source:
    vLLM 0.12 to 0.33 `model_executor/models/` (`SupportsLoRA` among a class's bases, `packed_modules_mapping`),
    `config/vllm.py` ("LoRA is not supported for ..."), `lora/layers/column_parallel_linear.py` (`can_replace_layer`).
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

# Classes that take no adapters in any version.
UNADAPTED: Final = frozenset({
    "AriaForConditionalGeneration", "BailingMoeV2_5ForCausalLM", "BailingMoeV3ForCausalLM",
    "BailingMoeV3VLForConditionalGeneration", "BeamForCausalLM", "BeeForConditionalGeneration", "BloomForCausalLM",
    "Cohere2MoeForCausalLM", "Cohere2VisionForConditionalGeneration", "DbrxForCausalLM", "DeepseekVLV2ForCausalLM",
    "FalconForCausalLM", "FalconMambaForCausalLM", "GPT2LMHeadModel", "GPTJForCausalLM", "Gemma3nForCausalLM",
    "Gemma3nForConditionalGeneration", "Glm5NextForCausalLM", "HCXVisionV2ForCausalLM",
    "KimiK25ForConditionalGeneration", "KimiK3ForConditionalGeneration", "KimiLinearForCausalLM",
    "KimiVLForConditionalGeneration", "LlavaOnevisionForConditionalGeneration", "Mamba2ForCausalLM", "MambaForCausalLM",
    "MiMoV2FlashForCausalLM", "MiMoV2ForCausalLM", "MiMoV2OmniForCausalLM", "MiniMaxM3SparseForCausalLM",
    "MiniMaxM3SparseForConditionalGeneration", "MoonshotKimiaForCausalLM", "OrionForCausalLM", "Ovis", "Ovis2_5",
    "Ovis2_6ForCausalLM",
    "Ovis2_6_MoeForCausalLM", "PaddleOCRVLForConditionalGeneration", "Phi3VForCausalLM", "Phi4ForCausalLMV",
    "Qwen2AudioForConditionalGeneration", "RForConditionalGeneration", "SkyworkR1VChatModel", "StableLmForCausalLM",
    "Step1ForCausalLM", "Step3TextForCausalLM", "Step3VLForConditionalGeneration", "Step3p5ForCausalLM",
    "Step3p7ForConditionalGeneration", "StepVLForConditionalGeneration",
})  # fmt: skip
QUERIES: Final = "q_proj"  # with keys and values, under the first one's name
GATES: Final = "gate_proj"  # with the up projection
# By class: projections of one first factor, and since which version.
JOINED: Final[Mapping[str, tuple[str, frozenset[str]]]] = MappingProxyType(
    {
        "ChatGLMForConditionalGeneration": ("0", frozenset({QUERIES, GATES})),
        "ChatGLMModel": ("0", frozenset({QUERIES, GATES})),
        "GLM4VForCausalLM": ("0", frozenset({QUERIES, GATES})),
        "GPTNeoXForCausalLM": ("0", frozenset({QUERIES})),
        "Glm4vForConditionalGeneration": ("0", frozenset({GATES})),
        "GlmForCausalLM": ("0.32", frozenset({GATES})),
        "GlmOcrForConditionalGeneration": ("0", frozenset({GATES})),
        "InternLM2ForCausalLM": ("0", frozenset({QUERIES})),
        "Phi3ForCausalLM": ("0", frozenset({QUERIES, GATES})),
        "Phi4MMForCausalLM": ("0", frozenset({QUERIES, GATES})),
        "Plamo3ForCausalLM": ("0", frozenset({QUERIES, GATES})),
    }
)


def takes_adapters(name: str) -> bool:
    """Return whether vLLM adapts a class at all.

    >>> takes_adapters("LlamaForCausalLM"), takes_adapters("FalconForCausalLM")
    (True, False)
    """
    return name not in UNADAPTED


def joined_inputs(name: str, inner: str) -> tuple[str, frozenset[str]]:
    """Return which projections have one first factor for all their parts, and since which version.

    Args:
        name: the model's class.
        inner: that of the language model inside it, or itself.

    >>> since, projections = joined_inputs("Phi3ForCausalLM", "Phi3ForCausalLM")
    >>> sorted(projections)
    ['gate_proj', 'q_proj']
    """
    return JOINED.get(name) or JOINED.get(inner) or ("0", frozenset())
