"""Combinations side by side are the single answers, in flat rows."""

from datetime import date
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from pydantic import ValidationError
from starlette.testclient import TestClient

from service.catalog.snapshot import Snapshot
from service.engine.errors import UnsupportedLayoutError
from service.questions.compare import MOST_ROWS, CompareAnswer, CompareQuery
from service.questions.formats import table, written
from service.questions.parts.writing import Writing
from service.questions.refusals import RefusalError
from service.questions.size import SizeQuery
from service.questions.sources import PastedModels, Sources


def compared(sources: Sources, **asked: Any) -> CompareAnswer:
    return CompareQuery.model_validate(asked).answer(sources)


LOADED: dict[str, Any] = {
    "models": ["llama-3.1-8b"],
    "gpus": "h100,l40s",
    "weight_formats": ["bf16", "fp8"],
    "concurrent_requests": [8, 64],
    "input_tokens": 1000,
    "output_tokens": 200,
}


@pytest.mark.parametrize(
    ("model", "query_heads", "key_value_heads", "bytes_per_token", "saved"),
    [
        # By each config.json: 2 x layers x key-value heads x head size x 2 bytes.
        ("qwen2.5-7b", 28, 4, 57_344, 1 - 4 / 28),
        ("mistral-7b-instruct-v0.3", 32, 8, 131_072, 0.75),
        ("llama-2-7b", 32, 32, 524_288, 0.0),
        # DeepSeek-V2's paper counts a latent of 512 and 64 rotary elements; a head has 192 and 128.
        ("deepseek-v3", 128, 1, 70_272, 1 - 576 / (128 * 320)),
    ],
)
def test_what_sharing_keys_and_values_saves_stands_in_a_row(
    sources: Sources, model: str, query_heads: int, key_value_heads: int, bytes_per_token: int, saved: float
) -> None:
    [row] = compared(sources, models=model, gpus="h200", context_tokens=4096).result.rows

    assert (row.query_heads, row.key_value_heads) == (query_heads, key_value_heads)
    assert row.kv_bytes_per_token == bytes_per_token
    assert row.kv_saved_fraction == pytest.approx(saved)


def test_the_cache_grows_with_context_and_users(sources: Sources) -> None:
    rows = compared(
        sources,
        models="llama-3.1-70b",
        gpus="b200",
        tensor_parallel_size=1,
        kv_cache_dtypes="bf16",
        weight_formats="fp8",
        concurrent_requests=[8, 16],
        input_tokens=[8191, 16_383],
        output_tokens=1,
    ).result.rows

    # 327,680 bytes a token: 20 and 40 GiB for 8 and 16 requests of 8,192 tokens.
    assert [row.kv_bytes_of_load for row in rows] == [count << 30 for count in (20, 40, 40, 80)]


@pytest.mark.parametrize("more", [{"input_tokens": 100}, {"output_tokens": 100}, {"context_tokens": 1}])
def test_a_context_stands_in_the_place_of_lengths(more: dict[str, Any]) -> None:
    asked: dict[str, Any] = {"models": "llama-3.1-8b", "gpus": "h100", "concurrent_requests": 4, "context_tokens": 2048}

    with pytest.raises(ValidationError, match=r"takes the place of|a prompt and an answer"):
        CompareQuery(**asked | more)


def test_every_row_is_the_answer_to_its_own_question(sources: Sources) -> None:
    rows = compared(sources, **LOADED).result.rows

    assert [(row.gpu, row.weight_format, row.concurrent_requests) for row in rows] == [
        (gpu, weight_format, users)
        for gpu in ("h100-sxm-80gb", "l40s")
        for weight_format in ("bf16", "fp8")
        for users in (8, 64)
    ]
    single = SizeQuery(
        model="llama-3.1-8b", gpu="l40s", weight_format="fp8", concurrent_requests=64, input_tokens=1000,
        output_tokens=200,
    )  # fmt: skip
    told = single.answer(sources).result
    assert told.cost is not None
    assert (rows[-1].gpus, rows[-1].usd_per_hour) == (told.gpus, told.cost.usd_per_hour)
    assert rows[-1].max_concurrent_requests == told.saturation.concurrent_requests


def test_rows_are_flat_and_lines_are_one_a_row(sources: Sources) -> None:
    answer = compared(sources, **LOADED)
    csv = table(answer.rows()).splitlines()

    assert len(csv) == 1 + len([line for line in answer.lines() if not line.startswith("warning: ")]) == 9
    assert not any(isinstance(value, dict | list) for row in answer.rows() for value in row.values())


def test_a_monitor_tells_rows_apart_by_what_was_combined(sources: Sources) -> None:
    answer = compared(sources, **LOADED)
    families = text_string_to_metric_families(written(answer, Writing(format="prometheus")).text)
    [gpus] = [family for family in families if family.name == "sizer_gpus"]
    apart = {
        (each.labels["gpu"], each.labels["weight_format"], each.labels["concurrent_requests"]) for each in gpus.samples
    }

    assert [each.value for each in gpus.samples] == [row.gpus for row in answer.result.rows]
    assert len(apart) == len(answer.result.rows)


