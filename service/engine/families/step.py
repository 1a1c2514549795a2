"""Step 1, and 3 to 3.7.

Sources:
    vLLM 0.33 `model_executor/models/`: step1.py, step3_text.py, step3_vl.py, step3p5.py (`_get_num_attention_heads`),
    step3p5_mtp.py, step3p7.py, step_vl.py.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from service.engine.config_reader import MAX_ENTRIES, ConfigReader, is_list, unknown_kind
from service.engine.families.parts.attention import Mixers, alone, base_attention, by_layer_types, not_stated, repeated
from service.engine.families.parts.experts import Experts
from service.engine.families.parts.family import Family
from service.engine.families.parts.feed_forward import FeedForward
from service.engine.families.parts.mtp import Draft, head_of, sliding_dense
from service.engine.families.parts.norms import on_heads
from service.engine.families.parts.rotary import no_tables, stated_tables
from service.engine.families.parts.towers import blocks, seen, tower_heads, vision_part
from service.engine.families.parts.wrappers import always, named_inside
from service.engine.layers import Architecture, DecoderLayer, DraftHead, Encoder, RotaryTable

MAX_DIGITS: Final = 9  # of a layer's number


def _windowed(reader: ConfigReader) -> Mixers:
    """Return windows by `layer_types`, where sliding layers may have heads of their own."""
    full = replace(base_attention(reader), has_head_gate=reader.flag("use_head_wise_attn_gate"))
    other = ConfigReader(reader.mapping("attention_other_setting") or {})
    stated = reader.optional("num_sliding_attention_heads")
    if stated is None and other.raw("attention_type") == "sliding_attention":
        stated = other.positive("num_attention_heads")
    layer_types = reader.strings("layer_types")
    if layer_types is None:
        raise not_stated("layer_types", "full_attention or sliding_attention per layer", every_layer=False)
    window = reader.positive("sliding_window")
    sliding = replace(full, num_attention_heads=stated or full.num_attention_heads, sliding_window=window)
    attentions = by_layer_types(reader, full, layer_types, window)
    return alone(full if attention == full else sliding for attention in attentions)


def _tables(reader: ConfigReader, layers: tuple[DecoderLayer, ...]) -> tuple[RotaryTable, ...]:
    """Return a table for each part of a head that layers turn, and each pace, as lists state both for every layer."""
    tables = stated_tables(reader, layers)
    fractions, paces = reader.raw("partial_rotary_factors"), reader.raw("rope_theta")
    if len(tables) != 1 or not is_list(fractions) or not is_list(paces):
        return tables
    width = tables[0].width
    stated = zip(fractions[: len(layers)], paces, strict=False)
    turned = dict.fromkeys(
        (part, pace)
        for part, pace in stated
        if isinstance(part, int | float) and isinstance(pace, int | float) and 0 < part <= 1
    )
    return tuple(replace(tables[0], width=int(width * part)) for part, _ in turned) or tables


def _grouped(reader: ConfigReader) -> Mixers:
    """Return full attention with as many key-value heads as groups, one where neither is stated (Step 1)."""
    heads = reader.positive("num_attention_groups", "num_key_value_heads", default=1)
    return repeated(reader, replace(base_attention(reader), num_key_value_heads=heads))


def _narrow_queries(reader: ConfigReader) -> Mixers:
    """Return one key-value head, and queries from a narrow projection (Step 3)."""
    attention = replace(base_attention(reader), num_key_value_heads=1)
    rank = reader.integer("share_q_dim", default=0) or attention.head_dim
    return repeated(reader, replace(attention, query_rank=rank))


def _sparsity(reader: ConfigReader, num_layers: int) -> Sequence[bool]:
    """Return the layers that `moe_layers_enum` lists in one string; without it all but the first."""
    if reader.raw("moe_layers_enum") is None:
        return [index > 0 for index in range(num_layers)]
    listed = _numbers(reader.text("moe_layers_enum"))
    return [index in listed for index in range(num_layers)]


def _numbers(stated: str) -> frozenset[int]:
    """Return the layers in a string such as "4,5,6"."""
    numbers = [number.strip() for number in stated.strip().split(",", MAX_ENTRIES)]
    if not all(number.isdecimal() and len(number) <= MAX_DIGITS for number in numbers):
        raise unknown_kind("moe_layers_enum", stated, "layer numbers with commas between")
    return frozenset(int(number) for number in numbers)


def _shared(reader: ConfigReader, _size: int, _stated: int) -> int:
    return reader.integer("share_expert_dim", default=0)


def _modules(reader: ConfigReader, architecture: Architecture, modules: int) -> DraftHead:
    """Return sliding layers, by `layer_types` beyond the model's own, each with an output head of its own."""
    kinds = reader.strings("layer_types") or ()
    beyond = kinds[len(architecture.layers) :]
    if any(kind != "sliding_attention" for kind in beyond):
        raise unknown_kind("layer_types", beyond, "sliding_attention for the prediction layers")
    head = head_of(architecture, sliding_dense(reader, architecture), modules)
    return replace(head, head_vocab_size=architecture.vocab_size)


