"""DeepSeek V4.1: latents whose compressed past few layers keep for all, tables of n-grams, and a tower for images.

Sources:
    vLLM 0.33 `models/deepseek_v41/`: attention.py, compressor.py, common/engram.py, nvidia/model.py (no weights join
    the streams before the head), nvidia/dspark.py, nvidia/vl_model.py; `models/deepseek_v4/common/vision.py`;
    `config/speculative.py` ("DeepSeek V4.1 has no classic-MTP draft").
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from service.engine.config_reader import ConfigReader, unknown_kind
from service.engine.families.deepseek_v4 import ROTARY_DIM, feed_forward_of, scheme_of
from service.engine.families.parts.attention import Mixers, not_stated
from service.engine.families.parts.family import Family
from service.engine.families.parts.latent import sparse_indexer
from service.engine.families.parts.mtp import Draft, head_of
from service.engine.families.parts.profiling import Item
from service.engine.families.parts.residual import hyper_connections
from service.engine.families.parts.sizes import hidden_size, num_hidden_layers
from service.engine.families.parts.towers import blocks, divided, perceptron, tower_heads
from service.engine.formats.elements import SINGLE_BYTES
from service.engine.layers import (
    Architecture,
    DecoderLayer,
    DraftHead,
    Encoder,
    NgramGate,
    RotaryTable,
    SourcedAttention,
)

RATIOS: Final = (0, 1, 2)
IMAGE_TOKENS: Final = 1_024  # of the largest image
MOST_HEADS: Final = 256  # of n-grams in one layer; the published model has 24


def _attention(reader: ConfigReader) -> Mixers:
    """Return each layer's attention by `compress_ratios` and the sources of pasts and selections, and its n-grams."""
    ratios, layers = reader.integers("compress_ratios"), num_hidden_layers(reader)
    if ratios is None or len(ratios) < layers:
        raise not_stated("compress_ratios", "0, 1 or 2 per layer")
    ratios = ratios[:layers]
    if unknown := next((ratio for ratio in ratios if ratio not in RATIOS), None):
        raise unknown_kind("compress_ratios", unknown, ", ".join(map(str, RATIOS)))
    keeping, selecting = _sources(reader, "kv_source_layer_ids"), _sources(reader, "index_source_layer_ids")
    window = _window(reader)
    kinds: dict[tuple[int, int | None, bool], SourcedAttention] = {(0, None, False): window}
    mixers = []
    for index, ratio in enumerate(ratios):
        source = _source_of(index, ratio, ratios, keeping, selecting)
        selects = source is not None and index in selecting
        key = (index if selects else 0, source, selects)
        if key not in kinds:
            kinds[key] = _reading(reader, window, index, source, selects=selects)
        mixers.append((kinds[key],))
    return _with_tables(reader, mixers)


def _sources(reader: ConfigReader, name: str) -> tuple[int, ...]:
    return tuple(sorted(frozenset(reader.integers(name) or ())))


def _source_of(
    index: int, ratio: int, ratios: Sequence[int], keeping: Sequence[int], selecting: Sequence[int]
) -> int | None:
    """Return whose past a layer reads; None where it has its window alone.

    Raises:
        UnsupportedModelError: no layer before it keeps a past or selects of one, or that one has another ratio.
    """
    if not ratio:
        return None
    for name, sources in (("kv_source_layer_ids", keeping), ("index_source_layer_ids", selecting)):
        before = [source for source in sources if source <= index]
        if not before or ratios[before[-1]] != ratio:
            raise unknown_kind(name, list(sources), f"a layer of ratio {ratio} none behind layer {index}")
    source = next(layer for layer in reversed(keeping) if layer <= index)
    if source == index and index not in selecting:
        raise unknown_kind("index_source_layer_ids", list(selecting), f"layer {index}, which keeps keys, among them")
    return source


def _window(reader: ConfigReader) -> SourcedAttention:
    return SourcedAttention(
        num_attention_heads=reader.positive("num_attention_heads"),
        head_dim=reader.positive("head_dim"),
        q_lora_rank=reader.positive("q_lora_rank"),
        o_lora_rank=reader.positive("o_lora_rank"),
        o_groups=reader.positive("o_groups"),
        sliding_window=reader.positive("sliding_window"),
        compress_ratio=1,
    )


def _reading(
    reader: ConfigReader, window: SourcedAttention, index: int, source: int | None, *, selects: bool
) -> SourcedAttention:
    """Return a layer that reads a past: its own, or that of the source before it."""
    ratios = reader.integers("compress_ratios") or ()
    chooses = index == reader.integer("candidate_source_layer_id", default=0) and selects
    return replace(
        window,
        compress_ratio=ratios[index],
        shares_cache_with=None if source == index else source,
        is_source=source == index,
        top_k=reader.positive("index_topk"),
        num_blocks_chosen=reader.integer("candidate_topk_blocks", default=0) if chooses else 0,
        indexer=sparse_indexer(reader, window.q_lora_rank) if selects else None,
    )


