"""Which quantizations of a config engines read, and what is said of those that they do not."""

from typing import Any

import pytest

from service.engine.errors import MissingConfigFieldError
from service.engine.families import cautions_of_quantization, stated_quantization
from service.questions.examples import LLAMA_CONFIG

# config.json of Qwen/Qwen3-32B-FP8-Static-PerTensor; vllm_kv_oracle.jsonl: vLLM 0.33 loads it in bfloat16
WITHOUT_METHOD = {"config_groups": {}, "ignore": ["lm_head"], "quant_algo": "FP8", "producer": {"name": "modelopt"}}
# hf_quant_config.json of nvidia/Llama-3.1-70B-Instruct-FP8
BESIDE = {"producer": {"name": "modelopt", "version": "0.21.0"}, "quantization": {"quant_algo": "FP8"}}


def config(place: str, stated: dict[str, Any]) -> dict[str, Any]:
    return {**LLAMA_CONFIG, place: stated}


@pytest.mark.parametrize(
    "without",
    [
        config("quantization_config", WITHOUT_METHOD),
        config("hf_quant_config", WITHOUT_METHOD),
        config("compression_config", {"format": "float-quantized"}),
        config("text_config", {**LLAMA_CONFIG, "quantization_config": WITHOUT_METHOD}),
        config("quantization_config", {"quantization": {"quant_algo": "FP8"}}),  # nobody's, as no producer is named
    ],
)
def test_what_no_method_is_named_for_is_not_read_and_told(without: dict[str, Any]) -> None:
    assert stated_quantization(without) is None
    [told] = cautions_of_quantization(without)
    assert "no quant_method" in told


@pytest.mark.parametrize(
    "plain",
    [
        LLAMA_CONFIG,
        config("quantization_config", {}),
        config("quantization_config", {"quant_method": "fp8", "activation_scheme": "dynamic"}),
        config("hf_quant_config", BESIDE),
        config("quantization_config", {"quantization": {"quant_algo": "FP8", "modelopt_quant_config": {}}}),
    ],
)
def test_nothing_is_told_of_what_is_read_or_not_stated(plain: dict[str, Any]) -> None:
    assert cautions_of_quantization(plain) == ()


@pytest.mark.parametrize("stated", [{"bits": 4, "group_size": 128}, {"w_bit": 4}, {"load_in_4bit": True}])
def test_bits_of_integers_without_a_method_are_refused(stated: dict[str, Any]) -> None:
    with pytest.raises(MissingConfigFieldError, match=next(iter(stated))) as refusal:
        cautions_of_quantization(config("quantization_config", stated))

    assert refusal.value.field == "model_config.quantization_config.quant_method"
    assert "gptq" in (refusal.value.accepted or "")


def test_a_conversion_for_mlx_is_refused() -> None:
    """huggingface.co/mlx-community: `quantization`, and in newer ones the same under `quantization_config`."""
    bits = {"group_size": 64, "bits": 4}
    for converted in (config("quantization", bits), config("quantization", bits) | {"quantization_config": bits}):
        with pytest.raises(MissingConfigFieldError, match="no quant_method"):
            cautions_of_quantization(converted)

    assert cautions_of_quantization(config("quantization", {"quant_algo": "FP8"})) == ()
    assert (
        cautions_of_quantization(
            config("quantization", bits)
            | {"quantization_config": {"quant_method": "fp8", "activation_scheme": "dynamic"}}
        )
        == ()
    )
