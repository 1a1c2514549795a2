"""What AMD's and Intel's platforms load, as their sources list it, and which checkpoint is chosen by that."""

import pytest

from service.catalog.engine_rules import rules_for
from service.catalog.snapshot import Snapshot
from service.engine.engines.device import device_of
from service.engine.engines.platforms import platform_of
from service.engine.errors import RefusedStartError
from service.engine.fleet.checkpoints import loaded_checkpoint
from service.engine.fleet.questions import StatedSettings
from service.engine.fleet.settings import resolve
from service.engine.inputs import EngineName, WeightFormat

MODELOPT, COMPRESSED = "nvidia/Llama-3.3-70B-Instruct-FP8", "RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic"
# vLLM `platforms/rocm.py` of these versions (modelopt is listed in 0.23, not in 0.19); SGLang 0.5.23
# `configs/model_config.py` (`rocm_supported_quantization` has none); `modelopt_quant.py` (capability 8.9)
CHOSEN: list[tuple[EngineName, str | None, str, str]] = [
    ("vllm", "0.11.0", "mi300x", COMPRESSED),
    ("vllm", "0.19.0", "mi355x", COMPRESSED),
    ("vllm", None, "mi300x", MODELOPT),
    ("sglang", None, "mi300x", COMPRESSED),
    ("sglang", None, "mi355x", COMPRESSED),
    ("sglang", None, "a100-sxm-80gb", COMPRESSED),
    ("vllm", "0.11.0", "a100-sxm-80gb", COMPRESSED),
    ("vllm", "0.11.0", "h100", MODELOPT),
    ("sglang", None, "h100", MODELOPT),
]
# The same; vllm-gaudi 0.21 and 0.24 `platform.py`, `ops/hpu_modelopt.py`; SGLang 0.5.23 `layers/quantization/__init__.py`
# and pull request 17190, closed ("Unknown quantization method: mxfp4" on MI300X)
REFUSED: list[tuple[EngineName, str | None, str, str, WeightFormat, str]] = [
    ("vllm", "0.21.0", "gaudi-3", "gpt-oss-120b", "mxfp4", "vLLM 0.21.0 on Gaudi does not load mxfp4"),
    ("vllm", "0.27.0", "gaudi-3", "nemotron-3-super-120b-a12b", "fp8", "on Gaudi does not load experts by modelopt"),
    ("vllm", "0.19.0", "mi300x", "nemotron-3-super-120b-a12b", "fp8", "vLLM 0.19.0 on ROCm does not load modelopt"),
    ("sglang", None, "mi300x", "gpt-oss-120b", "mxfp4", "SGLang on ROCm does not load mxfp4"),
]
TAKEN: list[tuple[EngineName, str | None, str, str, WeightFormat]] = [
    ("vllm", "0.24.0", "gaudi-3", "gpt-oss-120b", "mxfp4"),
    ("vllm", None, "mi300x", "gpt-oss-120b", "mxfp4"),
    ("sglang", None, "mi355x", "gpt-oss-120b", "mxfp4"),
    ("vllm", None, "arc-pro-b70", "gpt-oss-20b", "mxfp4"),
]


@pytest.mark.parametrize(("engine", "version", "gpu", "repository"), CHOSEN)
def test_the_first_checkpoint_of_a_format_that_loads_is_chosen(
    catalog: Snapshot, engine: EngineName, version: str | None, gpu: str, repository: str
) -> None:
    model, part = catalog.model("llama-3.3-70b"), catalog.gpu(gpu)
    device = device_of(part, rules_for(engine, version))

    chosen, _ = loaded_checkpoint(model, part, device, StatedSettings(weight_format="fp8"))

    assert chosen.hf_id == repository


@pytest.mark.parametrize(("engine", "version", "gpu", "model", "weight_format", "words"), REFUSED)
def test_what_a_platform_does_not_load_is_refused_with_what_it_does(
    catalog: Snapshot,
    engine: EngineName,
    version: str | None,
    gpu: str,
    model: str,
    weight_format: WeightFormat,
    words: str,
) -> None:
    stated, rules = StatedSettings(weight_format=weight_format), rules_for(engine, version)

    with pytest.raises(RefusedStartError, match=words) as refused:
        resolve(catalog.model(model), catalog.gpu(gpu), stated, rules)

    assert refused.value.field == ("gpu" if weight_format == "mxfp4" else "weight_format")  # gpt-oss is published so
    assert "compressed-tensors" in (refused.value.accepted or "")
    assert "modelopt," not in (refused.value.accepted or "")


@pytest.mark.parametrize(("engine", "version", "gpu", "model", "weight_format"), TAKEN)
def test_what_a_platform_lists_is_loaded(
    catalog: Snapshot, engine: EngineName, version: str | None, gpu: str, model: str, weight_format: WeightFormat
) -> None:
    stated, rules = StatedSettings(weight_format=weight_format), rules_for(engine, version)

    assert resolve(catalog.model(model), catalog.gpu(gpu), stated, rules).checkpoint.weight_format == weight_format


def test_nvidia_keeps_no_list(catalog: Snapshot) -> None:
    h100, b60 = catalog.gpu("h100"), catalog.gpu("arc-pro-b60")

    assert (platform_of(h100), platform_of(b60), platform_of(catalog.gpu("gaudi-2"))) == ("CUDA", "XPU", "Gaudi")
    assert device_of(h100, rules_for("vllm")).loads.methods is None
    assert device_of(b60, rules_for("vllm", "0.23.0")).loads.methods is None
    assert device_of(b60, rules_for("sglang")).loads.methods is None
