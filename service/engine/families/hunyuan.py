"""Hunyuan, dense, alone and behind a tower, with experts, and V4 with sparse latents and hyper-connections.

Sources:
    vLLM 0.33 `model_executor/models/hy_v3.py`, `hy_v3_mtp.py`, `models/hy_v4/nvidia/model.py`,
    `model_executor/models/transformers/base.py` with transformers 5.24 `models/hunyuan_vl/modeling_hunyuan_vl.py`.
"""

from dataclasses import replace
from typing import Final

from service.engine.config_reader import ConfigReader, is_list, unknown_kind
from service.engine.families.parts.attention import Mixers, full_only, windowed_as_stated
from service.engine.families.parts.experts import Experts
from service.engine.families.parts.family import Family
from service.engine.families.parts.feed_forward import FeedForward
from service.engine.families.parts.latent import latent_attention, selecting
from service.engine.families.parts.mtp import Draft, like_the_last
from service.engine.families.parts.norms import on_heads, on_heads_where
from service.engine.families.parts.residual import hyper_connections
from service.engine.families.parts.sparsity import first_dense
from service.engine.families.parts.towers import blocks, vision_part
from service.engine.families.parts.wrappers import always
from service.engine.layers import Encoder, Mlp


def _tower(outer: ConfigReader, text: ConfigReader) -> Encoder:
    """Return a transformer with a table of positions, two convolutions and a projection, as Transformers has them.

    Its plan of ranks names the language model alone, so every rank holds the whole tower.
    """
    vision, out = vision_part(outer), text.positive("hidden_size")
    hidden, merged = vision.positive("hidden_size"), vision.positive("spatial_merge_size", default=2)
    split, biases = blocks(hidden, vision.positive("intermediate_size"))
    patch = vision.positive("patch_size", default=16)
    positions = (vision.positive("max_image_size", default=2048) // patch) ** 2 + 1
    around = (3 * patch * patch + 1 + positions) * hidden
    convolutions = (merged * merged * hidden + 1) * 2 * hidden + (2 * hidden + 1) * 4 * hidden
    projection = (4 * hidden + 1) * out + 4 * hidden + 3 * out
    layers = vision.positive("num_hidden_layers") * (split + biases + 4 * hidden)
    return Encoder(split_parameters=0, whole_parameters=layers + around + convolutions + projection + hidden + out)


def _alike(reader: ConfigReader, num_layers: int) -> tuple[Mlp, ...]:
    """Return experts whose per-layer lists are one number each, which the engine takes them for."""
    values = reader.values()
    for field in ("moe_topk", "num_shared_expert", "moe_intermediate_size"):
        stated = reader.raw(field)
        if not is_list(stated):
            continue
        if not stated or any(number != stated[0] for number in stated):
            raise unknown_kind(field, stated, "the same number for every layer")
        values[field] = stated[0]
    return FeedForward()(ConfigReader(values), num_layers)


def _indexed(reader: ConfigReader) -> Mixers:
    """Return sparse latents with sinks and a gate."""
    kinds = set(reader.strings("layer_types") or ()) - {"indexed_attention"}
    if kinds:
        raise unknown_kind("layer_types", min(kinds), "indexed_attention")
    types = ["S" if kind == "shared" else "F" for kind in reader.strings("indexer_types") or ()]
    stated = reader.restated({"index_topk_pattern": types}) if types else reader
    return selecting(stated, replace(latent_attention(stated), has_sinks=True, has_output_gate=True))


_EXPERTS: Final = FeedForward(experts=Experts(has_wide_router=True, has_score_correction=True, sparsity=first_dense))
FAMILIES: Final = (
    Family(classes=("HunYuanDenseV1ForCausalLM",), attention=windowed_as_stated, head_norms=on_heads),
    Family(classes=("HunYuanVLForConditionalGeneration",), wraps=always("HunYuanDenseV1ForCausalLM"), tower=_tower),
    Family(
        classes=("HunYuanMoEV1ForCausalLM",),
        attention=full_only,
        feed_forward=_alike,
        head_norms=on_heads_where("use_qk_norm", default=True),
    ),
    Family(
        classes=("HYV3ForCausalLM",),
        attention=full_only,
        feed_forward=_EXPERTS,
        head_norms=on_heads_where("qk_norm"),
        draft=Draft(build=like_the_last),
    ),
    Family(
        classes=("HYV4ForCausalLM",),
        attention=_indexed,
        feed_forward=_EXPERTS,
        residual_streams=hyper_connections,
    ),
)
