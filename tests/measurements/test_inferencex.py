"""Results of InferenceX, as its `utils/process_result.py` writes them."""

import json
from contextlib import suppress
from typing import Any

import pytest

from service.measurements.observed import UnreadableTextError
from service.measurements.reading import read_measurement

# TTFT and TPOT of its export of 2026-03-25 (ai-dynamo/aiconfigurator, `silicon_sample.csv`, gpt-oss-120b on H200).
RUN: dict[str, Any] = {
    "hw": "h200-cw", "conc": 4, "image": "vllm/vllm-openai:v0.18.0", "model": "openai/gpt-oss-120b",
    "infmax_model_prefix": "gptoss", "framework": "vllm", "precision": "fp4", "spec_decoding": "none",
    "disagg": False, "isl": 1024, "osl": 8192, "is_multinode": False, "tp": 4, "pp": 1, "dcp_size": 1, "pcp_size": 1,
    "ep": 1, "dp_attention": "false", "tput_per_gpu": 279.0, "output_tput_per_gpu": 248.0, "input_tput_per_gpu": 31.0,
    "mean_ttft": 0.046135656180558726, "mean_tpot": 0.0039126093514655738, "mean_intvty": 255.6,
}  # fmt: skip


def test_a_run_says_its_server_its_load_and_its_times() -> None:
    observed = read_measurement(json.dumps(RUN))

    assert observed.settings == {
        "engine": "vllm", "engine_version": "0.18.0", "model": "openai/gpt-oss-120b", "gpu": "h200",
        "tensor_parallel_size": 4, "pipeline_parallel_size": 1, "decode_context_parallel_size": 1,
        "concurrent_requests": 4, "num_prompts": 40,
    }  # fmt: skip
    assert {name: figure.value for name, figure in observed.figures.items()} == {
        "ttft_s.mean": 0.046135656180558726, "tpot_s.mean": 0.0039126093514655738, "output_tokens_per_s": 992,
    }  # fmt: skip
    assert [dict(doubt.assumed) for doubt in observed.doubts] == [{"input_tokens": 922}, {"output_tokens": 7373}]
    assert "between 0.8 and 1 of isl, as InferenceX draws them" in observed.doubts[0].sentence
    assert observed.lengths_vary


def test_a_format_of_one_name_and_experts_by_ranks_are_said() -> None:
    settings = read_measurement(
        json.dumps(RUN | {"precision": "fp8", "ep": 8, "tp": 8, "framework": "trt", "image": "release:1.2.0rc6"})
    ).settings

    assert (settings["weight_format"], settings["expert_parallel"]) == ("fp8", True)
    assert (settings["engine"], settings["engine_version"]) == ("tensorrt-llm", "1.2.0rc6")


@pytest.mark.parametrize(
    ("written", "gpu"), [("h100", "h100"), ("b200-trt", "b200"), ("cluster:mi355x-amds", "mi355x"), ("h200_3", "h200")]
)
def test_hardware_is_named_without_its_runner(written: str, gpu: str) -> None:
    assert read_measurement(json.dumps(RUN | {"hw": written})).settings["gpu"] == gpu


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"disagg": True}, "servers of their own"),
        ({"dp_attention": "true"}, "dp_attention"),
        ({"spec_decoding": "mtp"}, "drafted"),
        ({"mtp": "on"}, "drafted"),
        ({"pcp_size": 2}, "pcp_size"),
        ({"isl": 0, "osl": 0}, "isl and osl are not told"),
        ({"framework": "atom"}, "'atom' is not sized here"),
    ],
)
def test_other_deployments_are_refused_by_name(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(UnreadableTextError, match=said):
        read_measurement(json.dumps(RUN | changed))


@pytest.mark.parametrize("odd", [[], {}, None, -1, "x"])
@pytest.mark.parametrize("name", sorted(RUN))
def test_values_of_other_kinds_are_no_fault_of_the_reader(name: str, odd: object) -> None:
    with suppress(UnreadableTextError):
        read_measurement(json.dumps(RUN | {name: odd}))
