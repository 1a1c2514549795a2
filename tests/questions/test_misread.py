"""What a reader of fields found wrong reads the same over HTTP and on the command line."""

from typing import Any

import pytest
from pydantic import ValidationError

from service.questions.misread import misread, unknown_field
from service.questions.recommend import RECOMMEND
from service.questions.refusals import MOST_FAULTS, Fault, RefusalError
from service.questions.size import SIZE

GOOD: dict[str, Any] = {
    "model": "llama-3.3-70b",
    "gpu": "h100",
    "concurrent_requests": 64,
    "input_tokens": 5500,
    "output_tokens": 500,
}


def refused(**asked: Any) -> RefusalError:
    with pytest.raises(ValidationError) as error:
        SIZE.body.model_validate(asked)
    return misread(error.value.errors(), SIZE.fields)


def test_everything_that_is_missing_is_told_at_once() -> None:
    told = refused()

    assert [fault.field for fault in told.faults] == [
        "model", "gpu", "concurrent_requests", "input_tokens", "output_tokens",
    ]  # fmt: skip
    assert all(fault.accepted for fault in told.faults)
    assert told.detail == "not understood: model, gpu, concurrent_requests, input_tokens, output_tokens"


def test_what_is_missing_is_told_beside_what_is_wrong() -> None:
    told = refused(gpu="h100", ttft_s=-1, output_tokens=True)

    assert {fault.field for fault in told.faults} == {
        "model", "concurrent_requests", "input_tokens", "output_tokens", "ttft_s",
    }  # fmt: skip


def test_a_field_that_is_itself_at_fault_is_not_missing() -> None:
    told = refused(**{**GOOD, "concurrent_requests": "many"})

    assert [(fault.field, fault.accepted) for fault in told.faults] == [
        ("concurrent_requests", "a whole number such as 1000")
    ]


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"input_tokens": 1.5}, ("input_tokens", "a whole number")),
        ({"percentile": 100}, ("percentile", "less than 100.0")),
        ({"percentile": 0.95}, ("percentile", "at least 50.0; the 95th is 95, or p95")),
        ({"gpu_memory_utilization": 92}, ("gpu_memory_utilization", "at most 1.0; 90 % is 0.9")),
        ({"headroom_fraction": 30}, ("headroom_fraction", "at most 10.0; 90 % is 0.9")),
        ({"engine": "llama.cpp"}, ("engine", "'vllm', 'sglang' or 'tensorrt-llm'")),
        ({"expert_parallel": "perhaps"}, ("expert_parallel", "true or false")),
        ({"model": ""}, ("model", "text of at least 1 character")),
        ({"engine_version": "9" * 41}, ("engine_version", "at most 40 characters")),
        ({"model": "a\u0000b"}, ("model", "text on one line, without control characters")),
        ({"request_rate_per_s": 1e-12}, ("request_rate_per_s", "at least 4e-07")),
        ({"request_rate_per_s": 2}, ("concurrent_requests", "one of them")),
        ({"ttft": 1}, ("ttft", "did you mean ttft_s?")),
    ],
)
def test_every_broken_rule_names_the_field_and_what_is_accepted(change: dict[str, Any], fault: tuple[str, str]) -> None:
    told = refused(**{**GOOD, **change})

    assert (told.faults[0].field, told.faults[0].accepted) == fault
    assert told.kind == "invalid-request"


def test_every_name_there_is_is_listed_once() -> None:
    told = refused(**GOOD, xyzzy=1, plugh=2)

    assert told.faults[0].accepted == ", ".join(SIZE.fields)
    assert told.faults[1].accepted == "one of the names above"


def test_a_misspelt_name_stands_before_what_is_missing_for_it() -> None:
    told = refused(model="llama-3.1-8b", gpu="h100", concurency=8, xyzzy=1).faults

    assert told[0] == Fault("concurency", "unknown field", "did you mean concurrent_requests?")
    assert [fault.field for fault in told[1:]] == ["concurrent_requests", "input_tokens", "output_tokens", "xyzzy"]


