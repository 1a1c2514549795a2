"""Families the referee's public rows leave out, against what vLLM 0.33 computed for their published configs.

Each file in `families/` holds one config with its source, and per row the engine's block size, blocks, tokens,
concurrency and the bytes of the parameters that one rank instantiated.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from service.engine.errors import EngineError, UnsupportedLayoutError, UnsupportedModelError
from service.engine.families import parse_architecture, stated_quantization
from service.engine.fleet.layouts import check_layout
from service.engine.formats.quantization import parse_quantization
from service.engine.inputs import EngineSettings, Layout
from service.engine.memory.cache_shape import CacheAsk, cache_shape
from service.engine.memory.parameters import num_active_parameters, num_parameters
from service.engine.memory.shared_pool import plan_kv_cache
from service.engine.memory.weights import rank_weights

FILES = sorted((Path(__file__).parent / "families").glob("*.json"))
FAMILIES: dict[str, dict[str, Any]] = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in FILES}
# family, parameters and active parameters in billions as the publisher prints them
PRINTED: dict[str, tuple[float, float | None, str]] = {
    "kimi-linear": (49.1, 3, "huggingface.co/moonshotai/Kimi-Linear-48B-A3B-Instruct, safetensors 49B"),
    "glm-4.5v": (107.7, 12, "huggingface.co/zai-org/GLM-4.5V, safetensors 108B; 12B active"),
    "lfm2-moe": (8.34, 1.5, "huggingface.co/LiquidAI/LFM2-8B-A1B: 8.3B total, 1.5B active"),
    "ling-mini-2.0": (16.26, 1.4, "huggingface.co/inclusionAI/Ling-mini-2.0: 16B total, 1.4B active"),
    "trinity-mini": (26.1, 3, "huggingface.co/arcee-ai/Trinity-Mini: 26B total, 3B active"),
    "step-3.5-flash": (196, 11, "huggingface.co/stepfun-ai/Step-3.5-Flash, 196B without its MTP layers"),
}

QWEN_7B: dict[str, Any] = {
    "hidden_size": 3584,
    "num_hidden_layers": 28,
    "num_attention_heads": 28,
    "num_key_value_heads": 4,
    "intermediate_size": 18944,
    "vocab_size": 152064,
    "max_position_embeddings": 128000,
    "tie_word_embeddings": False,
}
PATCHES: dict[str, int] = {"depth": 32, "num_heads": 16, "patch_size": 14, "spatial_merge_size": 2}
# config, parameters as the publisher's safetensors or paper print them
EXACT: dict[str, tuple[dict[str, Any], int, str]] = {
    "GPT-2": (FAMILIES["gpt-2"]["config"], 124_439_808, "huggingface.co/openai-community/gpt2"),
    "GPT-NeoX 20B": (FAMILIES["gpt-neox"]["config"], 20_554_567_680, "arXiv:2204.06745: 20,554,567,680"),
    "OPT 125M": (FAMILIES["opt"]["config"], 125_239_296, "huggingface.co/facebook/opt-125m"),
    "BLOOM 176B": (
        {
            "architectures": ["BloomForCausalLM"],
            "hidden_size": 14336,
            "n_layer": 70,
            "num_attention_heads": 112,
            "vocab_size": 250880,
            "seq_length": 2048,
        },
        176_247_271_424,
        "huggingface.co/bigscience/bloom: 176,247,271,424 parameters",
    ),
    "Qwen2.5-VL 7B": (
        {
            **QWEN_7B,
            "architectures": ["Qwen2_5_VLForConditionalGeneration"],
            "vision_config": {**PATCHES, "hidden_size": 1280, "intermediate_size": 3420, "out_hidden_size": 3584},
        },
        8_292_166_656,
        "huggingface.co/Qwen/Qwen2.5-VL-7B-Instruct, safetensors",
    ),
    "Qwen2-VL 7B": (
        {
            **QWEN_7B,
            "architectures": ["Qwen2VLForConditionalGeneration"],
            "vision_config": {**PATCHES, "embed_dim": 1280, "mlp_ratio": 4, "hidden_size": 3584},
        },
        8_291_375_616,
        "huggingface.co/Qwen/Qwen2-VL-7B-Instruct, safetensors",
    ),
    "EXAONE 3.5 7.8B": (
        FAMILIES["exaone-3.5"]["config"],
        7_818_448_896,
        "huggingface.co/LGAI-EXAONE/EXAONE-3.5-7.8B-Instruct, safetensors",
    ),
    "Hunyuan A13B": (
        FAMILIES["hunyuan-a13b"]["config"],
        80_393_183_232,
        "huggingface.co/tencent/Hunyuan-A13B-Instruct, safetensors",
    ),
    "GLM-4 9B": (FAMILIES["glm-4-9b-chat"]["config"], 9_399_951_360, "huggingface.co/THUDM/glm-4-9b-chat, safetensors"),
    "BLOOM 560M": (
        {
            "architectures": ["BloomForCausalLM"],
            "hidden_size": 1024,
            "n_layer": 24,
            "n_head": 16,
            "vocab_size": 250880,
            "seq_length": 2048,
        },
        559_214_592,
        "huggingface.co/bigscience/bloom-560m: 559,214,592 parameters",
    ),
}


def settings(row: dict[str, Any]) -> EngineSettings:
    return EngineSettings(
        gpu_memory_utilization=0.92,
        kv_cache_dtype=row["kv_cache_dtype"],
        max_model_len=row["max_model_len"],
        max_num_batched_tokens=row["max_num_batched_tokens"],
        max_num_seqs=row["max_num_seqs"],
    )


@pytest.mark.parametrize("family", FAMILIES)
def test_the_cache_equals_the_engine(family: str) -> None:
    stated = FAMILIES[family]
    architecture = parse_architecture(stated["config"])
    for row in stated["rows"]:
        cache = plan_kv_cache(
            architecture,
            layout=Layout(tensor_parallel_size=row["tensor_parallel_size"]),
            settings=settings(row),
            available_bytes=stated["available_kv_bytes"],
        )

        assert (cache.block_size, cache.bytes_per_block, cache.num_gpu_blocks) == (
            row["block_size"],
            row["bytes_per_block"],
            row["num_gpu_blocks"],
        )
        if "kv_cache_size_tokens" in row:
            assert cache.tokens == row["kv_cache_size_tokens"]
            assert cache.max_concurrency == pytest.approx(row["max_concurrency"], rel=1e-12)
        else:
            assert cache.estimated_max_model_len == row["estimated_max_model_len"]


@pytest.mark.parametrize("family", FAMILIES)
def test_the_weights_equal_the_engine(family: str) -> None:
    stated = FAMILIES[family]
    architecture = parse_architecture(stated["config"])
    quantization = parse_quantization(stated_quantization(stated["config"]))
    for row in stated["rows"]:
        layout = Layout(tensor_parallel_size=row["tensor_parallel_size"])
        check_layout(architecture, quantization, layout)

        ours = rank_weights(architecture, layout=layout, quantization=quantization).param_bytes

        assert ours == pytest.approx(row["param_bytes"], rel=stated.get("weights_tolerance", 1e-9))


@pytest.mark.parametrize("family", PRINTED)
def test_parameters_round_to_what_the_publisher_prints(family: str) -> None:
    total, active, printed = PRINTED[family]
    architecture = parse_architecture(FAMILIES[family]["config"])

    assert num_parameters(architecture) / 1e9 == pytest.approx(total, rel=0.01), printed
    if active is not None:  # cards count active parameters with and without embeddings
        assert num_active_parameters(architecture) / 1e9 == pytest.approx(active, rel=0.2), printed


@pytest.mark.parametrize(("config", "expected", "printed"), EXACT.values(), ids=EXACT)
def test_parameters_equal_what_the_publisher_prints(config: dict[str, Any], expected: int, printed: str) -> None:
    assert num_parameters(parse_architecture(config)) == expected, printed


@pytest.mark.parametrize("name", ["GemmaForCausalLM", "LlamaForCausalLM", "Gemma3ForCausalLM"])
def test_kinds_of_layers_that_are_no_words_are_ignored_or_refused_by_name(name: str) -> None:
    rotary = {"full_attention": {"rope_type": "default"}}
    config = {**QWEN_7B, "architectures": [name], "layer_types": [["full_attention"]], "rope_parameters": rotary}

    try:
        parse_architecture(config)
    except EngineError as refusal:
        assert "layer_types" in str(refusal)


def test_step_3_vl_is_qwen_3_8b_behind_the_tower_of_step_3_7() -> None:
    """huggingface.co/stepfun-ai/Step3-VL-10B: 10B parameters, a Perception Encoder of 1.8B and Qwen3-8B of 8.19B."""
    text = {
        "architectures": ["Qwen3ForCausalLM"], "hidden_size": 4096, "num_hidden_layers": 36, "num_attention_heads": 32,
        "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 12288, "vocab_size": 151936,
        "max_position_embeddings": 65536,
    }  # fmt: skip
    vision = {"width": 1536, "layers": 47, "heads": 16, "patch_size": 14, "image_size": 728}
    model = {"architectures": ["StepVLForConditionalGeneration"], "text_config": text, "vision_config": vision}

    assert num_parameters(parse_architecture(text)) / 1e9 == pytest.approx(8.19, rel=0.001)
    assert num_parameters(parse_architecture(model)) / 1e9 == pytest.approx(10, rel=0.03)


def test_pixtral_in_its_publishers_format_adds_up_like_the_converted_one() -> None:
    # vLLM 0.33 on H100: 25,365,479,424 bytes in the converted format (`llava-pixtral`)
    converted = FAMILIES["llava-pixtral"]["config"]
    vision = converted["vision_config"] | {"adapter_bias": True}
    own = converted | {"architectures": ["PixtralForConditionalGeneration"], "vision_config": vision}

    assert num_parameters(parse_architecture(own)) == FAMILIES["llava-pixtral"]["rows"][0]["param_bytes"] // 2


def test_sparse_latents_are_packed_unless_the_checkpoint_itself_is_fp8() -> None:
    # vLLM 0.33 on H100: 656 bytes with scales (fp8_ds_mla) when asked for fp8, 576 when GLM-5-NVFP4 declares it.
    config = {
        "architectures": ["GlmMoeDsaForCausalLM"],
        "hidden_size": 6144,
        "num_hidden_layers": 78,
        "num_attention_heads": 64,
        "q_lora_rank": 2048,
        "kv_lora_rank": 512,
        "qk_nope_head_dim": 192,
        "qk_rope_head_dim": 64,
        "v_head_dim": 256,
        "index_n_heads": 32,
        "index_head_dim": 128,
        "index_topk": 2048,
        "vocab_size": 154880,
        "intermediate_size": 12288,
        "n_routed_experts": 0,
        "max_position_embeddings": 202752,
    }
    architecture = parse_architecture(config)

    asked = cache_shape(architecture, Layout(), "fp8", None)
    declared = cache_shape(architecture, Layout(), "fp8", None, ask=CacheAsk(is_checkpoints_dtype=True))

    assert (asked.bytes_per_block, declared.bytes_per_block) == (3_933_696, 3_534_336)


def test_falcon_keeps_its_cache_in_the_models_dtype() -> None:
    falcon, llama = (
        FAMILIES["falcon"]["config"],
        {**FAMILIES["falcon"]["config"], "architectures": ["LlamaForCausalLM"]},
    )
    row = FAMILIES["falcon"]["rows"][0]

    def page(config: dict[str, Any]) -> int:
        return plan_kv_cache(
            parse_architecture({**config, "num_kv_heads": 1}),
            layout=Layout(),
            settings=settings({**row, "kv_cache_dtype": "fp8"}),
            available_bytes=1 << 30,
        ).bytes_per_block

    assert page(falcon) == 2 * page(llama)


def test_gemma_3n_adds_up_to_the_printed_total() -> None:
    # huggingface.co/google/gemma-3n-E4B-it and -E2B-it, safetensors. The engine drops keys and values of shared layers.
    text = FAMILIES["gemma-3n"]["config"]
    small = {
        **text,
        "num_hidden_layers": 30,
        "num_kv_shared_layers": 10,
        "layer_types": text["layer_types"][:30],
        "intermediate_size": [8192] * 30,
    }
    unused_keys_and_values = 2 * 2 * 256 * 2048 + 256
    for config, shared, printed in ((text, 15, 7_849_978_192), (small, 10, 5_439_438_272)):
        wrapped = {
            "architectures": ["Gemma3nForConditionalGeneration"],
            "text_config": {key: value for key, value in config.items() if key != "architectures"},
            "vision_config": {"model_type": "gemma3n_vision"},
        }

        assert num_parameters(parse_architecture(wrapped)) + shared * unused_keys_and_values == printed


# family, and the ranks on which vLLM 0.33 stops with "12 is not divisible by 8" and the like, though the language model
# would divide
UNEVEN_TOWERS = {"glm-4.5v": 8, "cohere-2-vision": 8, "ultravox": 8, "hyperclova-x-vision-v2": 8}


@pytest.mark.parametrize(("family", "ranks"), UNEVEN_TOWERS.items(), ids=UNEVEN_TOWERS)
def test_towers_that_do_not_divide_are_refused(family: str, ranks: int) -> None:
    stated = FAMILIES[family]["config"]
    quantization = parse_quantization(stated_quantization(stated))

    with pytest.raises(UnsupportedLayoutError, match="tower"):
        check_layout(parse_architecture(stated), quantization, Layout(tensor_parallel_size=ranks))


def test_a_kimi_layer_of_neither_kind_is_refused() -> None:
    config = json.loads(json.dumps(FAMILIES["kimi-linear"]["config"]))
    config["linear_attn_config"]["kda_layers"].remove(2)

    with pytest.raises(ValueError, match="does not say what layer 2 is"):
        parse_architecture(config)


def test_kimi_latents_with_rotary_positions_are_refused() -> None:
    config = {**FAMILIES["kimi-linear"]["config"], "mla_use_nope": False}

    with pytest.raises(UnsupportedModelError, match="mla_use_nope"):
        parse_architecture(config)


# family, then bytes per block, block size, blocks and tokens that vLLM 0.33 computes on H100 for 2,048 tokens over two
# ranks with `--speculative-config '{"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_max": 4}'`
DRAFTING = {
    "kimi-linear": (8_257_536, 1024, 5_201, 626_567),
    "granite-hybrid": (68_878_336, 16, 623, 212_650),
    "lfm2-moe": (98_304, 16, 436_906, 6_257_227),
    "falcon-h1": (9_437_184, 144, 4_551, 443_830),
}


@pytest.mark.parametrize(("family", "expected"), DRAFTING.items(), ids=DRAFTING)
def test_drafted_tokens_need_states_to_fall_back_to(family: str, expected: tuple[int, int, int, int]) -> None:
    lengths = {"kv_cache_dtype": "auto", "max_model_len": 2_048, "max_num_batched_tokens": 8_192, "max_num_seqs": 1_024}

    cache = plan_kv_cache(
        parse_architecture(FAMILIES[family]["config"]),
        layout=Layout(tensor_parallel_size=2),
        settings=replace(settings(lengths), num_speculative_tokens=3),
        available_bytes=FAMILIES[family]["available_kv_bytes"],
    )

    assert (cache.bytes_per_block, cache.block_size, cache.num_gpu_blocks, cache.tokens) == expected
