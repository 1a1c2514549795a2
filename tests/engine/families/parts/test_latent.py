"""Latents, as DeepSeek's configs on huggingface.co state them."""

from typing import Any

from service.engine.config_reader import ConfigReader
from service.engine.families.parts.latent import latent_attention, latent_if_stated, sparse_latent

V3: dict[str, Any] = {
    "num_hidden_layers": 6,
    "hidden_size": 7_168,
    "num_attention_heads": 128,
    "q_lora_rank": 1_536,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
}
V32 = {**V3, "index_n_heads": 64, "index_head_dim": 128, "index_topk": 2_048}


def test_a_token_keeps_576_elements() -> None:
    """DeepSeek V3's report (arxiv.org/abs/2412.19437): 512 of the latent, 64 rotary."""
    assert latent_attention(ConfigReader(V3)).latent_width == 576


def test_v2_lite_has_no_latent_of_queries() -> None:
    assert latent_attention(ConfigReader({**V3, "q_lora_rank": None})).q_lora_rank is None


def test_left_out_altogether_the_config_class_supplies_it() -> None:
    config = {name: value for name, value in V3.items() if name != "q_lora_rank"}

    assert latent_attention(ConfigReader(config)).q_lora_rank == 1_536


def test_without_a_latent_attention_is_grouped() -> None:
    config = {**V3, "kv_lora_rank": None, "num_key_value_heads": 8}

    assert [type(layer[0]).__name__ for layer in latent_if_stated(ConfigReader(config))] == [
        "GroupedQueryAttention"
    ] * 6


def test_every_layer_of_v3_2_selects_2_048_tokens_itself() -> None:
    selected = [layer[0].indexer for layer in sparse_latent(ConfigReader(V32))]  # type: ignore[attr-defined]

    assert [indexer and indexer.top_k for indexer in selected] == [2_048] * 6


def test_a_pattern_says_which_layers_reuse_a_selection() -> None:
    stated = sparse_latent(ConfigReader({**V32, "index_topk_pattern": "FSFSSS"}))

    assert [layer[0].indexer is None for layer in stated] == [False, True, False, True, True, True]  # type: ignore[attr-defined]