def test_a_config_pasted_among_the_fields_of_a_question_is_told_where_it_goes() -> None:
    config = {"architectures": ["LlamaForCausalLM"], "hidden_size": 4_096, "vocab_size": 128_256, "torch_dtype": "auto"}
    told = refused(**config, gpu="h100", concurrent_requests=8, input_tokens=1_000, output_token=100)

    assert [fault.field for fault in told.faults] == ["output_token", "output_tokens", "model_config"]
    assert "architectures, hidden_size, torch_dtype, vocab_size" in told.faults[-1].detail
    assert told.faults[-1].accepted is not None
    assert "model_config" in told.faults[-1].accepted


def test_names_of_other_tools_that_configs_have_too_stay_theirs() -> None:
    fault = refused(**GOOD, max_position_embeddings=8_192).faults[0]

    assert (fault.field, fault.accepted) == ("max_position_embeddings", "did you mean max_model_len?")


def test_at_most_so_many_faults_are_told() -> None:
    assert len(refused(**GOOD, **{f"xyzzy{number}": 1 for number in range(1000)}).faults) == MOST_FAULTS


def test_a_field_of_bodies_is_not_called_unknown() -> None:
    assert unknown_field("model_config", SIZE.fields, "") == Fault(
        "model_config", "not in a query string", "a JSON body, by POST"
    )


def test_locations_lose_the_part_of_the_request() -> None:
    errors = [{"loc": ("query", "gpus", 0), "type": "string_type", "msg": "Input should be a valid string"}]

    assert misread(errors, ()).faults == (Fault("gpus", "value 1: should be text", "text"),)
    errors = [{"loc": ("body",), "type": "missing", "msg": "Field required"}]
    assert misread(errors, ()).faults == (Fault("body", "missing", "a JSON object"),)


def test_many_questions_sent_as_one_are_told_where_they_go() -> None:
    told = refused(questions=[GOOD])

    fault = next(each for each in told.faults if each.field == "questions")
    assert fault.accepted == "many questions at once go to a path with :batch, as /size:batch"


@pytest.mark.parametrize(
    ("field", "inside"),
    [
        ("load", {"concurrent_requests": 8, "input_tokens": 900}),
        ("limits", {"ttft_s": 1}),
        ("SLO", {"ttft": 0.5}),
        ("layout", {"xyzzy": 1, "tp": 2}),
    ],
)
def test_fields_inside_an_object_are_told_to_stand_at_the_top(field: str, inside: dict[str, object]) -> None:
    """The whole list of names was told, and of /recommend's `limits` that `limit` is meant."""
    [fault] = refused(**GOOD, **{field: inside}).faults

    assert (fault.field, fault.accepted) == (field, "the fields inside it as they are, at the top")


@pytest.mark.parametrize(
    ("field", "inside", "accepted"),
    [
        ("hf_config", {"max_position_embeddings": 8_192}, "did you mean model_config?"),
        ("num_users", {"input_tokens": 1}, "did you mean concurrent_requests?"),
        ("xyzzy", {"torch_dtype": "auto", "hidden_act": "silu"}, ", ".join(SIZE.fields)),
        ("xyzzy", {}, ", ".join(SIZE.fields)),
    ],
)
def test_objects_without_fields_of_a_question_are_told_as_any_name(
    field: str, inside: dict[str, object], accepted: str
) -> None:
    assert [(fault.field, fault.accepted) for fault in refused(**GOOD, **{field: inside}).faults] == [(field, accepted)]


@pytest.mark.parametrize("field", ["engine_args", "vllm_args"])
def test_flags_of_an_engine_are_told_to_be_fields(field: str) -> None:
    """A question may not state the `engine_args` that an answer has: `engine_version or engine` was told to be meant."""
    [fault] = refused(**GOOD, **{field: ["--max-num-seqs", "64"]}).faults

    assert fault.accepted == "each flag as a field of its own: --max-num-seqs 64 is max_num_seqs=64"


