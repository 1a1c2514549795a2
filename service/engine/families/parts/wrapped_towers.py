"""Vision towers in front of a language model of another family, and the table of all such classes.

Sources:
    vLLM 0.33 `model_executor/models/`: intern_vit.py with internvl.py, nvlm_d.py and eagle2_5_vl.py,
    idefics2_vision_model.py with minicpmv.py, minicpmo.py, aria.py and phi4mm.py, siglip.py with bee.py and
    cohere2_vision.py, lfm2_siglip2.py with lfm2_vl.py, paddleocr_vl.py, keye.py, keye_vl1_5.py, dots_ocr.py,
    ernie45_vl.py, exaone4_5.py, glm_ocr.py, glm4v.py, step3_vl.py, gemma4_unified.py, opencua.py,
    hyperclovax_vision_v2.py, minicpmv4_6.py.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from service.engine.config_reader import MAX_COUNT, ConfigReader, is_mapping, text_reader, unknown_kind
from service.engine.families.parts.encoder import parse_encoder
from service.engine.families.parts.fixed_towers import deepseek_ocr, deepseek_vl2, nemotron_nano, ovis, ovis25, phi3v
from service.engine.families.parts.sound_towers import (
    audio_flamingo,
    conformer,
    gemma4_sound,
    qwen3_omni,
    qwen25_omni,
    qwen_audio,
    ultravox,
    whisper,
)
from service.engine.families.parts.tower_parts import (
    audio_part,
    blocks,
    merging_side,
    perceptron,
    qwen25,
    siglip,
    tower_heads,
    vision_part,
    with_whole,
)
from service.engine.families.parts.towers import parse_tower
from service.engine.layers import Encoder

Rule = Callable[[ConfigReader, ConfigReader], Encoder]

NVLM_EXTRA_HEADS = 7  # empty ones, so that 32 divide over ranks
RESAMPLED_QUERIES = 64
KEYE_POSITIONS = 32_768
PHI4_HIDDEN = 1152


def _intern_vit(outer: ConfigReader, *, extra_heads: int = 0) -> Encoder:
    """Return InternViT, whose attention a rank holds whole where its heads do not divide, up to the used layer."""
    vision = vision_part(outer)
    hidden, size = vision.positive("hidden_size"), vision.positive("intermediate_size")
    heads, patch = vision.positive("num_attention_heads"), vision.positive("patch_size")
    depth, layer = vision.positive("num_hidden_layers"), outer.raw("select_layer")
    if isinstance(layer, int) and layer < 0:
        depth = max(depth + layer + 1, 1)
    width = (heads + extra_heads) * hidden // heads
    norms = 2 * width if vision.flag("qk_normalization") else 0
    norm = hidden if vision.text("norm_type", default="rms_norm") == "rms_norm" else 2 * hidden
    around = 3 * patch * patch * hidden + hidden + ((vision.positive("image_size") // patch) ** 2 + 2) * hidden
    attention = 4 * hidden * width + (3 * width if vision.flag("qkv_bias") else 0)
    return Encoder(
        split_parameters=depth * (2 * hidden * size + size),
        whole_parameters=depth * (2 * hidden + norms + 2 * norm + 2 * hidden) + around,
        beside=Encoder(
            split_parameters=depth * attention,
            whole_parameters=0,
            num_heads=heads + extra_heads,
            is_whole_where_uneven=True,
        ),
    )


def _shuffled(outer: ConfigReader, hidden: int) -> int:
    return hidden * merging_side(outer) ** 2


def _internvl(outer: ConfigReader, text: ConfigReader) -> Encoder:
    """Return InternViT and a norm with two matrices over merged patches."""
    merged, out = _shuffled(outer, vision_part(outer).positive("hidden_size")), text.positive("hidden_size")
    return with_whole(_intern_vit(outer), 2 * merged + sum(perceptron(merged, out, out)))


def _nvlm(outer: ConfigReader, text: ConfigReader) -> Encoder:
    """Return InternViT with empty heads, and a projector as wide as the language model's feed-forward part."""
    merged, inner = _shuffled(outer, vision_part(outer).positive("hidden_size")), text.positive("intermediate_size")
    projector = 2 * merged + merged * inner + inner * text.positive("hidden_size")
    return with_whole(_intern_vit(outer, extra_heads=NVLM_EXTRA_HEADS), projector)


