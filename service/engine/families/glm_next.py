"""GLM 5.3 Flash: delta attention beside latents over selected tokens, without positions; streams that are mixed.

Source:
    vLLM 0.33 `models/glm5next/common/`: model.py, attention.py, kda.py, mtp.py, multimodal.py.
"""

from dataclasses import replace
from typing import Final

from service.engine.config_reader import ConfigReader, unknown_kind
from service.engine.families.glm_vl import VIDEO, gated_tower
from service.engine.families.parts.attention import Mixers, alone, not_stated
from service.engine.families.parts.experts import Experts
from service.engine.families.parts.family import Family
from service.engine.families.parts.feed_forward import FeedForward
from service.engine.families.parts.latent import latent_attention, sparse_indexer
from service.engine.families.parts.mtp import Draft, like_the_last
from service.engine.families.parts.residual import hyper_connections
from service.engine.families.parts.sizes import num_hidden_layers
from service.engine.families.parts.sparsity import first_dense
from service.engine.layers import Architecture, DraftHead, KimiDeltaAttention, LatentAttention

DELTA: Final = "linear_attention"
SELECTING: Final = "deepseek_sparse_attention"
SIZES: Final = ("num_heads", "head_dim", "short_conv_kernel_size")  # of delta attention, in a part of their own
REWRITTEN_SIZES: Final = ("linear_num_heads", "linear_head_dim", "linear_conv_kernel_dim")
SELECTING_NAMES: Final = (SELECTING, "indexed_attention")  # the second as transformers writes it anew


def _attention(reader: ConfigReader) -> Mixers:
    """Return what `layer_types` names; every layer with latents selects tokens for itself."""
    kinds, layers = reader.strings("layer_types"), num_hidden_layers(reader)
    if kinds is None or len(kinds) < layers:
        raise not_stated("layer_types", f"{DELTA} or {SELECTING} per layer")
    if unknown := next((kind for kind in kinds if kind not in (DELTA, *SELECTING_NAMES)), None):
        raise unknown_kind("layer_types", unknown, f"{DELTA}, {SELECTING}")
    rewritten = reader.raw("linear_num_heads") is not None
    stated = reader if rewritten else ConfigReader(reader.mapping("linear_attn_config") or {})
    heads, width, kernel = REWRITTEN_SIZES if rewritten else SIZES
    delta = KimiDeltaAttention(
        num_heads=stated.positive(heads),
        head_dim=stated.positive(width),
        conv_kernel_size=stated.positive(kernel),
        fuses_narrow_gate=True,
    )
    latents = _latents(reader)
    return alone(delta if kind == DELTA else latents for kind in kinds[:layers])


def _latents(reader: ConfigReader) -> LatentAttention:
    """Return latents without a rotary part, and an indexer with one key for several tokens.

    Source: vLLM 0.33 `models/glm5next/common/model.py` (`_validate_supported_config`), `attention.py` (`skip_rope`).
    """
    if not reader.flag("mla_use_nope", default=True) or reader.integer("qk_rope_head_dim", default=0):
        raise unknown_kind("mla_use_nope", False, "true, with qk_rope_head_dim 0: published models have no positions")
    pool = reader.positive("index_kpool")
    if pool == 1 or not reader.flag("index_kpool_always_select_tail", default=True):
        raise unknown_kind(
            "index_kpool", pool, "above 1, with index_kpool_always_select_tail: the engine refuses others"
        )
    latents = latent_attention(reader, rotates=False)
    indexer = replace(sparse_indexer(reader, latents.q_lora_rank or 0), pool=pool, is_kept=True)
    return replace(latents, is_sparse=True, top_k=indexer.top_k, indexer=indexer, is_kept=True)


def _modules(reader: ConfigReader, architecture: Architecture, modules: int) -> DraftHead:
    """Return layers like the last with latents, in one stream."""
    head = like_the_last(reader, architecture, modules)
    return replace(head, body=replace(head.body, residual_streams=1))


_TEXT: Final = Family(
    classes=("Glm5NextForCausalLM",),
    attention=_attention,
    feed_forward=FeedForward(experts=Experts(splits_tokens=True, has_score_correction=True, sparsity=first_dense)),
    residual_streams=hyper_connections,
    mixes_streams=True,
    joins_streams=False,
    draft=Draft(build=_modules),
    prefers_fp8_cache=True,
)
FAMILIES: Final = (
    _TEXT,
    replace(
        _TEXT,
        classes=("Glm5NextForConditionalGeneration",),
        tower=gated_tower,
        largest_item=VIDEO,
    ),
)