@pytest.mark.parametrize("name", ["current_replicas", "minReplicas", "max_replicas", "replicas"])
def test_a_field_of_scalers_is_not_taken_for_another(name: str) -> None:
    fault = unknown_field(name, ("spare_replicas", "input_tokens"), "")

    assert str(fault.accepted).startswith("no such field: the answer says how many")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("target_utilization", "did you mean headroom_fraction?; a target of 0.8 is a headroom of 0.25"),
        ("discount_percent", "did you mean discount_fraction?; a fraction: 25 % is 0.25"),
        ("max_usd_per_month", "did you mean max_usd_per_hour?; of one hour: 730 in a month is 1"),
    ],
)
def test_a_name_of_another_unit_is_told_with_the_unit(name: str, meant: str) -> None:
    assert unknown_field(name, RECOMMEND.fields, "").accepted == meant


@pytest.mark.parametrize(
    ("field", "word"),
    [("tensor_parallel_size", "auto"), ("max_model_len", -1), ("max_num_seqs", "default"), ("weight_format", "auto")],
)
def test_a_word_for_what_is_chosen_is_told_to_be_left_out(field: str, word: object) -> None:
    [fault] = refused(**GOOD, **{field: word}).faults

    assert fault.field == field
    assert str(fault.accepted).endswith("; or leave it out, and it is chosen")
    assert "leave it out" not in str(refused(**{**GOOD, "input_tokens": "auto"}).faults[0].accepted)


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        ("weight_format", "Q4_K_M", "; GGUF is llama.cpp's, and no engine here loads it"),
        ("weight_format", "gguf", "; GGUF is llama.cpp's, and no engine here loads it"),
        ("weight_format", "fp32", ""),
        ("request_rate_per_s", "1000/day", "; of a day, the rate of its busiest hour: 86400 in a day is 1 on average"),
        ("request_rate_per_s", "9 per month", "86400 in a day is 1 on average"),
        ("tpot_s", "30 tok/s", "; seconds for each token: 20 tokens a second are 0.05"),
        ("usd_per_gpu_hour", "2.5€", "; every price, asked and answered, is in US dollars"),
        ("usd_per_gpu_hour", "2.5 EUR", "; every price, asked and answered, is in US dollars"),
        ("weight_format", "fp4", "; of fp4 there are two: NVIDIA's nvfp4, and mxfp4"),
    ],
)
def test_a_value_of_another_kind_is_told_by_what_it_is(field: str, value: str, told: str) -> None:
    load = {name: GOOD[name] for name in ("model", "gpu", "input_tokens", "output_tokens")}
    asked = {**(load if field.startswith("request_rate") else GOOD), field: value}

    assert str(refused(**asked).faults[0].accepted).endswith(told)
    assert ("GGUF" in str(refused(**asked).faults[0].accepted)) == ("GGUF" in told)


@pytest.mark.parametrize("body", [1, None, "auto", [], True, 10**5_000], ids=lambda body: type(body).__name__)
def test_a_body_that_is_no_object_is_told(body: object) -> None:
    with pytest.raises(ValidationError) as error:
        SIZE.body.model_validate(body)

    [fault] = misread(error.value.errors(), SIZE.fields).faults
    assert fault.field == "body"
    assert str(fault.accepted).startswith("a JSON object")


def test_a_question_inside_a_question_is_told_to_stand_at_the_top() -> None:
    told = refused(question=GOOD)

    assert next(fault.accepted for fault in told.faults if fault.field == "question") == (
        "its fields as they are, at the top; PUT /workloads/{name} keeps a question inside `question`"
    )


def test_a_field_without_a_name_is_not_taken_for_the_body() -> None:
    [fault] = refused(**GOOD, **{"": 1}).faults

    assert (fault.field, fault.detail) == ('""', "unknown field")
    assert "concurrent_requests" in str(fault.accepted)
