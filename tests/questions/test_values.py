"""Values of questions: what is read leniently, and what is refused because nobody can have meant it."""

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from service.questions import values


def read(kind: Any, value: object) -> Any:
    return TypeAdapter(kind).validate_python(value)


@pytest.mark.parametrize(
    ("kind", "written", "meant"),
    [
        (values.Tokens, "1000", 1000),
        (values.Tokens, 1000.0, 1000),
        (values.Seconds, "1e-3", 0.001),
        (values.BlockSize, "16", 16),
        (values.Texts, "h100, l40s", ["h100", "l40s"]),
        (values.Texts, ["h100,l40s", "t4"], ["h100", "l40s", "t4"]),
        (values.Formats, "fp8,bf16", ["fp8", "bf16"]),
        (values.RequestsPerS, values.MIN_REQUESTS_PER_S, values.MIN_REQUESTS_PER_S),
    ],
)
def test_a_value_may_be_written_as_a_query_string_or_as_json(kind: Any, written: object, meant: object) -> None:
    assert read(kind, written) == meant


@pytest.mark.parametrize(
    ("kind", "written", "why"),
    [
        (values.Tokens, True, "int_type"),
        (values.Tokens, "1_000", "int_parsing"),
        (values.Tokens, 0, "greater_than_equal"),
        (values.Seconds, True, "float_type"),
        (values.Seconds, "1_0.5", "float_parsing"),
        (values.Seconds, "inf", "finite_number"),
        (values.Share, False, "float_type"),
        (values.BlockSize, True, "literal_error"),
        (values.LoraRank, True, "literal_error"),
        (values.Texts, [""], "string_too_short"),
        (values.Texts, "h100,,t4", "string_too_short"),
        (values.Texts, "", "string_too_short"),
        (values.Formats, ["fp8", " "], "literal_error"),
        (values.RequestsPerS, 5e-324, "greater_than_equal"),
        (values.RequestsPerS, 1e-13, "greater_than_equal"),
    ],
)
def test_what_nobody_can_have_meant_is_refused(kind: Any, written: object, why: str) -> None:
    with pytest.raises(ValidationError) as refused:
        read(kind, written)

    assert refused.value.errors()[0]["type"] == why


def test_the_slowest_rate_is_one_request_a_month() -> None:
    days = 1 / values.MIN_REQUESTS_PER_S / 86_400

    assert 28 < days < 30