def _with_tables(reader: ConfigReader, mixers: Sequence[tuple[SourcedAttention]]) -> Mixers:
    """Return the layers, of which those in `engram_layer_ids` look n-grams up before they attend."""
    remembering = _sources(reader, "engram_layer_ids")
    if not remembering:
        return tuple(mixers)
    if remembering[0] < 0 or remembering[-1] >= len(mixers):
        raise unknown_kind("engram_layer_ids", list(remembering), f"layers from 0 to {len(mixers) - 1}")
    heads = (reader.positive("engram_max_ngram_size") - 1) * reader.positive("engram_n_heads")
    if not 1 <= heads <= MOST_HEADS:
        raise unknown_kind("engram_n_heads", heads, f"1 to {MOST_HEADS} heads for all n-grams of a layer")
    gate = NgramGate(
        num_streams=hyper_connections(reader),
        hidden_size=hidden_size(reader),
        embedding_size=heads * reader.positive("engram_head_dim"),
    )
    return tuple((gate, *layer) if index in remembering else layer for index, layer in enumerate(mixers))


def _tables(reader: ConfigReader) -> int:
    """Return the parameters of the tables of n-grams, whose rows the config states."""
    layers = len(_sources(reader, "engram_layer_ids"))
    if not layers:
        return 0
    rows = reader.integers("engram_num_embeddings") or ()
    if len(rows) != layers or min(rows) <= 0:
        raise unknown_kind("engram_num_embeddings", list(rows), f"the rows of {layers} tables, one for each layer")
    return sum(rows) * reader.positive("engram_head_dim")


def _rotary(reader: ConfigReader, layers: tuple[DecoderLayer, ...]) -> tuple[RotaryTable, ...]:
    """Return a table in fp32 for layers that read a past, and one for those with their window alone."""
    table = RotaryTable(
        positions=reader.positive("max_position_embeddings"),
        width=reader.integer("qk_rope_head_dim", default=ROTARY_DIM),
        element_bytes=SINGLE_BYTES,
    )
    ratios = (reader.integers("compress_ratios") or ())[: len(layers)]
    return (table,) * len({ratio > 0 for ratio in ratios})


def _stages(reader: ConfigReader, architecture: Architecture, stages: int) -> DraftHead:
    """Return layers with their window and fewer experts, which draft all tokens of a step at once (DSpark)."""
    own = architecture.layers[-1].mlp
    mlp = feed_forward_of(scheme_of)(_drafting(reader), 1)[0] if own.has_experts else own
    layer = replace(architecture.layers[-1], mixers=(_window(reader),), mlp=mlp)
    head = head_of(architecture, layer, stages, first="mtp")
    return replace(
        head,
        num_modules=1,
        joined_states=len(reader.integers("dspark_target_layer_ids") or (0,)),
        num_norms=2,
        projection_module="mtp.0.main_proj",
        projection_scale_bytes=1,
        drafts_at_once=True,
        pair_rank=reader.integer("dspark_markov_rank", default=0),
        method="dspark",
    )


def _drafting(reader: ConfigReader) -> ConfigReader:
    """Return a config with the experts of the layers that draft, where it states these apart."""
    names = {"n_routed_experts": "dspark_n_routed_experts", "num_experts_per_tok": "dspark_num_experts_per_tok"}
    return reader.restated(
        {own: reader.positive(name) for own, name in names.items() if reader.integer(name, default=0)}
    )


def _tower(vision: ConfigReader, text: ConfigReader) -> Encoder:
    """Return gated layers with biases around attention alone, and a projector of nine patches."""
    hidden, size = vision.positive("hidden_size"), vision.positive("intermediate_size")
    split, _ = blocks(hidden, size, is_gated=True, has_biases=False)
    projector, bias = perceptron(
        hidden * vision.positive("downsample_ratio", default=3) ** 2, hidden_size(text), hidden_size(text)
    )
    patches = (3 * vision.positive("patch_size") ** 2 + 1) * hidden
    delimiters = 3 * hidden_size(text)
    depth = vision.positive("num_hidden_layers")
    return Encoder(
        split_parameters=depth * (split + 3 * hidden) + projector,
        whole_parameters=depth * 3 * hidden + hidden + patches + bias + delimiters,
        num_heads=tower_heads(vision),
    )


FAMILIES: Final = (
    Family(
        classes=("DeepseekV41ForCausalLM",),
        attention=_attention,
        feed_forward=feed_forward_of(scheme_of),
        residual_streams=hyper_connections,
        rotary=_rotary,
        mixes_streams=True,
        joins_streams=False,
        hosted_parameters=_tables,
        hosts_fp8=True,
        tower=divided(_tower),
        largest_item=Item(tokens=IMAGE_TOKENS, patches_per_token=9, is_gated=True),
        draft=Draft(build=_stages),
    ),
)
