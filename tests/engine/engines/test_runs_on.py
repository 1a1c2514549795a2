"""Which GPUs SGLang and TensorRT-LLM run on, and which formats there."""

import pytest

from service.catalog.engine_rules import rules_for
from service.catalog.snapshot import Snapshot
from service.engine.engines.runs_on import lacks_kernels
from service.engine.errors import RefusedStartError
from service.engine.fleet.questions import StatedSettings
from service.engine.fleet.settings import resolve
from service.engine.inputs import EngineName, WeightFormat

# TensorRT-LLM docs/source/features/quantization.md, "Hardware Support Matrix"; SGLang 0.5.23 `load_model_utils.py` has
# "SGLang only supports sm75 and above."
REFUSED_GPUS = [
    ("tensorrt-llm", "mi300x", "NVIDIA's GPUs alone"),
    ("tensorrt-llm", "gaudi3", "NVIDIA's GPUs alone"),
    ("tensorrt-llm", "arc-pro-b60", "NVIDIA's GPUs alone"),
    ("tensorrt-llm", "t4", "from compute capability 8.0"),
    ("tensorrt-llm", "v100-sxm2-32gb", "from compute capability 8.0"),
    ("sglang", "v100-sxm2-32gb", "from compute capability 7.5"),
]
# The same matrix and issue 6717 ("WFP4A16 MoE is unsupported on SM89."); SGLang 0.5.23 `get_min_capability` of each
# config; vllm-project/recipes: Qwen3-32B-FP8 and Llama-3.1-8B-Instruct-FP8 are verified on both Arc Pro
FORMATS: list[tuple[EngineName, str, WeightFormat, bool]] = [
    ("tensorrt-llm", "h100", "nvfp4", True),
    ("tensorrt-llm", "b200", "nvfp4", False),
    ("tensorrt-llm", "rtx-pro-6000-server", "nvfp4", False),
    ("tensorrt-llm", "a100-sxm-80gb", "fp8", True),
    ("tensorrt-llm", "l40s", "fp8", False),
    ("tensorrt-llm", "l4", "mxfp4", True),
    ("tensorrt-llm", "h100", "mxfp4", False),
    ("tensorrt-llm", "a100-sxm-80gb", "int4", False),
    ("sglang", "t4", "mxfp4", True),
    ("sglang", "t4", "bf16", True),
    ("sglang", "a100-sxm-80gb", "nvfp4", False),
    ("sglang", "h100", "int4", False),
    ("vllm", "arc-pro-b60", "fp8", False),
    ("vllm", "arc-pro-b70", "fp8", False),
    ("vllm", "mi250x", "fp8", True),
]


@pytest.mark.parametrize(("engine", "gpu", "words"), REFUSED_GPUS)
def test_an_engine_is_refused_on_gpus_that_it_does_not_run_on(
    catalog: Snapshot, engine: EngineName, gpu: str, words: str
) -> None:
    part = catalog.gpu(gpu)

    with pytest.raises(RefusedStartError, match=words) as refused:
        resolve(catalog.model("llama-3.1-8b"), part, StatedSettings(weight_format="fp16"), rules_for(engine))

    assert refused.value.field == "gpu"


@pytest.mark.parametrize(("engine", "gpu", "weight_format", "lacks"), FORMATS)
def test_formats_without_kernels_on_a_gpu(
    catalog: Snapshot,
    engine: EngineName,
    gpu: str,
    weight_format: WeightFormat,
    lacks: bool,  # noqa: FBT001 - a column
) -> None:
    assert lacks_kernels(catalog.gpu(gpu), engine, weight_format) is lacks


def test_sglang_loads_fp8_by_modelopt_from_ada_on(catalog: Snapshot) -> None:
    """SGLang 0.5.23 `modelopt_quant.py` (`ModelOptFp8Config.get_min_capability`: 89); what it makes itself runs on 8.0."""
    model, rules = catalog.model("nemotron-3-super-120b-a12b"), rules_for("sglang")
    stated, made = StatedSettings(weight_format="fp8"), StatedSettings(quantization="fp8")
    a100 = catalog.gpu("a100-sxm-80gb")

    assert resolve(model, catalog.gpu("l40s"), stated, rules).checkpoint.quantization.method == "modelopt"
    assert resolve(model, a100, made, rules).checkpoint.weight_format == "fp8"
    with pytest.raises(RefusedStartError, match=r"made by modelopt from compute capability 8\.9") as refused:
        resolve(model, a100, stated, rules)
    assert refused.value.field == "weight_format"


