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
    model, rules = catalog.model("llama-3.3-70b"), rules_for("sglang")
    stated, made = StatedSettings(weight_format="fp8"), StatedSettings(quantization="fp8")
    a100 = catalog.gpu("a100-sxm-80gb")

    assert resolve(model, catalog.gpu("l40s"), stated, rules).checkpoint.quantization.method == "modelopt"
    assert resolve(model, a100, made, rules).checkpoint.weight_format == "fp8"
    with pytest.raises(RefusedStartError, match=r"made by modelopt from compute capability 8\.9") as refused:
        resolve(model, a100, stated, rules)
    assert refused.value.field == "weight_format"
