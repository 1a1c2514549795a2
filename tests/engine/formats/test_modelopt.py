"""What exports of ModelOpt mean, as vLLM 0.33 reads them."""

import pytest

from service.engine.errors import UnsupportedModelError
from service.engine.formats.quantization import parse_quantization


def test_modelopt_s_blocks_are_blocks_whole_and_of_single_modules() -> None:
    # vLLM 0.33 `modelopt.py`: FP8_PB_WO, with a scale for 128 rows and columns; FP8_BLOCK_SCALES of modules alone
    whole = parse_quantization({"quant_method": "modelopt", "quant_algo": "FP8_PB_WO", "ignore": ["lm_head"]})
    assert (whole.scheme, whole.block, whole.weight_format) == ("fp8-block", 128, "fp8")

    layers = {"model.layers.0.mlp.experts": {"quant_algo": "FP8_BLOCK_SCALES"}}
    mixed = parse_quantization(
        {"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION", "quantized_layers": layers}
    ).of("model.layers.0.mlp.experts.gate_up_proj")
    assert (mixed.scheme, mixed.block) == ("fp8-block", 128)


@pytest.mark.parametrize("algorithm", ["FP8_BLOCK_SCALES", "FP8_OF_ANOTHER_KIND", "W4A8_AWQ"])
def test_modelopt_s_other_algorithms_are_refused_by_name(algorithm: str) -> None:
    # vLLM 0.33 `modelopt.py`: "ModelOpt currently only supports: ['FP8', ..., 'MIXED_PRECISION']"
    with pytest.raises(UnsupportedModelError, match=f"{algorithm}, which vLLM does not load"):
        parse_quantization({"quant_method": "modelopt", "quant_algo": algorithm})


def test_modelopt_s_weights_alone_are_stored_as_with_activations() -> None:
    # vLLM 0.33 `modelopt.py` (`LINEAR_ALGOS`)
    both, alone = (
        parse_quantization({"quant_method": "modelopt", "quant_algo": f"{name}NVFP4"}) for name in ("", "W4A16_")
    )

    assert (alone.scheme, alone.block, alone.weight_format) == (both.scheme, both.block, both.weight_format)


@pytest.mark.parametrize(
    ("stated", "dtype"),
    [
        ({"kv_cache_quant_algo": "FP8"}, "fp8"),
        ({"kv_cache_quant_algo": "nvfp4"}, "nvfp4"),
        ({"kv_cache_quant_algo": "INT8"}, None),
        ({"kv_cache_quant_algo": None}, None),
        ({"kv_cache_scheme": {"dynamic": False, "num_bits": 8, "type": "float"}}, "fp8"),
        ({"kv_cache_scheme": {"dynamic": True, "num_bits": 8, "type": "float"}}, None),
        ({"kv_cache_scheme": {"num_bits": 4, "type": "float"}, "kv_cache_quant_algo": "FP8"}, "nvfp4"),
    ],
)
def test_the_cache_of_a_modelopt_export(stated: dict[str, object], dtype: str | None) -> None:
    """vLLM 0.33 `utils/torch_utils.py` (`get_kv_cache_quant_algo_string`)."""
    parsed = parse_quantization({"quant_method": "modelopt", "quant_algo": "FP8", "ignore": ["lm_head"], **stated})

    assert parsed.kv_cache_dtype == dtype
