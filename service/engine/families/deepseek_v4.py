"""DeepSeek V4: latents with a compressed past, hyper-connections, experts fixed by token in the first layers.

Sources:
    vLLM 0.33 `models/deepseek_v4/{attention,compressor}.py`, `models/deepseek_v4/nvidia/mtp.py`.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from service.engine.config_reader import ConfigReader, unknown_kind
from service.engine.families.parts.attention import Mixers, alone, not_stated
from service.engine.families.parts.experts import COUNT_NAMES, Experts
from service.engine.families.parts.family import Family
from service.engine.families.parts.feed_forward import FeedForward, FeedForwardRule
from service.engine.families.parts.latent import sparse_indexer
from service.engine.families.parts.mtp import Draft, head_of
from service.engine.families.parts.residual import hyper_connections
from service.engine.families.parts.sizes import num_hidden_layers
from service.engine.formats.elements import SINGLE_BYTES
from service.engine.layers import Architecture, CompressedAttention, DecoderLayer, DraftHead, Mlp, RotaryTable

INDEXED_RATIO: Final = 4
ROTARY_DIM: Final = 64  # of a latent, where the config does not say [elements]
KNOWN_RATIOS: Final = frozenset({0, 1, INDEXED_RATIO, 128})
# Kinds of layers in newer files, and their rates where the config leaves them out.
RATES: Final = {
    "sliding_attention": 0,
    "compressed_sparse_attention": INDEXED_RATIO,
    "heavily_compressed_attention": 128,
}


def _attention(reader: ConfigReader) -> Mixers:
    """Return each layer's attention by `compress_ratios`: 0 for a window alone, 4 with an indexer, 128 without."""
    ratios = _ratios(reader)
    layers = num_hidden_layers(reader)
    if ratios is None or len(ratios) < layers:
        raise not_stated("compress_ratios", "0, 4 or 128 per layer")
    kinds = {ratio: _compressed(reader, ratio) for ratio in dict.fromkeys(ratios[:layers])}
    return alone(kinds[ratio] for ratio in ratios[:layers])


def _ratios(reader: ConfigReader) -> tuple[int, ...] | None:
    """Return the tokens behind one kept latent: stated per layer, or per kind of layer in `compress_rates`."""
    stated, kinds = reader.integers("compress_ratios"), reader.strings("layer_types")
    if stated is not None or kinds is None:
        return stated
    rates = ConfigReader(reader.mapping("compress_rates") or {})
    for kind in kinds:
        if kind not in RATES:
            raise unknown_kind("layer_types", kind, ", ".join(RATES))
    return tuple(rates.integer(kind, default=RATES[kind]) for kind in kinds)


def _compressed(reader: ConfigReader, ratio: int) -> CompressedAttention:
    if ratio not in KNOWN_RATIOS:
        raise unknown_kind("compress_ratios", ratio, "0, 4, 128")
    q_lora_rank = reader.positive("q_lora_rank")
    indexer = sparse_indexer(reader, q_lora_rank)
    return CompressedAttention(
        num_attention_heads=reader.positive("num_attention_heads"),
        head_dim=reader.positive("head_dim"),
        q_lora_rank=q_lora_rank,
        o_lora_rank=reader.positive("o_lora_rank"),
        o_groups=reader.positive("o_groups"),
        sliding_window=reader.positive("sliding_window"),
        compress_ratio=max(ratio, 1),
        indexer=indexer if ratio == INDEXED_RATIO else None,
    )


def scheme_of(reader: ConfigReader) -> str:
    """Return how quantized checkpoints store experts: four bits beside fp8 for the rest."""
    return "mxfp4" if reader.raw("expert_dtype") in (None, "fp4") else ""


def _scheme_of_modules(reader: ConfigReader) -> str:
    """Return the same for prediction modules, which checkpoints in NVFP4 leave as they were."""
    return "mxfp4" if scheme_of(reader) else ""


def feed_forward_of(scheme: Callable[[ConfigReader], str]) -> FeedForwardRule:
    """Return the rule of experts in every layer, fixed by token in the first few."""
    experts = Experts(scheme=scheme, splits_tokens=True, has_score_correction=True)
    usual = FeedForward(experts=experts)

    def rule(reader: ConfigReader, num_layers: int) -> tuple[Mlp, ...]:
        as_usual, num_experts = usual(reader, num_layers), reader.integer(*COUNT_NAMES, default=0)
        if num_experts <= 1:
            return as_usual
        routed = experts.read(reader, num_experts, is_gated=True)
        hashed = replace(routed, hash_table_rows=reader.positive("vocab_size"), has_score_correction=False)
        kinds = reader.strings("mlp_layer_types") or ()
        first = reader.integer("num_hash_layers", default=kinds.count("hash_moe"))
        return tuple(hashed if index < first else routed for index in range(num_layers))

    return rule


def _modules(reader: ConfigReader, architecture: Architecture, modules: int) -> DraftHead:
    """Return layers with their window alone; both projections are quantized with the rest."""
    layers = architecture.layers
    mlp = feed_forward_of(_scheme_of_modules)(reader, len(layers))[-1]
    head = head_of(architecture, replace(layers[-1], mixers=(_compressed(reader, 0),), mlp=mlp), modules)
    return replace(head, projection_module=head.layer_modules[0] + "e_proj", projection_scale_bytes=1)


def _tables(reader: ConfigReader, layers: tuple[DecoderLayer, ...]) -> tuple[RotaryTable, ...]:
    """Return a table in fp32 for compressed layers, and one for layers with their window alone.

    Source: vLLM 0.33 `models/deepseek_v4/attention.py` (`rotary_emb`, `compress_rope`).
    """
    compressed = {ratio > 1 for ratio in (_ratios(reader) or ())[: len(layers)]}
    table = RotaryTable(
        positions=reader.positive("max_position_embeddings"),
        width=reader.integer("qk_rope_head_dim", default=ROTARY_DIM),
        element_bytes=SINGLE_BYTES,
    )
    return (table,) * len(compressed)


FAMILIES: Final = (
    Family(
        classes=("DeepseekV4ForCausalLM",),
        attention=_attention,
        feed_forward=feed_forward_of(scheme_of),
        residual_streams=hyper_connections,
        rotary=_tables,
        mixes_streams=True,
        draft=Draft(build=_modules),
    ),
)