def _plain_siglip(vision: ConfigReader, *, has_last_norm: bool, layers: int = 0) -> Encoder:
    """Return SigLIP, with its last norm or up to an earlier layer."""
    hidden, depth = vision.positive("hidden_size"), vision.positive("num_hidden_layers")
    split, whole = siglip(vision)
    if layers:
        each_split, each_whole = blocks(hidden, vision.positive("intermediate_size"))
        split -= (depth - layers) * each_split
        whole -= (depth - layers) * (each_whole + 4 * hidden)
    return Encoder(
        split_parameters=split,
        whole_parameters=whole + (2 * hidden if has_last_norm else 0),
        num_heads=tower_heads(vision),
    )


def _eagle(outer: ConfigReader, text: ConfigReader) -> Encoder:
    """Return SigLIP, and a norm with two matrices over merged patches."""
    vision = vision_part(outer)
    merged, out = _shuffled(outer, vision.positive("hidden_size")), text.positive("hidden_size")
    return with_whole(_plain_siglip(vision, has_last_norm=True), 2 * merged + sum(perceptron(merged, out, out)))


def _minicpmv(outer: ConfigReader, text: ConfigReader) -> Encoder:
    """Return SigLIP and a resampler: learnt queries that attend to the patches, whole on every rank."""
    vision = vision_part(outer)
    out, hidden = text.positive("hidden_size"), vision.positive("hidden_size")
    if outer.flag("drop_vision_last_layer"):
        raise unknown_kind("drop_vision_last_layer", True, "false: the tower is sized with all its layers")
    queries = outer.positive("query_num", default=RESAMPLED_QUERIES)
    attention = 4 * out * out + 4 * out
    resampler = queries * out + out * out + (hidden * out if hidden != out else 0) + attention + 6 * out
    return with_whole(_plain_siglip(vision, has_last_norm=True), resampler)


def _minicpmv_46(outer: ConfigReader, text: ConfigReader) -> Encoder:
    """Return SigLIP, a merger of windows inside it (only its attention is split), and a merger of patches after it."""
    vision, out = vision_part(outer), text.positive("hidden_size")
    hidden, size = vision.positive("hidden_size"), vision.positive("intermediate_size")
    merged, tower = 4 * hidden, _plain_siglip(vision, has_last_norm=True)
    windows = 2 * hidden + 2 * merged + sum(perceptron(merged, 4 * size, hidden)) + hidden
    patches = 2 * merged + sum(perceptron(merged, merged, out))
    return replace(
        with_whole(tower, windows + patches),
        split_parameters=tower.split_parameters + 4 * hidden * hidden + 3 * hidden,
    )


def _minicpmo(outer: ConfigReader, text: ConfigReader) -> Encoder:
    """Return MiniCPM-V's tower, Whisper's encoder and a projector for sound, both whole."""
    audio, out = audio_part(outer), text.positive("hidden_size")
    width = audio.positive("d_model")
    sound = whisper(audio) + audio.positive("max_source_positions", default=1500) * width
    return with_whole(_minicpmv(outer, text), sound + sum(perceptron(width, out, out)))


def _aria(outer: ConfigReader, text: ConfigReader) -> Encoder:
    """Return SigLIP without its last norm, cross-attention that no rank splits, and two split matrices."""
    vision = vision_part(outer)
    hidden, out = vision.positive("hidden_size"), text.positive("hidden_size")
    stated = outer.mapping("projector_patch_to_query_dict") or {}
    queries = max((it for it in stated.values() if isinstance(it, int) and 0 < it <= MAX_COUNT), default=256)
    attention = 8 * hidden * hidden + 5 * hidden
    norms = 6 * hidden
    tower = _plain_siglip(vision, has_last_norm=False)
    return replace(
        with_whole(tower, queries * hidden + attention + norms),
        split_parameters=tower.split_parameters + hidden * out + out * out,
    )


