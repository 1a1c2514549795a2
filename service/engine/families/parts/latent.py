"""Multi-head latent attention of the DeepSeek line, with and without a sparse indexer.

Sources:
    vLLM 0.33 `model_executor/models/deepseek_v2.py`, `models/deepseek_v32/attention.py`.
"""

from dataclasses import replace

from service.engine.config_reader import ConfigReader, unknown_kind
from service.engine.errors import MissingConfigFieldError
from service.engine.families.parts.attention import Mixers, full_only, num_hidden_layers
from service.engine.layers import KimiDeltaAttention, LatentAttention, SparseIndexer

# What the DeepSeek config class supplies when the field is left out altogether.
DEFAULT_Q_LORA_RANK = 1536


def latent(reader: ConfigReader) -> Mixers:
    """Return one latent per token in every layer."""
    attention = latent_attention(reader)
    return ((attention,),) * num_hidden_layers(reader)


def latent_heads(reader: ConfigReader) -> Mixers:
    """Return latent attention that keeps every head's key and value (vLLM 0.33 `model_executor/models/minicpm3.py`)."""
    return ((replace(latent_attention(reader), keeps_heads=True),),) * num_hidden_layers(reader)


def latent_twice(reader: ConfigReader) -> Mixers:
    """Return LongCat's rule: two latents in every layer (vLLM 0.33 `model_executor/models/longcat_flash.py`)."""
    attention = latent_attention(reader)
    return ((attention, attention),) * num_hidden_layers(reader)


def latent_if_stated(reader: ConfigReader) -> Mixers:
    """Return latent attention where the config has a latent, grouped attention otherwise."""
    return full_only(reader) if reader.raw("kv_lora_rank") is None else latent(reader)


def sparse_latent(reader: ConfigReader) -> Mixers:
    """Return latent attention over selected tokens; some layers reuse the selection of an earlier one.

    Without `indexer_types` or `index_topk_pattern`, layer i selects anew when
    max(i - offset + 1, 0) is a multiple of `index_topk_freq`.
    """
    shared = replace(latent_attention(reader), is_sparse=True)
    selecting = replace(
        shared,
        indexer=SparseIndexer(
            num_heads=reader.positive("index_n_heads"),
            head_dim=reader.positive("index_head_dim"),
            top_k=reader.positive("index_topk"),
            q_lora_rank=shared.q_lora_rank or 0,
        ),
    )
    layers = num_hidden_layers(reader)
    pattern = reader.raw("index_topk_pattern")
    every = reader.positive("index_topk_freq", default=1)
    offset = reader.integer("index_skip_topk_offset", default=2)

    def reuses(index: int) -> bool:
        if isinstance(pattern, str | list | tuple):
            return index < len(pattern) and pattern[index] == "S"
        return max(index - offset + 1, 0) % every != 0

    return tuple((shared,) if reuses(index) else (selecting,) for index in range(layers))


def hunyuan_v4(reader: ConfigReader) -> Mixers:
    """Return Hunyuan V4's rule: sparse latents with sinks and a gate (vLLM 0.33 `models/hy_v4/nvidia/model.py`)."""
    kinds = set(reader.strings("layer_types") or ()) - {"indexed_attention"}
    if kinds:
        raise unknown_kind("layer_types", min(kinds), "indexed_attention")
    types = ["S" if kind == "shared" else "F" for kind in reader.strings("indexer_types") or ()]
    stated = reader.restated({"index_topk_pattern": types}) if types else reader
    return tuple(
        tuple(replace(it, has_sinks=True, has_output_gate=True) for it in layer if isinstance(it, LatentAttention))
        for layer in sparse_latent(stated)
    )


def kimi_linear(reader: ConfigReader) -> Mixers:
    """Return Kimi Linear's rule: `linear_attn_config` lists the layers of either kind, counted from 1.

    Source: vLLM 0.33 `models/kimi_k3/nvidia/model.py`, `transformers_utils/configs/kimi_linear.py`.
    """
    stated = ConfigReader(reader.mapping("linear_attn_config") or {})
    linear_layers, full_layers = stated.integers("kda_layers") or (), stated.integers("full_attn_layers") or ()
    attention = replace(
        latent_attention(reader),
        q_lora_rank=reader.optional("q_lora_rank") or None,
        has_output_gate=reader.flag("mla_use_output_gate"),
    )
    if not reader.flag("mla_use_nope"):
        raise unknown_kind("mla_use_nope", False, "true: the engine runs these latents without rotary positions only")
    linear = KimiDeltaAttention(
        num_heads=stated.positive("num_heads"),
        head_dim=stated.positive("head_dim"),
        conv_kernel_size=stated.positive("short_conv_kernel_size"),
        has_full_rank_gate=stated.flag("use_full_rank_gate"),
    )
    numbers = range(1, num_hidden_layers(reader) + 1)
    unnamed = set(numbers) - {*linear_layers, *full_layers}
    if unnamed:
        raise MissingConfigFieldError(
            f"linear_attn_config does not say what layer {min(unnamed)} is",
            field="model_config.linear_attn_config",
            accepted="every layer, counted from 1, in kda_layers or full_attn_layers",
        )
    return tuple((linear,) if number in linear_layers else (attention,) for number in numbers)


def latent_attention(reader: ConfigReader) -> LatentAttention:
    """Return the latent that the config states."""
    return LatentAttention(
        num_attention_heads=reader.positive("num_attention_heads"),
        q_lora_rank=_q_lora_rank(reader),
        kv_lora_rank=reader.positive("kv_lora_rank"),
        qk_nope_head_dim=reader.positive("qk_nope_head_dim"),
        qk_rope_head_dim=reader.positive("qk_rope_head_dim"),
        v_head_dim=reader.positive("v_head_dim"),
    )


def _q_lora_rank(reader: ConfigReader) -> int | None:
    """Return the query's latent width: stated, null for none, or the config class's default."""
    if reader.states("q_lora_rank"):
        return reader.optional("q_lora_rank") or None
    return DEFAULT_Q_LORA_RANK
