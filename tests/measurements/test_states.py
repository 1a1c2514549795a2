"""Results in odd states: none answered, several in one text, arrivals in bunches."""

import json
from typing import Any

import pytest

from service.catalog.measurement_rows import Setting
from service.catalog.snapshot import Snapshot
from service.measurements.checking import check
from service.measurements.observed import UnreadableTextError
from service.measurements.reading import read_measurement
from service.questions.asked import Desk
from tests.conftest import shared_timers

RESULT: dict[str, Any] = {
    "model_id": "Qwen/Qwen3-32B", "num_prompts": 200, "request_rate": 2.0, "completed": 200, "burstiness": 1.0,
    "total_input_tokens": 204_800, "total_output_tokens": 25_600, "mean_ttft_ms": 90.0, "mean_tpot_ms": 6.0,
}  # fmt: skip


def test_a_result_of_no_answer_is_refused() -> None:
    with pytest.raises(UnreadableTextError, match="200 of 200 requests failed"):
        read_measurement(json.dumps(RESULT | {"completed": 0}))


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_one_result_in_a_list_is_read_and_several_are_counted(indent: int | None, end: str) -> None:
    """As `vllm bench sweep serve` writes `summary.json`; `jq` and editors end a file with a newline."""
    assert read_measurement(json.dumps([RESULT], indent=indent) + end).settings["model"] == "Qwen/Qwen3-32B"
    with pytest.raises(UnreadableTextError, match="a list of 2 results"):
        read_measurement(json.dumps([RESULT, RESULT], indent=indent) + end)


@pytest.mark.parametrize(("burstiness", "stated"), [(1.0, None), (0.5, 0.5), (1e9, 1_000.0)])
def test_arrivals_in_bunches_are_compared_as_they_came(burstiness: float, stated: float | None) -> None:
    observed = read_measurement(json.dumps(RESULT | {"burstiness": burstiness}))

    assert observed.settings.get("burstiness") == stated
    assert observed.doubts == []


def test_percentiles_that_are_not_compared_are_named() -> None:
    """As with `--metric-percentiles 50,90,95,99.9`."""
    told = {"p50_ttft_ms": 80.0, "p90_ttft_ms": 150.0, "p95_ttft_ms": 170.0, "p99.9_tpot_ms": 9.0}
    observed = read_measurement(json.dumps(RESULT | told))

    assert [doubt.sentence for doubt in observed.doubts] == [
        "p90, p99.9 of the run: only mean, p50, p95 and p99 are compared"
    ]


def test_a_load_that_is_stated_instead_of_the_rate_leaves_its_bursts_out(catalog: Snapshot) -> None:
    text, desk = json.dumps(RESULT | {"burstiness": 0.5}), Desk(shared_timers())
    bursts = check(text, {"gpu": "h100"}, catalog, desk)
    users = check(text, {"gpu": "h100", "concurrent_requests": 8}, catalog, desk)

    assert bursts.question["burstiness"] == 0.5
    assert "burstiness" not in users.question


@pytest.mark.parametrize("dash", ["-", "_"])
def test_a_run_of_a_sweep_is_of_the_server_it_started(dash: str) -> None:
    """As `vllm/benchmarks/sweep/serve.py` (`_update_run_data`) writes what a run overrides beside its result."""
    overrides = {"max_num_seqs": 8, "max_num_batched_tokens": 1024, "tensor_parallel_size": 2, "random_input_len": 9}
    told = {name.replace("_", dash): value for name, value in overrides.items()}
    settings = read_measurement(json.dumps(RESULT | {"run_number": 0} | told)).settings

    assert (settings["max_num_seqs"], settings["max_num_batched_tokens"]) == (8, 1024)
    assert (settings["tensor_parallel_size"], settings["model"]) == (2, "Qwen/Qwen3-32B")


def test_words_of_a_sweep_are_no_flags_of_their_own() -> None:
    told = {"run_number": 0, "quantization": "fp8 --tensor-parallel-size 4", "enable_expert_parallel": False}

    assert "tensor_parallel_size" not in read_measurement(json.dumps(RESULT | told)).settings


def test_a_latent_cache_is_read_by_vllms_own_name_of_it(catalog: Snapshot) -> None:
    """GLM-5.2 with 28.85 GiB for its cache: https://github.com/alint77/jupiter-glm52-vllm-worklog, baseline/server.out."""
    text = """(EngineCore pid=148836) INFO 07-16 19:52:52 [core.py:116] Initializing a V1 LLM engine \
(v0.23.1rc1.dev1201+gd08eebad1) with config: model='/e/project1/profound/alint77/models/GLM-5.2-W4A16-55c92ae', \
max_seq_len=400000, tensor_parallel_size=4, kv_cache_dtype=fp8_ds_mla
GPU KV cache size: 574,336 tokens"""
    beside: dict[str, Setting] = {
        "model": "glm-5.2",
        "gpu": "h200",
        "tensor_parallel_size": 8,
        "kv_cache_memory_bytes": 30_977_451_622,
    }

    tokens = next(term for term in check(text, beside, catalog, Desk(None)).terms if term.name == "kv_cache.tokens")

    assert tokens.error_fraction == pytest.approx(0, abs=0.0002)
