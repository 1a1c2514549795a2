"""What published `quantization_config`s mean."""

import json
from typing import Any, get_args

import pytest

from service.engine import Layout, parse_architecture, rank_weights
from service.engine.errors import MissingConfigFieldError, UnsupportedModelError
from service.engine.formats.quantization import UNQUANTIZED, parse_quantization, standard_quantization
from service.engine.inputs import WeightFormat
from tests.conftest import shared_catalog

DEEPSEEK = {"activation_scheme": "dynamic", "fmt": "e4m3", "quant_method": "fp8", "weight_block_size": [128, 128]}
GPT_OSS = {"modules_to_not_convert": ["model.layers.*.self_attn", "lm_head"], "quant_method": "mxfp4"}
AWQ = {"bits": 4, "group_size": 128, "quant_method": "awq", "version": "gemm", "zero_point": True}
GPTQ_8 = {"bits": 8, "group_size": 128, "quant_method": "gptq", "desc_act": False, "sym": True}
MXFP8 = {"quant_method": "mxfp8", "ignored_layers": ["lm_head", "re:.*gate$"]}
MODELOPT_MXFP8 = {"quantization": {"quant_algo": "MXFP8", "kv_cache_quant_algo": None, "exclude_modules": ["lm_head"]}}
NVFP4 = {"quantization": {"quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8", "group_size": 16}}


@pytest.mark.parametrize(
    ("stated", "scheme", "block", "weight_format"),
    [
        (DEEPSEEK, "fp8-block", 128, "fp8"),  # deepseek-ai/DeepSeek-V3
        (GPT_OSS, "mxfp4", 32, "mxfp4"),  # openai/gpt-oss-120b
        (AWQ, "int4-group", 128, "int4"),  # Qwen/Qwen2.5-72B-Instruct-AWQ
        (GPTQ_8, "int8-group", 128, "int8"),  # Qwen/Qwen2.5-72B-Instruct-GPTQ-Int8
        (MXFP8, "mxfp8", 32, "fp8"),  # MiniMaxAI/MiniMax-M3-MXFP8
        (MODELOPT_MXFP8, "mxfp8", 32, "fp8"),  # vLLM 0.33 `modelopt.py` (`ModelOptMxFp8Config.from_config`)
        (NVFP4, "nvfp4", 16, "nvfp4"),  # nvidia/DeepSeek-R1-NVFP4, hf_quant_config.json
        # vLLM 0.33 `modelopt.py` (`_extract_modelopt_quant_algo`): a nested block is ModelOpt's alone
        (NVFP4 | {"quant_method": "modelopt"}, "nvfp4", 16, "nvfp4"),
        (NVFP4 | {"quant_method": "ModelOpt_FP4"}, "nvfp4", 16, "nvfp4"),
        (NVFP4 | DEEPSEEK, "fp8-block", 128, "fp8"),
        (NVFP4 | AWQ, "int4-group", 128, "int4"),
    ],
)
def test_a_published_method_is_its_scheme(stated: dict[str, Any], scheme: str, block: int, weight_format: str) -> None:
    stored = parse_quantization(stated)

    assert (stored.scheme, stored.block, stored.weight_format) == (scheme, block, weight_format)


def test_what_a_checkpoint_says_beside_its_scheme_is_kept() -> None:
    assert parse_quantization(AWQ).has_zero_points
    assert parse_quantization(GPT_OSS).experts_only
    assert parse_quantization(NVFP4).kv_cache_dtype == "fp8"
    assert parse_quantization(DEEPSEEK).keeps("lm_head")
    assert parse_quantization(MXFP8).keeps("model.layers.3.block_sparse_moe.gate")
    assert parse_quantization(MXFP8).method == "modelopt"
    assert parse_quantization(None) is UNQUANTIZED


@pytest.mark.parametrize(
    "stated",
    [{"quant_method": "aqlm"}, {"quant_method": "gptq", "desc_act": False, "sym": True, "bits": 3, "group_size": 128}],
)
def test_methods_without_a_rule_are_refused_by_name(stated: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedModelError, match=str(stated["quant_method"])):
        parse_quantization(stated)


