"""Multi-head latent attention, with and without an indexer that selects tokens.

Sources:
    vLLM 0.33 `model_executor/models/deepseek_v2.py`, `models/deepseek_v32/attention.py`.
"""

from dataclasses import replace

from service.engine.config_reader import ConfigReader
from service.engine.families.parts.attention import Mixers, alone, full_only, repeated
from service.engine.families.parts.sizes import num_hidden_layers
from service.engine.layers import LatentAttention, SparseIndexer

# What the config class supplies when the field is left out altogether.
DEFAULT_Q_LORA_RANK = 1536


def latent(reader: ConfigReader) -> Mixers:
    """Return one latent per token in every layer."""
    return repeated(reader, latent_attention(reader))


def latent_if_stated(reader: ConfigReader) -> Mixers:
    """Return latent attention where the config has a latent, grouped attention otherwise."""
    return full_only(reader) if reader.raw("kv_lora_rank") is None else latent(reader)


def sparse_latent(reader: ConfigReader) -> Mixers:
    """Return latent attention over selected tokens; some layers reuse the selection of an earlier one."""
    return selecting(reader, latent_attention(reader))


def selecting(reader: ConfigReader, attention: LatentAttention) -> Mixers:
    """Return these latents over selected tokens.

    Without `indexer_types` or `index_topk_pattern`, layer i selects anew when
    max(i - offset + 1, 0) is a multiple of `index_topk_freq`.
    """
    shared = replace(attention, is_sparse=True, top_k=reader.positive("index_topk"))
    indexed = replace(shared, indexer=sparse_indexer(reader, shared.q_lora_rank or 0))
    layers = num_hidden_layers(reader)
    pattern = reader.raw("index_topk_pattern")
    every = reader.positive("index_topk_freq", default=1)
    offset = reader.integer("index_skip_topk_offset", default=2)

    def reuses(index: int) -> bool:
        if isinstance(pattern, str | list | tuple):
            return index < len(pattern) and pattern[index] == "S"
        return max(index - offset + 1, 0) % every != 0

    return alone(shared if reuses(index) else indexed for index in range(layers))


def sparse_indexer(reader: ConfigReader, q_lora_rank: int) -> SparseIndexer:
    """Return the indexer that the config states."""
    return SparseIndexer(
        num_heads=reader.positive("index_n_heads"),
        head_dim=reader.positive("index_head_dim"),
        top_k=reader.positive("index_topk"),
        q_lora_rank=q_lora_rank,
    )


def latent_attention(reader: ConfigReader, *, rotates: bool = True) -> LatentAttention:
    """Return the latent that the config states, with a rotary part or without."""
    return LatentAttention(
        num_attention_heads=reader.positive("num_attention_heads"),
        q_lora_rank=_q_lora_rank(reader),
        kv_lora_rank=reader.positive("kv_lora_rank"),
        qk_nope_head_dim=reader.positive("qk_nope_head_dim"),
        qk_rope_head_dim=reader.positive("qk_rope_head_dim") if rotates else 0,
        v_head_dim=reader.positive("v_head_dim"),
    )


def _q_lora_rank(reader: ConfigReader) -> int | None:
    """Return the query's latent width: stated, null for none, or the config class's default."""
    if reader.states("q_lora_rank"):
        return reader.optional("q_lora_rank") or None
    return DEFAULT_Q_LORA_RANK