def test_without_a_count_the_fewest_gpus_that_hold_a_request_are_told(sources: Sources) -> None:
    asked: dict[str, Any] = {"models": "llama-3.1-8b,llama-3.3-70b", "gpus": "h100", "context_tokens": 8192}
    small, large = compared(sources, **asked).result.rows
    half = compared(sources, **asked, gpu_counts=large.gpus // 2).result.rows[1]

    assert (small.gpus, small.feasible, large.feasible) == (1, True, True)
    assert large.gpus > 1
    assert not half.feasible
    assert "more memory" in str(half.why)


def test_what_the_engine_refuses_has_a_row_that_says_why(sources: Sources) -> None:
    answer = compared(sources, models="llama-2-7b,llama-3.1-8b", gpus="h100", context_tokens=32_768)
    refused, answered = answer.result.rows

    assert answered.feasible
    assert answer.is_feasible
    assert not refused.feasible
    assert "longer than the 4096 tokens" in str(refused.why)


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"concurrent_requests": [1], "request_rate_per_s": [1]}, "concurrent_requests"),
        ({"concurrent_requests": [1]}, "input_tokens"),
        ({"input_tokens": [1]}, "input_tokens"),
        ({"request_rate_per_s": 1, "input_tokens": 1, "output_tokens": 1, "gpu_counts": 1}, "gpu_counts"),
    ],
)
def test_fields_that_do_not_go_together_are_refused(asked: dict[str, Any], field: str) -> None:
    with pytest.raises(ValidationError) as refused:
        CompareQuery.model_validate({"models": "llama-3.1-8b", "gpus": "h100", **asked})

    assert refused.value.errors()[0]["ctx"]["field"] == field


def test_lengths_beside_a_load_that_was_not_understood_are_not_refused_as_well() -> None:
    with pytest.raises(ValidationError) as refused:
        CompareQuery.model_validate(
            {
                "models": "llama-3.1-8b",
                "gpus": "h100",
                "concurrent_requests": "8..64",
                "input_tokens": 1,
                "output_tokens": 1,
            }
        )

    assert [error["loc"][0] for error in refused.value.errors()] == ["concurrent_requests"]


def test_too_many_combinations_and_unknown_names_are_refused(sources: Sources) -> None:
    many = {"models": "llama-3.1-8b", "gpus": ["h100"] * (MOST_ROWS // 4 + 1)}

    for asked, field in ((many, "models"), ({"models": "llama-3.1-8b", "gpus": "h10"}, "gpus")):
        with pytest.raises(RefusalError) as refused:
            compared(sources, **asked)
        assert refused.value.faults[0].field == field


def test_a_row_names_what_is_loaded_and_how_it_is_spread(sources: Sources) -> None:
    told = compared(
        sources,
        models="deepseek-v3",
        gpus="h200",
        data_parallel_size=8,
        expert_parallel=True,
        concurrent_requests=64,
        input_tokens=2000,
        output_tokens=500,
    )
    [row], line = told.result.rows, told.lines()[0]

    assert (row.data_parallel_size, row.expert_parallel, row.decode_context_parallel_size) == (8, True, 1)
    assert row.checkpoint == "deepseek-ai/DeepSeek-V3"
    assert " 1 x TP1 PP1 DP8 EP, " in line


def test_a_stale_price_is_said_once_for_each_provider_and_day(catalog: Snapshot) -> None:
    sources = Sources(catalog=catalog, timers=None, pasted_models=PastedModels(), today=date(2026, 11, 28))
    asked = LOADED | {"gpus": "l4,l40s", "concurrent_requests": [8]}
    own = CompareQuery.model_validate(asked | {"gpus": "l4", "usd_per_gpu_hour": 0.5}).answer(sources).result

    answer = CompareQuery.model_validate(asked).answer(sources)
    result, warned = answer.result, {row["gpu"]: row["warnings"] for row in answer.rows()}

    # RunPod's page of prices was read on 18 September, 71 days before.
    assert {(row.provider, row.as_of, row.is_stale) for row in result.rows} == {("runpod", "2026-09-18", True)}
    assert result.warnings == ("the price of l4, l40s is of 2026-09-18, more than 60 days ago: ask runpod again",)
    assert warned["l4"] == "the price of l4 is of 2026-09-18, more than 60 days ago: ask runpod again"
    assert (own.warnings, own.rows[0].provider, own.rows[0].is_stale) == ((), None, False)


def test_a_layout_that_no_row_can_have_is_refused_and_one_that_a_row_has_is_told(sources: Sources) -> None:
    asked: dict[str, Any] = {**LOADED, "gpus": "h100", "expert_parallel": True}

    with pytest.raises(UnsupportedLayoutError, match="the model has 0") as refusal:
        compared(sources, **asked)
    mixed = compared(sources, **{**asked, "models": ["llama-3.1-8b", "gpt-oss-20b"]}).result

    assert (refusal.value.field, refusal.value.accepted) == ("expert_parallel", "expert_parallel=false")
    assert mixed.feasible
    assert {row.model for row in mixed.rows if not row.feasible} == {"llama-3.1-8b-instruct"}


def test_contexts_that_are_too_long_for_a_model_are_rows_that_say_so(sources: Sources) -> None:
    [row] = compared(sources, models="llama-3.1-8b", gpus="h100", context_tokens=500_000).result.rows

    assert not row.feasible
    assert "131072" in (row.why or "")


def test_rows_rest_on_the_defaults_that_all_of_them_take(client: TestClient) -> None:
    """Referee: the single question of each row. Nothing was listed."""
    asked: dict[str, Any] = {"request_rate_per_s": 5, "input_tokens": 1_000, "output_tokens": 100, "ttft_s": 1}
    listed = {"models": "llama-3.1-8b", "gpus": "h100,l40s"}
    told = client.get("/compare", params={**listed, **asked}).json()["assumptions"]
    singles = [
        client.get("/size", params={"model": "llama-3.1-8b", "gpu": gpu, "levers": "none", **asked}).json()[
            "assumptions"
        ]
        for gpu in ("h100", "l40s")
    ]

    assert told == [each for each in singles[0] if each in singles[1]]
    assert {"percentile", "kv_cache_dtype", "gpu_memory_utilization", "tiers"} <= {each["name"] for each in told}
    assert "gpu_memory_bytes" not in {each["name"] for each in told}