def test_fbgemm_holds_what_a_server_of_llama_3_1_405b_printed() -> None:
    # github.com/vllm-project/vllm/issues/6746, 8 x H100: "Loading model weights took 57.7520 GB"; the config of
    # meta-llama/Llama-3.1-405B-Instruct-FP8 leaves attention and the first and last layer in bf16, and had 16 heads of
    # keys and values in its first weeks
    kept = [f"model.layers.{layer}.self_attn.{name}_proj" for layer in range(126) for name in "qkvo"]
    kept += [f"model.layers.{layer}.mlp.{name}_proj" for layer in (0, 125) for name in ("gate", "up", "down")]
    stated = {"quant_method": "fbgemm_fp8", "activation_scale_ub": 1200.0, "modules_to_not_convert": kept}
    config = json.loads(shared_catalog().model("llama-3.1-405b-instruct").config_json or "")
    llama = parse_architecture(config | {"num_key_value_heads": 16})

    held = rank_weights(llama, layout=Layout(tensor_parallel_size=8), quantization=parse_quantization(stated))

    assert held.param_bytes / 2**30 == pytest.approx(57.752, rel=0.001)
    with pytest.raises(MissingConfigFieldError, match="activation_scale_ub"):
        parse_quantization({"quant_method": "fbgemm_fp8", "modules_to_not_convert": []})


def test_fp8_says_when_scales_of_activations_are_found() -> None:
    # vLLM 0.33 `fp8.py` (`from_config`): `get_from_keys(config, ["activation_scheme"])` has no default, and "The
    # block-wise quantization only supports dynamic activation scheme for now"
    with pytest.raises(MissingConfigFieldError) as refusal:
        parse_quantization({"quant_method": "fp8"})
    assert refusal.value.field == "model_config.quantization_config.activation_scheme"

    for stated in ({"activation_scheme": "static", "weight_block_size": [128, 128]}, {"activation_scheme": "none"}):
        with pytest.raises(UnsupportedModelError, match="activation_scheme"):
            parse_quantization({"quant_method": "fp8", **stated})


def test_fp8_s_second_list_counts_where_the_first_is_empty() -> None:
    # vLLM 0.33 `fp8.py`: `if not ignored_layers`
    stored = parse_quantization(DEEPSEEK | {"ignored_layers": [], "modules_to_not_convert": ["model.layers.3.mlp"]})

    assert stored.keeps("model.layers.3.mlp.down_proj")


@pytest.mark.parametrize("weight_format", get_args(WeightFormat))
def test_a_standard_recipe_is_in_its_format_and_leaves_the_head(weight_format: WeightFormat) -> None:
    recipe = standard_quantization(weight_format)

    assert recipe.weight_format in (weight_format, None)
    assert recipe.keeps("lm_head")
    assert recipe.keeps("model.layers.3.mlp.gate")
    assert recipe.keeps("model.layers.3.mlp.down_proj") == (weight_format in ("bf16", "fp16"))


def test_compressed_tensors_is_known_by_its_library_s_name() -> None:
    # vLLM 0.33 `model_arch_config_convertor.py` (`_normalize_quantization_config`: "Normalize library names")
    weights = {"num_bits": 4, "type": "int", "symmetric": True, "strategy": "group", "group_size": 128}
    stated = {"format": "pack-quantized", "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights}}}

    written = [parse_quantization({"quant_method": f"compressed{each}tensors", **stated}) for each in "_-"]

    assert written[0] == written[1]
    assert written[0].scheme == "int4-group"


def test_small_blocks_of_fp8_beside_experts_in_fp4_have_a_scale_for_every_row() -> None:
    """deepseek-ai/DeepSeek-V4.1-Flash states blocks of 32 x 32 and `expert_dtype`; Qwen3.8-Flash-Next-FP8 these alone.

    vLLM 0.33 `models/deepseek_v41/quant_config.py` (`CkptCtx(scale_block_size=(rows, cols))` of `kMxfp8Static`).
    """
    blocks = {"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [32, 32]}
    stored = parse_quantization({**blocks, "expert_dtype": "fp4"})

    assert (stored.scheme, stored.block, stored.is_fp8_in_blocks) == ("mxfp8", 32, True)
    assert parse_quantization(blocks).scheme == "fp8-block"
    assert not parse_quantization({"quant_method": "modelopt", "quant_algo": "MXFP8"}).is_fp8_in_blocks
