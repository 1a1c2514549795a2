"""dots.llm1, and dots.ocr in front of Qwen 2.

Sources:
    vLLM 0.33 `model_executor/models/dots_ocr.py`; dots.llm1 has had no file of its own since 0.24, and runs through the
    engine's generic backend, `model_executor/models/transformers`.
"""

from typing import Final

from service.engine.config_reader import ConfigReader, unknown_kind
from service.engine.families.parts.attention import full_only
from service.engine.families.parts.experts import Experts
from service.engine.families.parts.family import Family
from service.engine.families.parts.feed_forward import FeedForward
from service.engine.families.parts.norms import on_heads
from service.engine.families.parts.sparsity import first_dense
from service.engine.families.parts.towers import blocks, perceptron, tower_heads, vision_part
from service.engine.families.parts.wrappers import always
from service.engine.layers import Encoder


def _tower(outer: ConfigReader, text: ConfigReader) -> Encoder:
    """Return the tower: gated, without biases, norms without bias but for the merger's."""
    vision = vision_part(outer)
    hidden, patch = vision.positive("embed_dim", default=1536), vision.positive("patch_size", default=14)
    depth = vision.positive("num_hidden_layers", default=42)
    split, _ = blocks(hidden, vision.positive("intermediate_size"), is_gated=True, has_biases=False)
    if vision.flag("use_bias"):
        raise unknown_kind("vision_config.use_bias", True, "false")
    merged = vision.positive("spatial_merge_size", default=2) ** 2 * hidden
    merger, bias = perceptron(merged, merged, text.positive("hidden_size"))
    patches = 3 * patch * patch * hidden + 2 * hidden
    last = hidden if vision.flag("post_norm", default=True) else 0
    return Encoder(
        split_parameters=depth * split + merger,
        whole_parameters=depth * 2 * hidden + patches + last + 2 * hidden + bias,
        num_heads=tower_heads(vision),
    )


FAMILIES: Final = (
    Family(
        classes=("Dots1ForCausalLM",),
        attention=full_only,
        head_norms=on_heads,
        feed_forward=FeedForward(experts=Experts(sparsity=first_dense)),
    ),
    Family(classes=("DotsOCRForCausalLM",), wraps=always("Qwen2ForCausalLM"), tower=_tower),
)
