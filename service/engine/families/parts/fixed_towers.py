"""Vision towers whose sizes the model code or a published name fixes, more than the config.

Sources:
    vLLM 0.33 `model_executor/models/`: phi3v.py, deepencoder.py with deepseek_ocr.py, deepseek_vl2.py (timm's
    `vit_so400m_patch14_siglip_384`), ovis.py with aimv2.py, ovis2_5.py with siglip2navit.py, radio.py with
    nano_nemotron_vl.py; `transformers_utils/configs/radio.py`.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from service.engine.config_reader import ConfigReader, is_list, is_mapping, unknown_kind
from service.engine.families.parts.tower_parts import blocks, merging_side, perceptron, siglip, tower_heads
from service.engine.layers import Encoder

# Width, layers, heads and feed-forward columns by the name of the transformer.
RADIO_SIZES: Final[Mapping[str, tuple[int, int, int, int]]] = MappingProxyType(
    {
        "vit_small_patch16_224": (384, 12, 6, 1536),
        "vit_base_patch16_224": (768, 12, 12, 3072),
        "vit_large_patch16_224": (1024, 24, 16, 4096),
        "vit_huge_patch16_224": (1280, 32, 16, 5120),
        "vit_so400m_patch16_224": (1152, 27, 16, 4304),
    }
)
# Of the visual words, those that mark where an image begins and ends, which no patch can be.
OVIS_INDICATORS = 5
OVIS25_INDICATORS = 4
SAM_WINDOW = 14  # patches on a side
SAM_GLOBAL_LAYERS = 4


def phi3v(_outer: ConfigReader, text: ConfigReader) -> Encoder:
    """Return CLIP's published large tower but for its last layer and norm, two learnt separators and the projector.

    The engine also keeps a second table of embeddings beside the tower.
    """
    layers = 23
    split, whole, around = _clip_large(side=336 // 14, layers=layers)
    merged, out = 4 * 1024, text.positive("hidden_size")
    table = -(-text.positive("vocab_size") // 64) * 64 * out
    return Encoder(
        split_parameters=split + table,
        whole_parameters=whole + around + 2 * merged + sum(perceptron(merged, out, out)),
        num_heads=16,
    )


def _clip_large(*, side: int, layers: int) -> tuple[int, int, int]:
    """Return CLIP's large tower of patches of 14: split, whole, and what is around its layers."""
    hidden = 1024
    split, whole = blocks(hidden, 4 * hidden)
    around = 3 * 14 * 14 * hidden + (side * side + 1) * hidden + hidden + 2 * hidden
    return layers * split, layers * (whole + 4 * hidden), around


