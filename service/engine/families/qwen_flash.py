"""Qwen 3.8 Flash Next: delta nets beside softmax heads over selected tokens, mixed streams, and a table of n-grams.

Sources:
    vLLM 0.33 `models/qwen4_exp/nvidia/`: model.py, qsa.py, ple_layer.py, ngram_embedding.py, mtp.py;
    `model_executor/models/config.py` (`Qwen4ExpForConditionalGenerationConfig`).
"""

from dataclasses import replace
from typing import Final

from service.engine.arithmetic import round_up
from service.engine.config_reader import ConfigReader, unknown_kind
from service.engine.families.parts.attention import FULL_KINDS, Mixers, base_attention, not_stated
from service.engine.families.parts.experts import Experts
from service.engine.families.parts.family import Family
from service.engine.families.parts.feed_forward import FeedForward
from service.engine.families.parts.layer_kinds import last
from service.engine.families.parts.mtp import Draft, under_mtp
from service.engine.families.parts.norms import on_heads
from service.engine.families.parts.patch_mergers import stacked_merging
from service.engine.families.parts.profiling import Item
from service.engine.families.parts.recurrent import delta_net
from service.engine.families.parts.sizes import hidden_size, num_hidden_layers
from service.engine.families.parts.towers import divided
from service.engine.layers import (
    Architecture,
    Attention,
    DraftHead,
    GatedConnections,
    GatedDeltaNet,
    KeySelector,
    NgramMemory,
    prime_rows,
)

DELTA: Final = "linear_attention"
SELECTING: Final = frozenset({*FULL_KINDS, "qwen_sparse_attention", "indexed_attention"})
STREAMS: Final = "hc_count"
POOLS: Final = (2, 4, 8, 16)  # tokens of a key, that divide a block of 16
MOST_HEADS: Final = 256  # of n-grams, in all layers; the published model has 16
LARGEST_TABLE: Final = 1 << 40  # rows of one head; the published model has 20 million


def _attention(reader: ConfigReader) -> Mixers:
    """Return what `layer_types` names, and n-grams in the layers that `ple_layer_ids` counts from 1."""
    kinds, layers = reader.strings("layer_types"), num_hidden_layers(reader)
    if kinds is None or len(kinds) < layers:
        raise not_stated("layer_types", f"{DELTA} or qwen_sparse_attention per layer")
    if unknown := next((kind for kind in kinds if kind != DELTA and kind not in SELECTING), None):
        raise unknown_kind("layer_types", unknown, f"{DELTA}, qwen_sparse_attention")
    delta, heads = delta_net(reader), replace(base_attention(reader), has_output_gate=True, selector=_selector(reader))
    remembering = frozenset(reader.integers("ple_layer_ids") or ())
    plain: dict[bool, tuple[Attention, ...]] = {True: (delta,), False: (heads,)}
    memory = _memory(reader, delta) if remembering else None
    if remembering and any(not 1 <= layer <= layers or kinds[layer - 1] != DELTA for layer in remembering):
        raise unknown_kind("ple_layer_ids", sorted(remembering), f"layers of {DELTA}, counted from 1 to {layers}")
    joined = (delta,) if memory is None else (memory, delta)
    return tuple(
        joined if index + 1 in remembering else plain[kind == DELTA] for index, kind in enumerate(kinds[:layers])
    )


def _selector(reader: ConfigReader) -> KeySelector:
    if (keys := reader.positive("indexer_kv_heads", default=1)) != 1:
        raise unknown_kind("indexer_kv_heads", keys, "1")
    if (pool := reader.positive("indexer_compress_ratio")) not in POOLS:
        raise unknown_kind("indexer_compress_ratio", pool, ", ".join(map(str, POOLS)))
    return KeySelector(
        num_heads=reader.positive("indexer_n_heads"),
        head_dim=reader.positive("indexer_head_dim"),
        pool=pool,
        top_k=reader.positive("indexer_budget"),
    )


def _memory(reader: ConfigReader, delta: GatedDeltaNet) -> NgramMemory:
    return NgramMemory(
        num_streams=_streams(reader),
        hidden_size=hidden_size(reader),
        embedding_size=reader.positive("ple_embed_dim"),
        longest_ngram=reader.positive("ngram_size"),
        conv_kernel_size=reader.positive("ple_conv_kernel_size"),
        beside=delta.checkpoint,
    )


def _streams(reader: ConfigReader) -> int:
    """Return the streams, of which the engine wants several."""
    if (streams := reader.positive(STREAMS)) == 1:
        raise unknown_kind(STREAMS, streams, "above 1: the engine refuses a single stream")
    return streams


def _connections(reader: ConfigReader) -> GatedConnections:
    return GatedConnections(num_streams=_streams(reader), rank=reader.positive("hc_lowrank"))


def _table(reader: ConfigReader) -> int:
    """Return the parameters of the tables of n-grams: of every head in every layer that has them, as rows of primes."""
    layers = len(frozenset(reader.integers("ple_layer_ids") or ()))
    if not layers:
        return 0
    heads = (reader.positive("ngram_size") - 1) * reader.positive("heads_per_ngram")
    width = reader.positive("ple_embed_dim")
    if not 1 <= heads <= MOST_HEADS // layers:
        raise unknown_kind("heads_per_ngram", heads, f"1 to {MOST_HEADS // layers} heads for all n-grams of a layer")
    if width % heads:
        raise unknown_kind("ple_embed_dim", width, f"a multiple of the {heads} heads of n-grams")
    if (base := reader.positive("ngram_vocab_size_base")) > LARGEST_TABLE:
        raise unknown_kind("ngram_vocab_size_base", base, f"1 to {LARGEST_TABLE}")
    rows = prime_rows(base, layers * heads)
    return round_up(rows, reader.positive("make_ngram_vocab_size_divisible_by", default=1)) * (width // heads)


def _modules(_reader: ConfigReader, architecture: Architecture, modules: int) -> DraftHead:
    """Return layers like the last that selects tokens, over all streams, which are normed together."""
    layer = last(architecture.layers, lambda layer: any(mixer.is_attention for mixer in layer.mixers))
    head = under_mtp(architecture, layer, modules)
    return replace(head, num_norms=1 + architecture.residual_streams)


_TEXT: Final = Family(
    classes=("Qwen4ExpForCausalLM",),
    attention=_attention,
    feed_forward=FeedForward(experts=Experts(has_shared_gate=True, splits_tokens=True)),
    head_norms=on_heads,
    norms_per_layer=0,  # connections have them
    residual_streams=_streams,
    gated_connections=_connections,
    hosted_parameters=_table,
    draft=Draft(build=_modules, count_name="mtp_num_hidden_layers", default_count=1),
    has_stages=False,
    runs_in_float16=False,
)
FAMILIES: Final = (
    _TEXT,
    replace(
        _TEXT,
        classes=("Qwen4ExpForConditionalGeneration",),
        tower=divided(stacked_merging),
        largest_item=Item(tokens=16_384, patches_per_token=4),  # of 16,384 x 28 x 28 pixels
    ),
)