def _cohere_vision(outer: ConfigReader, text: ConfigReader) -> Encoder:
    """Return SigLIP, and a gated projector over merged patches, split over ranks."""
    vision = vision_part(outer)
    merged = outer.positive("downsample_factor", default=2) ** 2 * vision.positive("hidden_size")
    inner, out = outer.positive("alignment_intermediate_size", default=36864), text.positive("hidden_size")
    tower = _plain_siglip(vision, has_last_norm=True)
    return replace(
        tower,
        split_parameters=tower.split_parameters + merged * inner + inner + inner // 2 * out,
        whole_parameters=tower.whole_parameters + out,
    )


def _lfm2(outer: ConfigReader, text: ConfigReader) -> Encoder:
    """Return SigLIP 2 with a fixed number of positions, and a projector over merged patches."""
    vision = vision_part(outer)
    hidden = vision.positive("hidden_size")
    positions = vision.positive("num_patches", default=256) * hidden
    merged = outer.positive("downsample_factor", default=2) ** 2 * hidden
    inner, out = outer.positive("projector_hidden_size", default=2560), text.positive("hidden_size")
    norm = 2 * merged if outer.flag("projector_use_layernorm", default=True) else 0
    biases = inner + out if outer.flag("projector_bias", default=True) else 0
    split, whole = siglip(ConfigReader({**vision.values(), "image_size": vision.positive("patch_size")}))
    return Encoder(
        split_parameters=split,
        whole_parameters=whole - hidden + positions + 2 * hidden + norm + merged * inner + inner * out + biases,
        num_heads=tower_heads(vision),
    )


def _bee(outer: ConfigReader, text: ConfigReader, widening: int = 4) -> Encoder:
    """Return SigLIP up to the used layer, one learnt end of line, and a projector that widens the text's width."""
    vision = vision_part(outer)
    hidden, out = vision.positive("hidden_size"), text.positive("hidden_size")
    layer = outer.raw("vision_feature_layer")
    used = vision.positive("num_hidden_layers") + layer + 1 if isinstance(layer, int) and layer < 0 else 0
    tower = _plain_siglip(vision, has_last_norm=False, layers=max(used, 0))
    return with_whole(tower, out + 2 * hidden + sum(perceptron(hidden, widening * out, out)))


def _r(outer: ConfigReader, text: ConfigReader) -> Encoder:
    """Return R's tower: Bee's with a projector as wide as the text."""
    return _bee(outer, text, widening=1)


def _llava(outer: ConfigReader, text: ConfigReader) -> Encoder | None:
    """Return LLaVA with SigLIP up to the used layer, or with Pixtral's tower; CLIP has its rule elsewhere."""
    vision, out = vision_part(outer), text.positive("hidden_size")
    hidden, depth = vision.positive("hidden_size"), vision.positive("num_hidden_layers")
    projector, bias = perceptron(hidden, out, out)
    layer = outer.raw("vision_feature_layer")
    used = max(depth + layer + 1, 1) if isinstance(layer, int) and layer < 0 else depth
    if vision.raw("model_type") == "siglip_vision_model":
        tower = _plain_siglip(vision, has_last_norm=used == depth, layers=used)
    elif vision.raw("model_type") == "pixtral":
        split, _ = blocks(hidden, vision.positive("intermediate_size"), is_gated=True, has_biases=False)
        patches = 3 * vision.positive("patch_size") ** 2 * hidden + hidden
        tower = Encoder(
            split_parameters=used * split, whole_parameters=used * 2 * hidden + patches, num_heads=tower_heads(vision)
        )
    else:
        return None
    return replace(with_whole(tower, bias), split_parameters=tower.split_parameters + projector)


