"""A wrong field is refused with the right one."""

import pytest

from service.questions.capacity import CAPACITY
from service.questions.misread import unknown_field
from service.questions.neighbours import CALLED, RIGHT
from service.questions.registry import QUESTIONS
from service.questions.size import SIZE


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("max_context_tokens", "max_model_len"),
        ("concurrency", "concurrent_requests"),
        ("tp", "tensor_parallel_size"),
        ("--tp-size", "tensor_parallel_size"),
        ("maxModelLen", "max_model_len"),
        ("ISL", "input_tokens"),
        ("quant_method", "weight_format"),
        ("mem_fraction_static", "gpu_memory_utilization"),
        ("qps", "request_rate_per_s"),
        ("concurency", "concurrent_requests"),
        # vLLM `v1/metrics/loggers.py`, SGLang `srt/observability/metrics_collector.py`
        ("num_requests_running", "concurrent_requests"),
        ("vllm:num_requests_running", "concurrent_requests"),
        ("num_running_reqs", "concurrent_requests"),
        ("gpu_prefix_cache_hit_rate", "prefix_cache_hit_fraction"),
        ("thrughput", "request_rate_per_s"),
        ("promt_tokens", "input_tokens"),
        ("quantizaton", "quantization"),
        ("tensor_paralel", "tensor_parallel_size"),
        ("draft_model", "speculative_method"),
        ("price_per_hour", "usd_per_gpu_hour"),
        ("purchase_type", "purchases"),
        ("billing", "purchases"),
        ("num_gpus", "gpu_count, which /capacity takes"),
        ("gpus_per_replica", "tensor_parallel_size"),  # the answer's own word; spare_replicas was told
    ],
)
def test_a_wrong_field_names_the_right_neighbour(wrong: str, right: str) -> None:
    assert unknown_field(wrong, SIZE.fields, "").accepted == f"did you mean {right}?"


def test_a_commitment_is_told_to_be_a_purchase() -> None:
    told = str(unknown_field("commitment_months", SIZE.fields, "").accepted)

    assert told.startswith("did you mean purchases?")
    assert "reserved, and each offer tells for how many months" in told


def test_a_currency_is_told_that_prices_are_in_dollars() -> None:
    assert "US dollars" in str(unknown_field("currency", SIZE.fields, "").accepted)


@pytest.mark.parametrize(
    ("elsewhere", "question"),
    [("max_gpus", "/recommend"), ("service_class", "/recommend"), ("num_prompts", "/capacity")],
)
def test_a_field_of_another_question_is_not_told_as_its_own_neighbour(elsewhere: str, question: str) -> None:
    assert unknown_field(elsewhere, SIZE.fields, "").accepted == f"{question} takes it"


@pytest.mark.parametrize("field", ["headroom_fraction", "spare_replicas", "disaggregated"])
def test_what_capacity_leaves_to_size_is_told_so(field: str) -> None:
    """Every name that /capacity has was listed instead."""
    assert unknown_field(field, CAPACITY.fields, "").accepted == "/size takes it"


@pytest.mark.parametrize(
    ("wrong", "right", "unit"),
    [
        ("ttft_ms", "ttft_s", "in seconds: 500 ms is 0.5"),
        ("tpotMs", "tpot_s", "in seconds"),
        ("requests_per_minute", "request_rate_per_s", "600 in a minute is 10"),
        ("rpm", "request_rate_per_s", "600 in a minute is 10"),
        ("requests_per_day", "request_rate_per_s", "86400 in a day is 1 on average"),
        ("tokens_per_second", "request_rate_per_s", "tokens in a second over output_tokens"),
        ("tps", "request_rate_per_s", "requests, not tokens"),
        ("eur_per_gpu_hour", "usd_per_gpu_hour", "in US dollars, as all prices here are"),
    ],
)
def test_a_name_that_says_another_unit_is_told_the_fields_own(wrong: str, right: str, unit: str) -> None:
    accepted = unknown_field(wrong, SIZE.fields, "").accepted

    assert accepted is not None
    assert accepted.startswith(f"did you mean {right}?; ")
    assert unit in accepted


def test_every_right_name_is_a_field_and_no_wrong_one_is() -> None:
    fields = {field for question in QUESTIONS for field in question.fields}

    assert set(CALLED) <= fields
    assert not fields & set(RIGHT)


def test_a_field_of_another_question_is_told_with_that_question() -> None:
    accepted = unknown_field("budget", SIZE.fields, "").accepted

    assert accepted == "did you mean max_usd_per_hour, which /recommend takes?"


@pytest.mark.parametrize("known", [SIZE.fields, CAPACITY.fields])
def test_how_many_gpus_are_meant_by_their_plural_is_told_beside_the_list_of_types(known: tuple[str, ...]) -> None:
    accepted = str(unknown_field("gpus", known, "").accepted)

    assert "gpu_count of /capacity for how many" in accepted
    assert "several types are for /recommend" in accepted