def deepseek_ocr(outer: ConfigReader, text: ConfigReader) -> Encoder:
    """Return SAM's base tower (whole) with its convolutions, CLIP's large one, two separators and the projector."""
    out, hidden, head = text.positive("hidden_size"), 768, 64
    layers, side = 12, 1024 // 16
    split, whole = blocks(hidden, 4 * hidden)
    in_windows = (layers - SAM_GLOBAL_LAYERS) * (2 * SAM_WINDOW - 1)
    relative = 2 * head * (in_windows + SAM_GLOBAL_LAYERS * (2 * side - 1))
    sam = layers * (split + whole + 4 * hidden) + relative + 3 * 16 * 16 * hidden + hidden + side * side * hidden
    neck = 256 * hidden + 9 * 256 * 256 + 4 * 256 + 9 * 256 * 512 + 9 * 512 * 1024
    clip_split, clip_whole, around = _clip_large(side=224 // 14, layers=24)
    stated = ConfigReader(outer.mapping("projector_config") or {})
    if stated.text("projector_type", default="linear") != "linear":
        raise unknown_kind("projector_config.projector_type", stated.raw("projector_type"), "linear")
    projector = stated.positive("input_dim", default=2048) * out + out
    return Encoder(
        split_parameters=clip_split,
        whole_parameters=sam + neck + clip_whole + around + projector + 2 * out,
        num_heads=16,
    )


def deepseek_vl2(outer: ConfigReader, text: ConfigReader) -> Encoder:
    """Return SigLIP with a pooling head, of which only the networks are split; two separators and the projector."""
    vision = ConfigReader(outer.mapping("vision_config") or {})
    out = ConfigReader(outer.mapping("projector_config") or {}).positive(
        "n_embed", default=text.positive("hidden_size")
    )
    hidden, layers = vision.positive("width", default=1152), vision.positive("layers", default=27)
    size = int(hidden * vision.number("mlp_ratio", default=3.7362))
    patch = vision.positive("patch_size", default=14)
    side = vision.positive("image_size", default=384) // patch
    network, attention = 2 * hidden * size + size, 4 * hidden * hidden + 4 * hidden
    around = 3 * patch * patch * hidden + hidden + side * side * hidden + 2 * hidden
    pooling = hidden + attention + 2 * hidden + hidden
    return Encoder(
        split_parameters=(layers + 1) * network,
        whole_parameters=layers * (attention + hidden + 4 * hidden)
        + around
        + pooling
        + sum(perceptron(4 * hidden, out, out))
        + 2 * out,
    )


def ovis(outer: ConfigReader, text: ConfigReader) -> Encoder:
    """Return Ovis's AIMv2 tower, gated and without biases, and its table of visual words."""
    tokenizer = ConfigReader(outer.mapping("visual_tokenizer_config") or {})
    vision = ConfigReader(tokenizer.mapping("backbone_config") or {})
    kind = vision.text("model_type", default="aimv2")
    if kind != "aimv2" or vision.flag("use_bias") or vision.flag("qkv_bias"):
        raise unknown_kind("visual_tokenizer_config.backbone_config", kind, "aimv2 without biases")
    hidden, layers = vision.positive("hidden_size"), vision.positive("num_hidden_layers")
    patch = vision.positive("patch_size", default=14)
    split, _ = blocks(hidden, vision.positive("intermediate_size"), is_gated=True, has_biases=False)
    positions = (vision.positive("image_size") // patch) ** 2 * hidden
    around = 3 * patch * patch * hidden + 2 * hidden + positions
    words = tokenizer.positive("vocab_size")
    return Encoder(
        split_parameters=layers * split,
        whole_parameters=layers * 2 * hidden
        + around
        + _visual_words(words, OVIS_INDICATORS, hidden, tokenizer.positive("hidden_stride", default=2), text),
        num_heads=tower_heads(vision),
    )


def ovis25(outer: ConfigReader, text: ConfigReader) -> Encoder:
    """Return Ovis 2.5's SigLIP 2 tower and its table of visual words."""
    vision = ConfigReader(outer.mapping("vit_config") or {})
    if (patches := vision.raw("num_patches")) not in (None, -1):
        raise unknown_kind("vit_config.num_patches", patches, "-1: as many as the image size has")
    hidden, stride = vision.positive("hidden_size"), vision.positive("hidden_stride", default=2)
    split, whole = siglip(vision)
    words = outer.positive("visual_vocab_size")
    return Encoder(
        split_parameters=split,
        whole_parameters=whole + 2 * hidden + _visual_words(words, OVIS25_INDICATORS, hidden, stride, text),
        num_heads=tower_heads(vision),
    )


def _visual_words(words: int, indicators: int, hidden: int, stride: int, text: ConfigReader) -> int:
    """Return the head that picks visual words with its norm, and their embeddings."""
    picked = max(words - indicators, 0)
    return picked * hidden * stride * stride + 2 * picked + words * text.positive("hidden_size")


def nemotron_nano(outer: ConfigReader, text: ConfigReader) -> Encoder:
    """Return RADIO with its positions for the largest image, and a projector without biases that no rank splits."""
    if outer.raw("sound_config") is not None:
        raise unknown_kind("sound_config", "a tower for sound", "none")
    vision = ConfigReader(outer.mapping("vision_config") or {})
    stated = ConfigReader(vision.mapping("args") or {})
    name = stated.text("model")
    if name not in RADIO_SIZES:
        raise unknown_kind("vision_config.args.model", name, ", ".join(RADIO_SIZES))
    hidden, layers, heads, size = RADIO_SIZES[name]
    patch = vision.positive("patch_size", default=16)
    frames = vision.positive("video_temporal_patch_size", default=1)
    patches = 3 * patch * patch * hidden * (1 + (frames if frames > 1 else 0))
    positions = round(stated.positive("cpe_max_size", default=2048) / patch) ** 2 * hidden
    merged = hidden * merging_side(outer) ** 2
    inner = outer.positive("projector_hidden_size")
    last = 2 * hidden if text.integer("num_nextn_predict_layers", default=0) else 0
    projector = merged + merged * inner + inner * text.positive("hidden_size") + last
    return Encoder(
        split_parameters=layers * (2 * hidden * size + size),
        whole_parameters=layers * 8 * hidden + patches + positions + _class_tokens(stated) * hidden + projector,
        beside=Encoder(
            split_parameters=layers * (4 * hidden * hidden + 3 * hidden),
            whole_parameters=0,
            num_heads=heads,
            is_whole_where_uneven=True,
        ),
    )


def _class_tokens(stated: ConfigReader) -> int:
    """Return RADIO's class tokens, one or one per teacher, with registers up to a whole multiple."""
    teachers = stated.raw("teachers")
    names = {str(it.get("name")) for it in teachers if is_mapping(it)} if is_list(teachers) else set()
    tokens = len(names) if stated.flag("cls_token_per_teacher") else 1
    if (registers := stated.integer("num_registers", default=0)) > 0:
        return tokens + registers
    multiple = stated.integer("register_multiple", default=0)
    return tokens + (multiple - tokens % multiple if multiple else 0)
