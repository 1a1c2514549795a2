"""Multi-head latent attention of the DeepSeek line, with and without a sparse indexer.

Sources:
    vLLM 0.33 `model_executor/models/deepseek_v2.py`, `models/deepseek_v32/attention.py`.
"""

from service.engine.architecture import LatentAttention, SparseIndexer
from service.engine.config.attention import Mixers, full_only, num_hidden_layers
from service.engine.config.reader import ConfigReader


def latent(reader: ConfigReader) -> Mixers:
    """Return one latent per token in every layer."""
    attention = _latent_attention(reader)
    return ((attention,),) * num_hidden_layers(reader)


def latent_if_stated(reader: ConfigReader) -> Mixers:
    """Return latent attention where the config has a latent, grouped attention otherwise."""
    return full_only(reader) if reader.raw("kv_lora_rank") is None else latent(reader)


def _latent_attention(reader: ConfigReader) -> LatentAttention:
    return LatentAttention(
        num_attention_heads=reader.positive("num_attention_heads"),
        q_lora_rank=reader.optional("q_lora_rank") or None,
        kv_lora_rank=reader.positive("kv_lora_rank"),
        qk_nope_head_dim=reader.positive("qk_nope_head_dim"),
        qk_rope_head_dim=reader.positive("qk_rope_head_dim"),
        v_head_dim=reader.positive("v_head_dim"),
    )