def _keye(outer: ConfigReader, text: ConfigReader, *, norms_merged: bool = False) -> Encoder:
    """Return SigLIP with a second table of positions, and a split projector of merged patches."""
    vision = vision_part(outer)
    hidden = vision.positive("hidden_size")
    merged = vision.positive("spatial_merge_size", default=2) ** 2 * hidden
    projector, bias = perceptron(merged, merged, text.positive("hidden_size"))
    tower = with_whole(_plain_siglip(vision, has_last_norm=True), KEYE_POSITIONS * hidden + bias)
    norm = 2 * (merged if norms_merged else hidden)
    return replace(with_whole(tower, norm), split_parameters=tower.split_parameters + projector)


def _keye_15(outer: ConfigReader, text: ConfigReader) -> Encoder:
    """Return Keye's tower with the norm behind the merging of patches."""
    return _keye(outer, text, norms_merged=True)


def _paddle(outer: ConfigReader, text: ConfigReader) -> Encoder:
    """Return SigLIP with its last norm, and a projector over merged patches that no rank splits."""
    vision = vision_part(outer)
    hidden = vision.positive("hidden_size")
    merged = vision.positive("spatial_merge_size", default=2) ** 2 * hidden
    tower = _plain_siglip(vision, has_last_norm=True)
    return with_whole(tower, 2 * hidden + sum(perceptron(merged, merged, text.positive("hidden_size"))))


def _hyperclova(outer: ConfigReader, text: ConfigReader) -> Encoder:
    """Return Qwen2.5-VL's tower, and one projection that no rank splits."""
    out = text.positive("hidden_size")
    return with_whole(qwen25(outer, text), vision_part(outer).positive("out_hidden_size") * out + out)