# SGLang 0.5.23 `deep_gemm_wrapper/configurer.py`: DeepGEMM, in which alone its indexer runs, is off below sm90
@pytest.mark.parametrize("model", ["deepseek-v3.2", "glm-5", "deepseek-v4-flash"])
@pytest.mark.parametrize("gpu", ["a100-sxm-80gb", "l40s"])
def test_sglang_selects_tokens_from_hopper_on(catalog: Snapshot, model: str, gpu: str) -> None:
    with pytest.raises(RefusedStartError, match="SGLang attends to a selection of tokens"):
        resolve(catalog.model(model), catalog.gpu(gpu), StatedSettings(), rules_for("sglang"))

    resolve(catalog.model(model), catalog.gpu("h200"), StatedSettings(), rules_for("sglang"))
    resolve(catalog.model(model), catalog.gpu("mi300x"), StatedSettings(), rules_for("sglang"))


# SGLang 0.5.23 `arg_groups/overrides.py`: "Setting KV cache dtype to fp8_e4m3 for DeepSeek DSA on SM10 device."
@pytest.mark.parametrize(("gpu", "dtype"), [("h200", "bf16"), ("b200", "fp8"), ("rtx-pro-6000-server", "fp8")])
def test_sglang_keeps_selected_latents_in_fp8_from_blackwell_on(catalog: Snapshot, gpu: str, dtype: str) -> None:
    own = resolve(catalog.model("deepseek-v3.2"), catalog.gpu(gpu), StatedSettings(), rules_for("sglang"))
    dense = resolve(catalog.model("deepseek-v3"), catalog.gpu(gpu), StatedSettings(), rules_for("sglang"))
    asked = StatedSettings(kv_cache_dtype="bf16")
    stated = resolve(catalog.model("deepseek-v3.2"), catalog.gpu(gpu), asked, rules_for("sglang"))

    assert (own.kv_cache_dtype, dense.kv_cache_dtype, stated.kv_cache_dtype) == (dtype, "bf16", "bf16")


# SGLang 0.5.23 `load_model_utils.py`: "Compute capability below sm80. Use float16 due to lack of bfloat16 support."
@pytest.mark.parametrize(("gpu", "loaded"), [("t4", "fp16"), ("l4", "bf16")])
def test_sglang_falls_back_to_float16_on_turing(catalog: Snapshot, gpu: str, loaded: str) -> None:
    resolved = resolve(catalog.model("llama-3.1-8b"), catalog.gpu(gpu), StatedSettings(), rules_for("sglang"))

    assert resolved.checkpoint.weight_format == loaded


# vLLM's registry names the classes of a version whatever the GPU
@pytest.mark.parametrize(
    ("model", "version", "told"),
    [("gpt-oss-120b", "0.9.2", "has no GptOssForCausalLM yet"), ("mpt-7b-instruct", "0.33", "no longer has MPT")],
)
@pytest.mark.parametrize("gpu", ["mi300x", "arc-pro-b60", "h100"])
def test_a_version_has_its_classes_on_every_vendor_s_gpus(
    catalog: Snapshot, model: str, version: str, told: str, gpu: str
) -> None:
    with pytest.raises(RefusedStartError, match=told):
        resolve(catalog.model(model), catalog.gpu(gpu), StatedSettings(), rules_for("vllm", version))


def test_sglang_runs_no_experts_in_int8_of_both_operands(catalog: Snapshot) -> None:
    """SGLang 0.5.10 to 0.5.23: "The W8A8Int8 Fused MoE scheme is implemented only for NPU for now."."""
    model, gpu, stated = (
        catalog.model("qwen3-30b-a3b-instruct-2507"),
        catalog.gpu("h100"),
        StatedSettings(weight_format="int8"),
    )

    assert resolve(model, gpu, stated, rules_for("vllm")).checkpoint.weight_format == "int8"
    with pytest.raises(RefusedStartError, match="no kernels for experts in int8"):
        resolve(model, gpu, stated, rules_for("sglang"))
