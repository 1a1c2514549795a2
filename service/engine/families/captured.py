"""Classes whose prompts SGLang captures as graphs in spite of their images, and those whose prompts it leaves out.

Sources:
    SGLang 0.5.15 to 0.5.18 `srt/server_args.py`, 0.5.19 to 0.5.23 `srt/arg_groups/cuda_graph_hook.py`
    (`disable_breakable_cudagraph_if_incompatible`); the same versions' `srt/configs/model_config.py`
    (`multimodal_breakable_cuda_graph_supported_model_archs`, `uses_kda_attention`), and that of 0.5.11 to 0.5.14
    (`piecewise_cuda_graph_disabled_model_archs`).
"""

from collections.abc import Mapping
from typing import Final

# The first version that captures prompts of a class that sees images; those of all others stay as they are.
WITH_IMAGES: Final[Mapping[str, str]] = {
    "Qwen3_5ForConditionalGeneration": "0.5.16",
    "Qwen3_5MoeForConditionalGeneration": "0.5.16",
    "InternS2MobiusForConditionalGeneration": "0.5.18",
    "KimiK25ForConditionalGeneration": "0.5.18",
    "KimiK3ForConditionalGeneration": "0.5.18",
    "MuseGlimmerForConditionalGeneration": "0.5.18",
    "Cohere2VisionForConditionalGeneration": "0.5.19",
    "PaddleOCRVLForConditionalGeneration": "0.5.19",
    "Glm5NextForConditionalGeneration": "0.5.20",
    "MiniMaxM3SparseForCausalLM": "0.5.22",
    "MiniMaxM3SparseForConditionalGeneration": "0.5.22",
    "Qwen4ExpForConditionalGeneration": "0.5.22",
    "MuseSparkForConditionalGeneration": "0.5.23",
}
# From and until which version prompts of a class are left out for itself; empty: from the first, to the last.
LEFT_OUT: Final[Mapping[str, tuple[str, str]]] = {
    "DeepseekV4ForCausalLM": ("", ""),  # its indexer's scratch would stay in the pool of the graphs
    "Qwen3NextForCausalLM": ("", "0.5.15"),
    "BailingMoeV2_5ForCausalLM": ("", "0.5.15"),
    "NemotronHForCausalLM": ("0.5.17", "0.5.18"),
    "KimiLinearForCausalLM": ("0.5.20", ""),  # delta attention with a decay for each channel
    "KimiK3LinearForCausalLM": ("0.5.20", ""),
    "KimiK3ForConditionalGeneration": ("0.5.20", ""),
}


def images_captured_since(name: str) -> str:
    """Return the first version of SGLang that captures prompts of a class in spite of its images; empty: none does.

    >>> images_captured_since("Qwen3_5ForConditionalGeneration"), images_captured_since("LlavaForConditionalGeneration")
    ('0.5.16', '')
    """
    return WITH_IMAGES.get(name, "")


def prompts_left_out(name: str) -> tuple[str, str] | None:
    """Return from and until which version SGLang leaves prompts of a class out; None where it never does.

    >>> prompts_left_out("NemotronHForCausalLM"), prompts_left_out("LlamaForCausalLM")
    (('0.5.17', '0.5.18'), None)
    """
    return LEFT_OUT.get(name)
