"""What the engine's profiling run puts through a vision tower: as many of the largest items as its budget holds.

Sources:
    vLLM 0.33 `multimodal/encoder_budget.py`, and the processing info of each model
    (`get_mm_max_tokens_per_item`, `get_max_image_tokens`); the line "Encoder cache will be initialized
    with a budget of ..., and profiled with ... items" of public logs.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from service.engine.config_reader import ConfigReader, is_mapping
from service.engine.layers import Encoder

# Query, key and value; and the stream with its norm, which no rank splits.
SPLIT_STREAMS = 3
WHOLE_STREAMS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """The item that adds most to a prompt, by the model's own preprocessing."""

    tokens: int  # in the prompt
    patches_per_token: int
    most_pictures: int = 1  # of a video that is as large as an image
    unbounded_tokens: int = 0  # what vLLM 0.11.0 kept room for, whatever the context (issue 27992)
    is_gated: bool = False  # the feed-forward part keeps gate, up and product
    inner_name: str = ""  # the field that states the width of the feed-forward part, where it is not the usual one


def profiled(encoder: Encoder, config: Mapping[str, object], item: Item) -> Encoder:
    """Return the tower with what is alive at once in its widest layer, per token of the largest item.

    split over ranks = patches x (2 or 3 x inner width + 3 x width)
    whole            = patches x 2 x width
    kept             = outputs x (1 + deep stacks), each as wide as the language model
    """
    vision = config.get("vision_config")
    reader = ConfigReader(vision if is_mapping(vision) else {})
    width = reader.positive("embed_dim", "vt_hidden_size", "hidden_size", default=1152)
    inner = reader.positive("intermediate_size", "vt_intermediate_size", default=4 * width)
    if item.inner_name:
        inner = reader.positive(item.inner_name, default=inner)
    feed_forward = (3 if item.is_gated else 2) * inner
    return replace(
        encoder,
        max_tokens_per_item=item.tokens,
        most_pictures=item.most_pictures,
        split_elements_per_token=item.patches_per_token * (feed_forward + SPLIT_STREAMS * width),
        whole_elements_per_token=item.patches_per_token * WHOLE_STREAMS * width,
        unbounded_tokens=item.unbounded_tokens,
        outputs=1 + len(reader.integers("deepstack_visual_indexes") or ()),
    )
