"""Versions are put in order as their makers order them, and each says everything that holds for it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from service.engine.engines.versions import (
    Complete,
    Row,
    VersionTable,
    VersionTableError,
    completed,
    read_version,
    says_more,
    unstated_of,
)

# In the order of their release; as text, 0.10.2 and 0.11.1 would come before 0.8.
VERSIONS = ("0.6", "0.8", "0.10.2", "0.11.1", "0.20", "0.33", "1.0")
ROWS = tuple(
    Row(name=f"toy-{version}", since=version, differences={"newest": version, "changed": {version: True}})
    for version in VERSIONS
)


def table(rows: tuple[Row, ...]) -> VersionTable[Any]:
    complete = tuple(Complete(name=row.name, since=row.since, value=row.value["newest"]) for row in completed(rows))
    return VersionTable(rows=complete, unstated=complete[-1].value)


@given(st.permutations(ROWS))
def test_rows_in_any_order_say_the_same(rows: list[Row]) -> None:
    assert completed(rows) == completed(ROWS)
    assert [row.name for row in completed(rows)] == [f"toy-{version}" for version in VERSIONS]


@given(st.permutations(ROWS), st.integers(0, len(VERSIONS) - 1), st.integers(1, 9))
def test_every_row_speaks_from_its_version_to_the_next(rows: list[Row], index: int, patch: int) -> None:
    known = table(tuple(rows))

    assert known.at(Version(VERSIONS[index])) == VERSIONS[index]
    assert known.at(Version(f"{VERSIONS[index]}.0.{patch}")) == VERSIONS[index]


def test_a_row_adds_to_the_blocks_of_the_rows_before_it() -> None:
    assert completed(ROWS)[2].value == {"newest": "0.10.2", "changed": {"0.6": True, "0.8": True, "0.10.2": True}}


def test_a_version_before_every_row_has_none() -> None:
    assert table(ROWS).at(Version("0.5.9")) is None


@pytest.mark.parametrize("since", ["0.8.0", "v0.8", "0.8.0.0"])
def test_one_version_written_in_two_ways_is_one_version(since: str) -> None:
    with pytest.raises(VersionTableError, match=r"toy and toy-0\.8: both speak"):
        completed([*ROWS, Row(name="toy", since=since, differences={})])


@pytest.mark.parametrize("since", ["", "x", "0.8.x", "0..8", "0.8.dev1", "0.8.post1", "1!0.8", "0.8a1"])
def test_a_row_states_a_release(since: str) -> None:
    with pytest.raises(VersionTableError, match=r"toy: first_version .* is no (version|release)"):
        completed([*ROWS, Row(name="toy", since=since, differences={})])


@pytest.mark.parametrize("claims", [(), ("toy-0.6", "toy-1.0")])
def test_exactly_one_row_speaks_without_a_version(claims: tuple[str, ...]) -> None:
    rows = [Row(name=row.name, since=row.since, differences={}, is_unstated=row.name in claims) for row in ROWS]

    with pytest.raises(VersionTableError, match=" and ".join(claims) or "none"):
        unstated_of("toy", rows)


STATED = {
    "0.33": "0.33",
    "v0.10.2": "0.10.2",
    "0.8.5.post1": "0.8.5",
    "0.11.0rc2": "0.11",
    "0.10.2+cu128": "0.10.2",
    "0.20.1.dev34": "0.20.1",
    "1.2.0-nightly": "1.2",
    "0.33.x": "0.33",
    "vllm-0.33": "0.33",  # as `rules_version` of an answer is written
    "vLLM 0.10.2": "0.10.2",
    "vllm==0.9.1": "0.9.1",
    "tensorrt-llm-1.2": "1.2",
    "sglang v0.5.3": "0.5.3",
}


@pytest.mark.parametrize(("stated", "release"), STATED.items(), ids=STATED)
def test_a_stated_build_is_held_to_its_release(stated: str, release: str) -> None:
    assert read_version(stated) == Version(release)
    assert not says_more(stated)


@pytest.mark.parametrize(
    "stated", ["v0.9.2-20250701", "0.5.3.post1-cu129-amd64", "0.8.5-1", "vllm-openai:v0.11.2", "0.10.2 cu128", "0.33 "]
)
def test_a_tag_is_no_more_than_its_version(stated: str) -> None:
    assert not says_more(stated)


@pytest.mark.parametrize(
    "stated",
    ["8s", "8%", "8 GB", "8k", "0.9,1", "1_0", "0.11-0.13", "0.9/0.10", "0.9 or newer", "0.9.1 0.10", "0.9 / 1"],
)
def test_what_says_more_than_a_version_is_told(stated: str) -> None:
    assert says_more(stated)


@pytest.mark.parametrize(
    "stated", ["", "main", "x.1", "latest", ".3", "99999999", "٣.٣", "vllm", "vllm-main", "x-0.33"]
)
def test_what_starts_otherwise_is_no_version(stated: str) -> None:
    assert read_version(stated) is None
