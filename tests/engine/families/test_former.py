"""Families that vLLM 0.33 no longer has, against the totals that their publishers print."""

from typing import Any

import pytest

from service.engine.engines.classes import check_class
from service.engine.engines.device import REFERENCE
from service.engine.errors import RefusedStartError, UnsupportedModelError
from service.engine.families import REGISTRY, parse_architecture
from service.engine.inputs import Layout
from service.engine.layers.cache import Sharding
from service.engine.memory.cache_shape import cache_shape
from service.engine.memory.parameters import num_parameters


def decoder(
    name: str, layers: int, width: int, heads: int, columns: int, vocabulary: int, **others: Any
) -> dict[str, Any]:
    return {
        "architectures": [name], "num_hidden_layers": layers, "hidden_size": width, "num_attention_heads": heads,
        "intermediate_size": columns, "vocab_size": vocabulary, "max_position_embeddings": 4096,
    } | others  # fmt: skip


BAICHUAN = "github.com/baichuan-inc/Baichuan-13B, README, table of sizes"
HUB = "huggingface.co, safetensors of "
TEXT_01 = decoder(
    "MiniMaxText01ForCausalLM", 80, 6144, 64, 9216, 200_064, num_key_value_heads=8, head_dim=128, num_local_experts=32,
    num_experts_per_tok=2, attn_type_list=[0, 0, 0, 0, 0, 0, 0, 1] * 10, rotary_dim=64,
)  # fmt: skip
PERSIMMON = decoder("PersimmonForCausalLM", 36, 4096, 64, 16_384, 262_144, qk_layernorm=True)
MPT: dict[str, Any] = {
    "architectures": ["MPTForCausalLM"], "n_layers": 32, "d_model": 4096, "n_heads": 32, "vocab_size": 50_432,
    "max_seq_len": 2048, "expansion_ratio": 4, "no_bias": True, "attn_config": {"alibi": True},
}  # fmt: skip
JAIS: dict[str, Any] = {
    "architectures": ["JAISLMHeadModel"], "n_layer": 40, "n_embd": 5120, "n_head": 40, "n_inner": 13_664,
    "vocab_size": 84_992, "n_positions": 2048, "activation_function": "swiglu", "position_embedding_type": "alibi",
    "tie_word_embeddings": False,
}  # fmt: skip
ARCTIC = decoder(
    "ArcticForCausalLM", 35, 7168, 56, 4864, 32_000, num_key_value_heads=8, num_local_experts=128,
    num_experts_per_tok=2, moe_layer_frequency=1, use_residual=True,
)  # fmt: skip
SLOPES = 40  # of JAIS 13B's heads, which checkpoints store and vLLM computes
# config, total, where it is printed
PRINTED: dict[str, tuple[dict[str, Any], int, str]] = {
    "Baichuan 7B": (decoder("BaiChuanForCausalLM", 32, 4096, 32, 11_008, 64_000), 7_000_559_616, BAICHUAN),
    "Baichuan 13B": (decoder("BaichuanForCausalLM", 40, 5120, 40, 13_696, 64_000), 13_264_901_120, BAICHUAN),
    "Qwen 7B": (decoder("QWenLMHeadModel", 32, 4096, 32, 22_016, 151_936), 7_721_324_544, HUB + "Qwen/Qwen-7B"),
    "Qwen 14B": (decoder("QWenLMHeadModel", 40, 5120, 40, 27_392, 152_064), 14_167_290_880, HUB + "Qwen/Qwen-14B"),
    "Qwen 72B": (decoder("QWenLMHeadModel", 80, 8192, 64, 49_152, 152_064), 72_287_920_128, HUB + "Qwen/Qwen-72B"),
    "Aquila2 34B": (
        decoder("AquilaForCausalLM", 60, 6144, 48, 24_576, 143_973, num_key_value_heads=8),
        34_233_796_608,
        HUB + "BAAI/Aquila2-34B",
    ),
    "MiniMax Text 01": (TEXT_01, 456_089_655_296, HUB + "MiniMaxAI/MiniMax-Text-01, MiniMax-M1-80k"),
    "Arctic": (ARCTIC, 478_584_608_768, HUB + "Snowflake/snowflake-arctic-instruct"),
    "JAIS 13B": (JAIS, 13_462_730_280 - SLOPES, HUB + "inceptionai/jais-family-13b-chat"),
    "Fuyu 8B": (
        {"architectures": ["FuyuForCausalLM"], "patch_size": 30, "num_channels": 3, "text_config": PERSIMMON},
        9_408_238_592,
        HUB + "adept/fuyu-8b",
    ),
}


@pytest.mark.parametrize(("config", "printed", "source"), PRINTED.values(), ids=PRINTED)
def test_parameters_are_the_printed_ones(config: dict[str, Any], printed: int, source: str) -> None:
    assert num_parameters(parse_architecture(config)) == printed, source


