"""A load at a concurrency or a rate, and the rules between its fields."""

from typing import Any

import pytest
from pydantic import ValidationError

from service.questions.parts.load import AnyLoad, SomeLoad, WithHeadroom, WithinLimits

LENGTHS: dict[str, Any] = {"input_tokens": 1000, "output_tokens": 200}


def faults(part: type[AnyLoad], **asked: Any) -> list[tuple[str, str]]:
    """Return the field and what is accepted of every rule between fields that is broken."""
    with pytest.raises(ValidationError) as refused:
        part.model_validate(asked)
    return [(error["ctx"]["field"], error["ctx"]["accepted"]) for error in refused.value.errors()]


@pytest.mark.parametrize(
    ("asked", "field", "accepted"),
    [
        ({"concurrent_requests": 1, "request_rate_per_s": 1}, "concurrent_requests", "one of them"),
        ({"concurrent_requests": 1, "request_duration_s": 5}, "request_duration_s", "both, or neither"),
        ({"length_variation_fraction": 1.5}, "length_variation_fraction", "0 to 1"),
        ({"concurrent_requests": 1, "burstiness": 0.5}, "burstiness", "1 without a rate"),
    ],
)
def test_fields_that_contradict_each_other_are_refused(asked: dict[str, Any], field: str, accepted: str) -> None:
    assert faults(AnyLoad, **asked) == [(field, accepted)]


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"burstiness": 2},
        {"request_rate_per_s": 1, "request_duration_s": 5},
        {"length_distribution": "lognormal", "length_variation_fraction": 1.5},
    ],
)
def test_a_load_may_be_left_out(asked: dict[str, Any]) -> None:
    assert AnyLoad.model_validate(asked)


@pytest.mark.parametrize(
    ("asked", "field"),
    [({}, "concurrent_requests"), ({"concurrent_requests": 1, "burstiness": 0.5}, "burstiness")],
)
def test_a_load_must_be_stated_where_it_is_asked_for(asked: dict[str, Any], field: str) -> None:
    assert [name for name, _ in faults(SomeLoad, **LENGTHS, **asked)] == [field]


@pytest.mark.parametrize("rate", ["inf", "Infinity", float("inf")])
def test_a_benchmark_s_endless_rate_is_told_to_be_users_at_once(rate: str | float) -> None:
    accepted = "a finite number; all at once are as many concurrent_requests"

    assert faults(SomeLoad, **LENGTHS, request_rate_per_s=rate) == [("request_rate_per_s", accepted)]


def test_every_broken_rule_is_told_at_once() -> None:
    wrong = {"request_duration_s": 5, "length_variation_fraction": 2, "burstiness": 2}

    assert [name for name, _ in faults(SomeLoad, **LENGTHS, concurrent_requests=1, **wrong)] == [*wrong]


def test_a_load_knows_nothing_of_answers() -> None:
    assert not {"format", "field", "catalog_revision", "model", "gpu"} & set(SomeLoad.model_fields)


def test_the_parts_become_values_of_the_engine() -> None:
    asked = SomeLoad(**LENGTHS, request_rate_per_s=2, burstiness=0.5, prefix_cache_hit_fraction=0.25)

    load = asked.load_of(asked.input_tokens, asked.output_tokens, None)

    assert (load.request_rate_per_s, load.concurrent_requests) == (2, None)
    assert (load.input_tokens, load.output_tokens) == (1000, 200)
    assert (load.burstiness, load.prefix_cache_hit_fraction, load.speculative_acceptance_fraction) == (0.5, 0.25, None)
    assert asked.load_of(1, 1, 0.6).speculative_acceptance_fraction == 0.6
    assert WithinLimits(ttft_s=0.5, percentile=99).limits().percentile == 99
    assert WithHeadroom(spare_replicas=1).headroom().spare_replicas == 1
