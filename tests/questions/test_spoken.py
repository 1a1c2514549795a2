"""Values as people write them are understood, and said; what means nothing is refused."""

from typing import Any

import pytest
from pydantic import ValidationError

from service.catalog.snapshot import Snapshot
from service.questions.asked import Desk
from service.questions.capacity import CAPACITY, CapacityBody
from service.questions.compare import CompareBody
from service.questions.recommend import RecommendBody
from service.questions.refusals import RefusalError
from service.questions.size import SIZE, SizeBody

LOAD: dict[str, Any] = {
    "model": "llama-3.1-8b", "gpu": "h100", "concurrent_requests": 8, "input_tokens": 100, "output_tokens": 10,
}  # fmt: skip


@pytest.mark.parametrize(
    ("field", "written", "meant"),
    [
        ("max_model_len", "128k", 128_000),
        ("input_tokens", "1E+05", 100_000),
        ("input_tokens", "6,000", 6_000),
        ("max_model_len", "1,048,576", 1_048_576),
        ("max_model_len", "128K", 131_072),
        ("max_model_len", "25.6k", 25_600),
        ("weight_format", "FP8", "fp8"),
        ("weight_format", "awq", "int4"),
        ("weight_format", "4-bit", "int4"),
        ("weight_format", "w8a8", "int8"),
        ("weight_format", "bfloat16", "bf16"),
        ("kv_cache_dtype", "fp8_e4m3", "fp8"),
        ("kv_cache_dtype", "fp8_ds_mla", "fp8"),
        ("engine", "trtllm", "tensorrt-llm"),
        ("engine", "TensorRT_LLM", "tensorrt-llm"),
        ("engine", "vLLM", "vllm"),
        ("kv_cache_memory_bytes", "20GiB", 20 << 30),
        ("max_model_len", "1000 tokens", 1_000),
        ("input_tokens", "2k tokens", 2_000),
        ("ttft_s", "500ms", 0.5),
        ("ttft_s", "2 seconds", 2),
        ("ttft_s", "500 milliseconds", 0.5),
        ("usd_per_gpu_hour", "$2.50/h", 2.5),
        ("usd_per_gpu_hour", "2.50 USD/h", 2.5),
        ("usd_per_gpu_hour", "$3 per hour", 3),
        ("percentile", "p99", 99),
        ("ttft_s", "0,5", 0.5),
        ("usd_per_gpu_hour", "$2.50", 2.5),
        ("ttft_s", "0,125", 0.125),
        ("tpot_s", "12,75", 12.75),
        ("gpu_memory_utilization", "90%", 0.9),
    ],
)
def test_a_value_is_read_as_it_was_meant_and_says_so(field: str, written: str, meant: object) -> None:
    asked = SizeBody.model_validate({**LOAD, field: written})

    assert getattr(asked, field) == meant
    assert [(each.name, each.value, each.origin) for each in asked.readings] == [(field, meant, "read as")]
    assert written in str(asked.readings[0].source)


@pytest.mark.parametrize(
    ("field", "written"),
    [("max_model_len", "128q"), ("weight_format", "gguf"), ("weight_format", "fp4"), ("engine", "ollama"),
     ("concurrent_requests", "1.5"), ("ttft_s", "fast"), ("kv_cache_dtype", "int8"), ("max_model_len", "0.0001k"),
     ("input_tokens", "64.000"), ("concurrent_requests", "1.000"), ("input_tokens", "6,00"), ("input_tokens", "0,100"), ("input_tokens", "6000,000"),
     ("ttft_s", "1,500"), ("ttft_s", "1m"), ("max_model_len", "2k words"), ("usd_per_gpu_hour", "2 EUR")],
)  # fmt: skip
def test_a_value_that_means_nothing_here_is_refused(field: str, written: str) -> None:
    with pytest.raises(ValidationError):
        SizeBody.model_validate({**LOAD, field: written})


@pytest.mark.parametrize(
    ("written", "meant"),
    [("2/s", 2), ("2 req/s", 2), ("2rps", 2), ("2 requests per second", 2), ("120 req/min", 2), ("120 rpm", 2),
     ("7200 per hour", 2), ("7200/h", 2)],
)  # fmt: skip
def test_a_rate_is_read_with_its_unit(written: str, meant: float) -> None:
    arrivals = {name: value for name, value in LOAD.items() if name != "concurrent_requests"}

    assert SizeBody.model_validate({**arrivals, "request_rate_per_s": written}).request_rate_per_s == meant