ROUNDED: dict[str, tuple[dict[str, Any], float, str]] = {
    "Grok 1": (
        decoder(
            "Grok1ModelForCausalLM", 64, 6144, 48, 32_768, 131_072, num_key_value_heads=8, num_experts=8,
            num_experts_per_tok=2,
        ),
        314e9,
        "x.ai/blog/grok-os: 314 billion",
    ),
    "Grok 2": (
        decoder(
            "Grok1ForCausalLM", 64, 8192, 64, 32_768, 131_072, num_key_value_heads=8, num_local_experts=8,
            num_experts_per_tok=2, moe_intermediate_size=16_384, residual_moe=True, head_dim=128,
        ),
        270e9,
        HUB + "xai-org/grok-2, which counts the table of embeddings twice",
    ),
    "MPT 7B": (MPT, 6.65e9, HUB + "mosaicml/mpt-7b"),
    "InternLM 7B": (
        decoder("InternLMForCausalLM", 32, 4096, 32, 11_008, 103_168, bias=True), 7.3e9, "arXiv:2403.17297, table 1"
    ),
}  # fmt: skip


@pytest.mark.parametrize(("config", "printed", "source"), ROUNDED.values(), ids=ROUNDED)
def test_parameters_round_to_the_printed_ones(config: dict[str, Any], printed: float, source: str) -> None:
    assert num_parameters(parse_architecture(config)) == pytest.approx(printed, rel=0.01), source


def test_lightning_attention_keeps_one_matrix_of_a_head_in_the_models_dtype() -> None:
    # vLLM 0.23 `linear_attention_state_shape`: heads / tp x head width x head width
    model = parse_architecture(TEXT_01)
    rank = Sharding(tensor_parallel_size=8, cache_element_bytes=2, model_element_bytes=2)

    states = [layer.mixers[0].caches(rank)[0].state_bytes for layer in model.layers]

    assert states == ([64 // 8 * 128 * 128 * 2] * 7 + [0]) * 10
    assert cache_shape(model, Layout(tensor_parallel_size=8), "auto", None).bytes_per_token == 10 * 2 * 8 * 128 * 2


def test_slopes_need_no_table_of_positions() -> None:
    large, small = (PRINTED[name][0] for name in ("Baichuan 13B", "Baichuan 7B"))

    assert parse_architecture(large).rotary_tables == ()
    assert parse_architecture({**small, "architectures": ["BaichuanForCausalLM"]}).rotary_tables != ()


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({**PRINTED["Qwen 7B"][0], "visual": {}}, "visual"),
        ({**PRINTED["Qwen 7B"][0], "no_bias": False}, "no_bias"),
        ({**MPT, "attn_config": {"alibi": False}}, "alibi"),
        ({**MPT, "attn_config": {"qk_ln": True}}, "qk_ln"),
        ({**JAIS, "position_embedding_type": "learned"}, "position_embedding_type"),
        ({**ARCTIC, "moe_layer_frequency": 2}, "moe_layer_frequency"),
        ({**TEXT_01, "attn_type_list": [2] * 80}, "attn_type_list"),
    ],
)
def test_what_their_published_models_do_not_have_is_refused_by_name(config: dict[str, Any], field: str) -> None:
    with pytest.raises(UnsupportedModelError, match=field):
        parse_architecture(config)


@pytest.mark.parametrize(
    ("name", "version"),
    # vLLM 0.33 `model_executor/models/registry.py` (`_PREVIOUSLY_SUPPORTED_MODELS`)
    [
        ("JAISLMHeadModel", "0.22"), ("QWenLMHeadModel", "0.23"), ("InternLMForCausalLM", "0.23"),
        ("XverseForCausalLM", "0.23"), ("MiniMaxForCausalLM", "0.23"), ("MiniMaxText01ForCausalLM", "0.23"),
        ("MiniMaxM1ForCausalLM", "0.23"), ("BaiChuanForCausalLM", "0.23"), ("BaichuanForCausalLM", "0.23"),
        ("AquilaModel", "0.24"), ("AquilaForCausalLM", "0.24"), ("Grok1ModelForCausalLM", "0.24"),
        ("Grok1ForCausalLM", "0.24"), ("TeleChatForCausalLM", "0.25"), ("PersimmonForCausalLM", "0.25"),
        ("FuyuForCausalLM", "0.25"), ("ArcticForCausalLM", "0.28"), ("MPTForCausalLM", "0.28"),
        ("MptForCausalLM", "0.28"), ("RWForCausalLM", "0.28"), ("StableLMEpochForCausalLM", "0.28"),
    ],
)  # fmt: skip
def test_each_is_refused_from_the_version_after_its_last(name: str, version: str) -> None:
    last = REGISTRY.families[name].last_vllm

    assert last == version
    with pytest.raises(RefusedStartError, match=f"had until {version}"):
        check_class(name, {}, last, REFERENCE)