def _scaled_tower(vision: ConfigReader, text: ConfigReader) -> Encoder:
    """Return a perception encoder with scaled layers, the two convolutions after it, and the projector."""
    width, depth = vision.positive("width", "hidden_size"), vision.positive("layers", "num_hidden_layers")
    split, whole = blocks(width, int(width * vision.number("mlp_ratio", default=8960 / 1536)))
    patch = vision.positive("patch_size")
    side = vision.positive("image_size") // patch
    around = 3 * patch * patch * width + side * side * width + 2 * width
    downsampling = 9 * (2 * width * width + 8 * width * width) + 6 * width
    return Encoder(
        split_parameters=depth * split + 4 * width * text.positive("hidden_size"),
        whole_parameters=depth * (whole + 6 * width) + around + downsampling,
        num_heads=tower_heads(vision),
    )


def _tower(outer: ConfigReader, text: ConfigReader) -> Encoder:
    """Return Step 3's tower, two convolutions after it, and one projection that no rank splits."""
    vision = vision_part(outer)
    hidden, patch = vision.positive("hidden_size"), vision.positive("patch_size")
    depth, middle = vision.positive("num_hidden_layers"), vision.positive("output_hidden_size", default=4096)
    split, whole = blocks(hidden, vision.positive("intermediate_size"))
    side, out = vision.positive("image_size") // patch, text.positive("hidden_size")
    around = 3 * patch * patch * hidden + hidden + (side * side + 2) * hidden
    convolutions = 4 * hidden * middle + middle + 9 * middle * 2 * middle + 2 * middle
    projection = 2 * middle * out + (out if outer.flag("projector_bias", default=True) else 0)
    return Encoder(
        split_parameters=depth * split,
        whole_parameters=depth * (whole + 4 * hidden) + around + convolutions + projection,
        num_heads=tower_heads(vision),
    )


_FROM_3_5: Final = Family(
    classes=("Step3p5ForCausalLM",),
    attention=_windowed,
    feed_forward=FeedForward(experts=Experts(shared=_shared, has_wide_router=True, sparsity=_sparsity)),
    head_norms=on_heads,
    draft=Draft(build=_modules, default_count=1),
    rotary=_tables,
    has_window_pool=True,
)
FAMILIES: Final = (
    Family(classes=("Step1ForCausalLM",), attention=_grouped, ties_embeddings=True, rotary=no_tables),
    Family(
        classes=("Step3TextForCausalLM",),
        attention=_narrow_queries,
        feed_forward=FeedForward(experts=Experts(shared=_shared, sparsity=_sparsity)),
    ),
    Family(classes=("Step3VLForConditionalGeneration",), wraps=always("Step3TextForCausalLM"), tower=_tower),
    _FROM_3_5,
    replace(_FROM_3_5, classes=("Step3p7ForConditionalGeneration",), tower=seen(_scaled_tower)),
    Family(classes=("StepVLForConditionalGeneration",), wraps=named_inside, tower=seen(_scaled_tower)),
)