@pytest.mark.parametrize("written", ["2 tokens/s", "864000/day", "2 Hz", "2 req"])
def test_a_rate_of_something_else_is_refused(written: str) -> None:
    arrivals = {name: value for name, value in LOAD.items() if name != "concurrent_requests"}

    with pytest.raises(ValidationError):
        SizeBody.model_validate({**arrivals, "request_rate_per_s": written})


def test_every_value_of_a_list_is_read() -> None:
    load = {name: value for name, value in LOAD.items() if name != "gpu"}
    asked = RecommendBody.model_validate({**load, "weight_formats": "AWQ, fp8"})

    assert asked.weight_formats == ["int4", "fp8"]


def test_what_was_read_stands_first_among_the_assumptions(catalog: Snapshot) -> None:
    asked = CapacityBody.model_validate({"model": "llama 3.1 8b", "gpu": "8xH100", "max_model_len": "8k"})
    answer = Desk(None).answer(CAPACITY, asked, catalog).document

    told = {each["name"]: each["value"] for each in answer["assumptions"] if each["origin"] == "read as"}
    assert told == {"gpu": "h100-sxm-80gb", "model": "llama-3.1-8b-instruct", "max_model_len": 8000}
    assert answer["gpus"] == 8


def test_the_same_question_written_plainly_is_another_answer_only_in_what_was_read(catalog: Snapshot) -> None:
    desk = Desk(None)
    spoken = desk.answer(SIZE, SizeBody.model_validate({**LOAD, "max_model_len": "8k"}), catalog).document
    plain = desk.answer(SIZE, SizeBody.model_validate({**LOAD, "max_model_len": 8000}), catalog).document

    spoken["assumptions"] = [each for each in spoken["assumptions"] if each["origin"] != "read as"]
    assert spoken == plain


def test_a_count_in_the_name_that_contradicts_the_field_is_refused(catalog: Snapshot) -> None:
    asked = CapacityBody.model_validate({"model": "llama-3.1-8b", "gpu": "8xH100", "gpu_count": 4})

    with pytest.raises(RefusalError, match="gpu counts 8 GPUs, and gpu_count states 4"):
        Desk(None).answer(CAPACITY, asked, catalog)


def test_a_format_in_the_name_that_contradicts_the_field_is_refused(catalog: Snapshot) -> None:
    asked = SizeBody.model_validate({**LOAD, "model": "llama 3.1 8b awq", "weight_format": "fp8"})

    with pytest.raises(RefusalError, match="the name says int4, and fp8 is stated beside it"):
        Desk(None).answer(SIZE, asked, catalog)


def test_an_instance_type_brings_its_own_price(catalog: Snapshot) -> None:
    asked = SizeBody.model_validate({**LOAD, "gpu": "p5.48xlarge"})

    cost = Desk(None).answer(SIZE, asked, catalog).document["cost"]
    assert (cost["instance_type"], cost["instances"]) == ("p5.48xlarge", 1)


@pytest.mark.parametrize(("written", "instead"), [("awq", "int4"), ("GPTQ-Int8", "int8"), ("nvfp4", "nvfp4")])
def test_a_format_of_published_checkpoints_is_not_made_while_loading(written: str, instead: str) -> None:
    with pytest.raises(ValidationError) as refused:
        SizeBody(**LOAD, quantization=written)

    assert refused.value.errors()[0]["ctx"]["accepted"] == f"fp8, or weight_format={instead}"


@pytest.mark.parametrize("written", ["modelopt", "ModelOpt_FP4", "compressed-tensors", "quark"])
def test_a_method_of_checkpoints_is_told_from_what_is_made_while_loading(written: str) -> None:
    with pytest.raises(ValidationError) as refused:
        SizeBody(**LOAD, quantization=written)

    context = refused.value.errors()[0]["ctx"]
    assert f"{written} is said of a checkpoint" in context["sentence"]
    assert context["accepted"].startswith("fp8, or nothing")


def test_units_are_read_in_lists() -> None:
    several = {"models": "llama-3.1-8b", "gpus": "h100"}

    assert CompareBody.model_validate({**several, "context_tokens": "2k,128K"}).context_tokens == [2_000, 131_072]
    assert CompareBody.model_validate({**several, "context_tokens": [4096, "8k"]}).context_tokens == [4_096, 8_000]


@pytest.mark.parametrize(
    ("written", "meant"),
    [("amazon", "aws"), ("Google Cloud", "gcp"), ("microsoft", "azure"), ("lambda labs", "lambda"), ("oracle", "oci")],
)
def test_providers_are_known_by_their_makers_names(written: str, meant: str) -> None:
    asked = SizeBody.model_validate({**LOAD, "providers": written})

    assert asked.providers == [meant]
    assert [(each.name, each.value, each.origin) for each in asked.readings] == [("providers", meant, "read as")]