def _exaone(outer: ConfigReader, text: ConfigReader) -> Encoder:
    """Return Qwen2.5-VL's tower with fewer key-value heads."""
    vision, tower = vision_part(outer), qwen25(outer, text)
    hidden, heads = vision.positive("hidden_size"), tower_heads(vision)
    fewer = heads - vision.positive("num_key_value_heads", default=heads)
    saved = vision.positive("depth") * 2 * fewer * (hidden // heads) * (hidden + 1)
    return replace(tower, split_parameters=tower.split_parameters - saved)


def _dots(outer: ConfigReader, text: ConfigReader) -> Encoder:
    """Return dots.ocr's tower: gated, without biases, norms without bias but for the merger's."""
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


def _ernie(outer: ConfigReader, text: ConfigReader) -> Encoder:
    """Return Ernie 4.5 VL's tower, and a resampler over four patches and then two frames, split by outputs."""
    vision, out = vision_part(outer), text.positive("hidden_size")
    hidden = vision.positive("embed_dim", "hidden_size", default=1280)
    depth, patch = vision.positive("depth"), vision.positive("patch_size")
    size = int(hidden * vision.number("mlp_ratio", default=0.0)) or vision.positive("intermediate_size")
    split, whole = blocks(hidden, size)
    spatial = outer.positive("spatial_conv_size", default=2) ** 2 * outer.positive("pixel_hidden_size", default=hidden)
    temporal = spatial * outer.positive("temporal_conv_size", default=2)
    resampler, norms = 2 * spatial * spatial + 2 * spatial, 2 * spatial
    if outer.flag("use_temporal_conv", default=True):
        resampler += temporal * spatial + spatial * spatial + 2 * spatial
        norms += 2 * spatial
    return Encoder(
        split_parameters=depth * split + resampler + spatial * out + out,
        whole_parameters=depth * (whole + 4 * hidden) + 3 * patch * patch * hidden + 2 * hidden + norms + out,
        num_heads=tower_heads(vision),
    )


def _glm_ocr(outer: ConfigReader, _text: ConfigReader) -> Encoder:
    """Return GLM-OCR's gated tower with biases and head norms, and its gated merger."""
    vision = vision_part(outer)
    hidden, out, inner = (vision.positive(it) for it in ("hidden_size", "out_hidden_size", "intermediate_size"))
    depth, patch, heads = vision.positive("depth"), vision.positive("patch_size"), tower_heads(vision)
    has_biases = vision.flag("attention_bias", default=True)
    split, whole = blocks(hidden, inner, is_gated=True, has_biases=has_biases)
    patches = 3 * vision.positive("temporal_patch_size", default=2) * patch * patch * hidden + hidden
    downsampling = vision.positive("spatial_merge_size", default=2) ** 2 * hidden * out + out
    return Encoder(
        split_parameters=depth * split + out * out + 3 * out * inner,
        whole_parameters=depth * (whole + 2 * hidden + 2 * (hidden // heads))
        + patches
        + downsampling
        + hidden
        + 2 * out,
        num_heads=heads,
    )


def _glm4v_9b(outer: ConfigReader, text: ConfigReader) -> Encoder:
    """Return GLM-4V 9B's tower, whose second feed-forward matrices are split by rows, and its gated adapter."""
    vision, out = vision_part(outer), text.positive("hidden_size")
    hidden, size = vision.positive("hidden_size"), vision.positive("intermediate_size")
    depth, patch = vision.positive("num_hidden_layers"), vision.positive("patch_size")
    split, whole = blocks(hidden, size)
    inner = text.positive("ffn_hidden_size")
    patches = 3 * patch * patch * hidden + 2 * hidden + vision.positive("num_positions") * hidden
    downsampling = 4 * hidden * out + out
    return Encoder(
        split_parameters=depth * split + 3 * out * inner,
        whole_parameters=depth * (whole + 4 * hidden) + patches + out * out + 2 * out + downsampling + 2 * out,
        num_heads=tower_heads(vision),
    )


def _step3(outer: ConfigReader, text: ConfigReader) -> Encoder:
    """Return Step 3's tower, two convolutions after it, and one projection that no rank splits."""
    vision = vision_part(outer)
    hidden, patch, depth = (vision.positive(it) for it in ("hidden_size", "patch_size", "num_hidden_layers"))
    middle = vision.positive("output_hidden_size", default=4096)
    split, whole = blocks(hidden, vision.positive("intermediate_size"))
    side = vision.positive("image_size") // patch
    around = 3 * patch * patch * hidden + hidden + (side * side + 2) * hidden
    convolutions = 4 * hidden * middle + middle + 9 * middle * 2 * middle + 2 * middle
    bias = text.positive("hidden_size") if outer.flag("projector_bias", default=True) else 0
    return Encoder(
        split_parameters=depth * split,
        whole_parameters=depth * (whole + 4 * hidden)
        + around
        + convolutions
        + 2 * middle * text.positive("hidden_size")
        + bias,
        num_heads=tower_heads(vision),
    )


def _phi4(outer: ConfigReader, text: ConfigReader) -> Encoder:
    """Return Phi-4 multimodal's fixed SigLIP but for its last layer and norm, and its conformer for sound, whole.

    Vision adapters come as adapters at run time; their bytes are not among these.
    """
    out = text.positive("hidden_size")
    image = ConfigReader(
        {
            "hidden_size": PHI4_HIDDEN,
            "intermediate_size": 4304,
            "num_hidden_layers": 27,
            "num_attention_heads": 16,
            "patch_size": 14,
            "image_size": 448,
        }
    )
    tower = _plain_siglip(image, has_last_norm=False, layers=26)
    separators = 2 * PHI4_HIDDEN
    sound = ConfigReader(ConfigReader(outer.mapping("audio_processor") or {}).mapping("config") or {})
    width = sound.positive("attention_dim", default=1024)
    projectors = sum(perceptron(PHI4_HIDDEN, out, out)) + 2 * sum(perceptron(width, out, out))
    return with_whole(tower, separators + projectors + conformer(sound, width))


def _gemma4_unified(outer: ConfigReader, text: ConfigReader) -> Encoder:
    """Return Gemma 4's direct embedding of patches: no tower, two norms around one matrix, and positions."""
    vision = vision_part(outer)
    width = vision.positive("mm_embed_dim", default=3840)
    patch = vision.positive("model_patch_size", default=48)
    inputs = 3 * patch * patch
    positions = 2 * vision.positive("mm_posemb_size", default=1120) * width
    return Encoder(
        split_parameters=inputs * width + width,
        whole_parameters=positions + 2 * inputs + 4 * width + width * text.positive("hidden_size"),
    )


_RULES: Final[Mapping[str, Rule]] = MappingProxyType(
    {
        "InternVLChatModel": _internvl,
        "SkyworkR1VChatModel": _internvl,
        "H2OVLChatModel": _internvl,
        "QianfanOCRForConditionalGeneration": _internvl,
        "NVLM_D": _nvlm,
        "Eagle2_5_VLForConditionalGeneration": _eagle,
        "MiniCPMV": _minicpmv,
        "MiniCPMO": _minicpmo,
        "AriaForConditionalGeneration": _aria,
        "Cohere2VisionForConditionalGeneration": _cohere_vision,
        "Lfm2VlForConditionalGeneration": _lfm2,
        "BeeForConditionalGeneration": _bee,
        "RForConditionalGeneration": _r,
        "KeyeForConditionalGeneration": _keye,
        "KeyeVL1_5ForConditionalGeneration": _keye_15,
        "UltravoxModel": ultravox,
        "Ovis": ovis,
        "Ovis2_5": ovis25,
        "Ovis2_6ForCausalLM": ovis25,
        "Ovis2_6_MoeForCausalLM": ovis25,
        "AudioFlamingo3ForConditionalGeneration": audio_flamingo,
        "PaddleOCRVLForConditionalGeneration": _paddle,
        "OpenCUAForConditionalGeneration": qwen25,
        "HCXVisionV2ForCausalLM": _hyperclova,
        "Exaone4_5_ForConditionalGeneration": _exaone,
        "Qwen2_5OmniModel": qwen25_omni,
        "Qwen2_5OmniForConditionalGeneration": qwen25_omni,
        "Qwen3OmniMoeForConditionalGeneration": qwen3_omni,
        "Qwen2AudioForConditionalGeneration": qwen_audio,
        "DotsOCRForCausalLM": _dots,
        "Ernie4_5_VLMoeForConditionalGeneration": _ernie,
        "GlmOcrForConditionalGeneration": _glm_ocr,
        "GLM4VForCausalLM": _glm4v_9b,
        "Step3VLForConditionalGeneration": _step3,
        "Phi3VForCausalLM": phi3v,
        "DeepseekOCRForCausalLM": deepseek_ocr,
        "DeepseekVLV2ForCausalLM": deepseek_vl2,
        "NemotronH_Nano_VL_V2": nemotron_nano,
        "NemotronH_Nano_Omni_Reasoning_V3": nemotron_nano,
        "NemotronH_Super_Omni_Reasoning_V3": nemotron_nano,
        "NemotronH_Omni_Reasoning_V3": nemotron_nano,
        "MiniCPMV4_6ForConditionalGeneration": _minicpmv_46,
        "Phi4MMForCausalLM": _phi4,
        "Gemma4UnifiedForConditionalGeneration": _gemma4_unified,
    }
)


def parse_towers(config: Mapping[str, object], name: str) -> Encoder | None:
    """Return everything a multimodal model has besides its language model, or None for a text model."""
    outer, text = ConfigReader(config), text_reader(config)
    if name in _RULES:
        return _RULES[name](outer, text)
    is_llava = name == "LlavaForConditionalGeneration" and is_mapping(outer.raw("vision_config"))
    found = (_llava(outer, text) if is_llava else None) or parse_encoder(config, name) or parse_tower(config, name)
    if found is not None and name == "Gemma4ForConditionalGeneration" and is_mapping(outer.raw("audio_config")):
        return with_whole(found, gemma4_sound(audio_part(outer), text))  # the small ones hear, the large do not
    return found
