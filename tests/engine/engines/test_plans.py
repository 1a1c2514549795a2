"""What versions of an engine plan otherwise: a row is used as it stands, or refused by its name."""

from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from service.engine.engines.plans import NEWEST, VLLM, PlanRules, plan_of, plan_table
from service.engine.engines.versions import Row, VersionTableError

RULES = [rule.name for rule in fields(PlanRules) if rule.name != "version"]


def toy(since: str = "0.5", **otherwise: object) -> Row:
    return Row(name="toy", since=since, differences=otherwise)


def of_version(rows: list[Row], version: str) -> PlanRules:
    """Undo by hand every change that a version does not have yet, newest first."""
    values: dict[str, Any] = {name: getattr(NEWEST, name) for name in RULES}
    for row in sorted(rows, key=lambda each: Version(each.since), reverse=True):
        if Version(version) < Version(row.since):
            values |= row.differences
    return PlanRules(**values)


@given(st.permutations([*VLLM, toy("0.19", page_packing="packed")]))
def test_a_row_in_any_place_speaks_for_the_versions_before_it(rows: list[Row]) -> None:
    table = plan_table(rows)

    assert [each.since for each in table] == sorted({Version(row.since) for row in rows}, reverse=True)
    before = {each.name: each.value for each in table}
    assert before["toy"] == of_version(rows, "0.18.5")
    assert before["toy"].page_packing == "packed"
    assert before["vLLM before 0.20.1"].page_packing == "columns"


@given(
    st.permutations(VLLM),
    st.sampled_from([*RULES, "version", "page_pack", "is_toy"]),
    st.sampled_from([True, False, 1, 64, (), "x"]),
)
def test_what_a_row_states_is_used_or_refused(rows: list[Row], name: str, value: object) -> None:
    stated = [*rows[:5], Row(name="toy", since="0.5", differences={name: value}), *rows[5:]]
    try:
        table = plan_table(stated)
    except VersionTableError as error:
        assert str(error).startswith("toy: ")
        assert name in str(error)
    else:
        assert table[-1].name == "toy"  # before every other version
        assert getattr(table[-1].value, name) == value != getattr(table[-2].value, name)


@pytest.mark.parametrize("since", ["0.20.1", "0.20.1.0", "v0.20.1"])
def test_a_version_that_stands_twice_is_refused(since: str) -> None:
    with pytest.raises(VersionTableError, match=r"toy and vLLM before 0\.20\.1: both speak"):
        plan_table([toy(since, page_packing="packed"), *VLLM])


def test_a_row_that_says_nothing_is_refused() -> None:
    with pytest.raises(VersionTableError, match="toy: nothing was otherwise"):
        plan_table([*VLLM, toy()])


@pytest.mark.parametrize(
    "version", ["0.8", "0.11", "0.11.1", "0.17", "0.18", "0.20.1", "0.20.2", "0.24", "0.27.1", "0.32", "0.33", "0.34"]
)
def test_a_version_has_every_change_but_the_later_ones(version: str) -> None:
    known = plan_of(Version(version))

    assert {name: getattr(known, name) for name in RULES} == {
        name: getattr(of_version(list(VLLM), version), name) for name in RULES
    }
    assert known.version == version


def test_tokens_are_told_by_concurrency_since_0_20_1() -> None:
    """noonghunna/club-3090 issue 91, 0.20.1: "GPU KV cache size: 619,479 tokens", 2.36 times 262,144.

    A published start-up of 0.20.0 says 2,158,880 tokens, and 108.50 times 65,536, three times as many.
    """
    assert round(619_479 / 262_144, 2) == 2.36
    assert not plan_of(Version("0.20.1")).counts_tokens_by_blocks
    assert plan_of(Version("0.20.0")).counts_tokens_by_blocks
