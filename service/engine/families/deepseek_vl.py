"""DeepSeek's language models behind towers whose sizes the model code fixes, more than the config.

Sources:
    vLLM 0.33 `model_executor/models/`: deepencoder.py with deepseek_ocr.py, deepencoder2.py with
    deepseek_ocr2.py, deepseek_vl2.py (timm's
    `vit_so400m_patch14_siglip_384`).
"""

from typing import Final

from service.engine.config_reader import ConfigReader, unknown_kind
from service.engine.families.parts.clip import LARGE_HEADS, LARGE_PATCH, clip_large
from service.engine.families.parts.family import Family
from service.engine.families.parts.towers import blocks, perceptron, vision_part
from service.engine.families.parts.wrappers import always
from service.engine.layers import Encoder

SAM_WINDOW: Final = 14  # patches on a side
SAM_GLOBAL_LAYERS: Final = 4
SAM_WIDTH: Final = 1024
QWEN_READER: Final = (896, 128, 4864, 24)  # width, keys of all heads, feed-forward columns, layers
READER_QUERIES: Final = (144, 256)  # learnt, of images of 768 and of 1,024 pixels on a side
OCR_IMAGE: Final = 224  # on a side [pixels]


def _ocr(outer: ConfigReader, text: ConfigReader) -> Encoder:
    """Return SAM's base tower with its convolutions (whole), CLIP's large one, two separators and the projector."""
    out = text.positive("hidden_size")
    clip_split, clip_whole = clip_large(side=OCR_IMAGE // LARGE_PATCH, layers=24)
    stated = ConfigReader(outer.mapping("projector_config") or {})
    if stated.text("projector_type", default="linear") != "linear":
        raise unknown_kind("projector_config.projector_type", stated.raw("projector_type"), "linear")
    projector = stated.positive("input_dim", default=2048) * out + out
    return Encoder(
        split_parameters=clip_split,
        whole_parameters=_sam(SAM_WIDTH) + clip_whole + projector + 2 * out,
        num_heads=LARGE_HEADS,
    )


def _sam(width: int) -> int:
    """Return SAM's base tower with windows, relative positions, and the convolutions behind it, to this width."""
    hidden, head, layers, side = 768, 64, 12, 1024 // 16
    split, whole = blocks(hidden, 4 * hidden)
    in_windows = (layers - SAM_GLOBAL_LAYERS) * (2 * SAM_WINDOW - 1)
    relative = 2 * head * (in_windows + SAM_GLOBAL_LAYERS * (2 * side - 1))
    tower = layers * (split + whole + 4 * hidden) + relative + 3 * 16 * 16 * hidden + hidden + side * side * hidden
    neck = 256 * hidden + 9 * 256 * 256 + 4 * 256 + 9 * 256 * 512 + 9 * 512 * width
    return tower + neck


def _ocr_2(outer: ConfigReader, text: ConfigReader) -> Encoder:
    """Return SAM's base tower, a small Qwen 2 that reads its patches, one separator and the projector, all whole."""
    stated = ConfigReader(outer.mapping("projector_config") or {})
    if stated.text("projector_type", default="linear") != "linear":
        raise unknown_kind("projector_config.projector_type", stated.raw("projector_type"), "linear")
    out = stated.positive("n_embed", default=text.positive("hidden_size"))
    hidden, keys, size, layers = QWEN_READER
    attention = 2 * hidden * hidden + hidden + 2 * (hidden + 1) * keys
    reader = layers * (attention + 3 * hidden * size + 2 * hidden) + hidden + sum(READER_QUERIES) * hidden
    projector = stated.positive("input_dim", default=hidden) * out + out
    return Encoder(split_parameters=0, whole_parameters=_sam(hidden) + reader + projector + out)


def _vl2(outer: ConfigReader, text: ConfigReader) -> Encoder:
    """Return SigLIP with a pooling head, of which only the networks are split; two separators and the projector."""
    vision = vision_part(outer)
    stated = ConfigReader(outer.mapping("projector_config") or {})
    out = stated.positive("n_embed", default=text.positive("hidden_size"))
    hidden, layers = vision.positive("width", default=1152), vision.positive("layers", default=27)
    size = int(hidden * vision.number("mlp_ratio", default=3.7362))
    patch = vision.positive("patch_size", default=14)
    side = vision.positive("image_size", default=384) // patch
    network, attention = 2 * hidden * size + size, 4 * hidden * hidden + 4 * hidden
    around = 3 * patch * patch * hidden + hidden + side * side * hidden + 2 * hidden
    pooling = hidden + attention + 2 * hidden + hidden
    projector = sum(perceptron(4 * hidden, out, out)) + 2 * out
    return Encoder(
        split_parameters=(layers + 1) * network,
        whole_parameters=layers * (attention + hidden + 4 * hidden) + around + pooling + projector,
    )


FAMILIES: Final = (
    Family(classes=("DeepseekOCRForCausalLM",), wraps=always("DeepseekV2ForCausalLM"), tower=_ocr),
    Family(classes=("DeepseekOCR2ForCausalLM",), wraps=always("DeepseekV2ForCausalLM"), tower=_ocr_2),
    Family(classes=("DeepseekVLV2ForCausalLM",), wraps=always("DeepseekV2ForCausalLM"), tower=_vl2),
)
