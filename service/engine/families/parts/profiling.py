"""What the engine's profiling run puts through a vision tower: as many of the largest items as its budget holds.

Sources:
    vLLM 0.33 `multimodal/encoder_budget.py`, and the processing info of each model
    (`get_mm_max_tokens_per_item`, `get_max_image_tokens`); the line "Encoder cache will be initialized
    with a budget of ..., and profiled with ... items" of public logs.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from service.engine.config_reader import ConfigReader, is_mapping
from service.engine.layers import Encoder


@dataclass(frozen=True, slots=True, kw_only=True)
class _Item:
    """The item that adds most to a prompt, by the model's own preprocessing."""

    tokens: int  # in the prompt
    patches_per_token: int
    unbounded_tokens: int = 0  # what vLLM 0.11.0 kept room for, whatever the context (issue 27992)
    is_gated: bool = False  # the feed-forward part keeps gate, up and product


_QWEN = _Item(tokens=16_384, patches_per_token=4)  # an image of 16,384 x 28 x 28 pixels
_QWEN_VIDEO = replace(_QWEN, unbounded_tokens=153_600)
_KIMI = _Item(tokens=4_096, patches_per_token=4)
_GLM = _Item(tokens=30_000, patches_per_token=4, is_gated=True)  # a video of 47,040,000 pixels
_ITEMS: Final[Mapping[str, _Item]] = MappingProxyType(
    {
        "Qwen2VLForConditionalGeneration": _QWEN,
        "Qwen2_5_VLForConditionalGeneration": replace(_QWEN, is_gated=True),
        "Qwen3VLForConditionalGeneration": _QWEN_VIDEO,
        "Qwen3VLMoeForConditionalGeneration": _QWEN_VIDEO,
        "Qwen3_5ForConditionalGeneration": _QWEN,
        "Qwen3_5MoeForConditionalGeneration": _QWEN,
        "Gemma3ForConditionalGeneration": _Item(tokens=260, patches_per_token=16),  # with four marks around it
        # A video of 32 frames: 70 tokens and up to 8 around them for each.
        "Gemma4ForConditionalGeneration": _Item(tokens=2_496, patches_per_token=9),
        "KimiK25ForConditionalGeneration": _KIMI,
        "KimiK3ForConditionalGeneration": _KIMI,
        "KimiVLForConditionalGeneration": _KIMI,
        "Llama4ForConditionalGeneration": _Item(tokens=2_448, patches_per_token=4),
        "Mistral3ForConditionalGeneration": _Item(tokens=3_025, patches_per_token=4),
        "Glm4vForConditionalGeneration": _GLM,
        "Glm4vMoeForConditionalGeneration": _GLM,
        # Twelve tiles and a thumbnail.
        "InternVLForConditionalGeneration": _Item(tokens=3_328, patches_per_token=4),
        "LlavaForConditionalGeneration": _Item(tokens=576, patches_per_token=1),
        "LlavaNextForConditionalGeneration": _Item(tokens=2_880, patches_per_token=1),
        "LlavaOnevisionForConditionalGeneration": _Item(tokens=7_290, patches_per_token=1),
    }
)
# Query, key and value; and the stream with its norm, which no rank splits.
SPLIT_STREAMS = 3
WHOLE_STREAMS = 2


def profiled(encoder: Encoder | None, config: Mapping[str, object], name: str) -> Encoder | None:
    """Return the tower with what is alive at once in its widest layer, per token of the largest item.

    split over ranks = patches x (2 or 3 x inner width + 3 x width)
    whole            = patches x 2 x width
    kept             = outputs x (1 + deep stacks), each as wide as the language model
    """
    vision, item = config.get("vision_config"), _ITEMS.get(name)
    if encoder is None or item is None:
        return encoder
    reader = ConfigReader(vision if is_mapping(vision) else {})
    width = reader.positive("embed_dim", "vt_hidden_size", "hidden_size", default=1152)
    inner = reader.positive("intermediate_size", "vt_intermediate_size", default=4 * width)
    if name in ("Glm4vForConditionalGeneration", "Glm4vMoeForConditionalGeneration"):
        inner = reader.positive("out_hidden_size", default=inner)
    feed_forward = (3 if item.is_gated else 2) * inner
    return replace(
        encoder,
        max_tokens_per_item=item.tokens,
        split_elements_per_token=item.patches_per_token * (feed_forward + SPLIT_STREAMS * width),
        whole_elements_per_token=item.patches_per_token * WHOLE_STREAMS * width,
        unbounded_tokens=item.unbounded_tokens,
        outputs=1 + len(reader.integers("deepstack_visual_indexes") or ()),
    )
