"""Compressed latent attention of DeepSeek V4.

Source:
    vLLM 0.33 `models/deepseek_v4/{attention,compressor}.py`.
"""

from service.engine.config_reader import ConfigReader, unknown_kind
from service.engine.errors import MissingConfigFieldError
from service.engine.families.parts.attention import Mixers, num_hidden_layers
from service.engine.layers import CompressedAttention, SparseIndexer

INDEXED_RATIO = 4
KNOWN_RATIOS = frozenset({0, 1, INDEXED_RATIO, 128})

# Kinds of layers in newer files, and their rates where the config leaves them out.
RATES = {"sliding_attention": 0, "compressed_sparse_attention": INDEXED_RATIO, "heavily_compressed_attention": 128}


def compressed(reader: ConfigReader) -> Mixers:
    """Return each layer's attention by `compress_ratios`: 0 for a window alone, 4 with an indexer, 128 without."""
    ratios = _ratios(reader)
    layers = num_hidden_layers(reader)
    if ratios is None or len(ratios) < layers:
        raise MissingConfigFieldError(
            "the config does not state compress_ratios for every layer",
            field="model_config.compress_ratios",
            accepted="0, 4 or 128 per layer",
        )
    return tuple((_layer(reader, ratio),) for ratio in ratios[:layers])


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


def _layer(reader: ConfigReader, ratio: int) -> CompressedAttention:
    if ratio not in KNOWN_RATIOS:
        raise unknown_kind("compress_ratios", ratio, "0, 4, 128")
    q_lora_rank = reader.positive("q_lora_rank")
    indexer = SparseIndexer(
        num_heads=reader.positive("index_n_heads"),
        head_dim=reader.positive("index_head_dim"),
        top_k=reader.positive("index_topk"),
        q_lora_rank=q_lora_rank,
    )
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
