"""A row of the engine-rules table is used wherever it stands, or refused by its name; none is ignored."""

from collections.abc import Mapping
from copy import deepcopy
from random import Random
from typing import Any

import pytest
import yaml

from service.catalog.engine_rows import Tables, UniqueKeys
from service.catalog.engine_rules import all_rules, document, rules_for, rules_in, rules_tables
from service.engine.engines.registry import ENGINES
from service.engine.engines.rules import EngineRules
from service.engine.engines.versions import VersionTableError
from service.engine.inputs import EngineName

TOY: Mapping[str, Any] = {
    "engine": "vllm",
    "first_version": "0.35",
    "rules_version": "toy-0.35",
    "default_gpu_memory_utilization": 0.5,
    "measured": {"keeps_workspaces": False},
}


def written() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = deepcopy(document()["rules"])
    return rows


def without(row: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in names}


def index_of(rows: list[dict[str, Any]], name: str) -> int:
    return next(index for index, row in enumerate(rows) if row["rules_version"] == name)


def terms(rules: EngineRules) -> tuple[Any, ...]:
    """Everything that a row says, with what it says of mixtures."""
    beside = ("for_mixtures", "derived")
    plain = tuple(getattr(rules, name) for name in EngineRules.__slots__ if name not in beside)
    return (*plain, None if rules.for_mixtures is None else terms(rules.for_mixtures))


def orders() -> list[list[dict[str, Any]]]:
    rows = written()
    first, last, middle = [dict(TOY), *rows], [*rows, dict(TOY)], [*rows[:4], dict(TOY), *rows[4:]]
    shuffled = [Random(seed).sample(last, len(last)) for seed in range(5)]
    return [first, last, middle, last[::-1], *shuffled]


@pytest.mark.parametrize("rows", orders())
def test_a_toy_version_is_used_wherever_it_stands(rows: list[dict[str, Any]]) -> None:
    tables = rules_tables(rows)
    toy, before = rules_in(tables, "vllm", "0.35.1"), rules_in(tables, "vllm", "0.34.9")

    assert (toy.rules_version, toy.default_gpu_memory_utilization, toy.keeps_workspaces) == ("toy-0.35", 0.5, False)
    assert (before.rules_version, before.default_gpu_memory_utilization) == ("vllm-0.33", 0.92)
    assert toy.batch_defaults == before.batch_defaults  # what it does not state is the version's before it
    assert toy.sampler_bytes_per_logit == before.sampler_bytes_per_logit


@pytest.mark.parametrize("rows", orders())
def test_the_other_versions_and_the_unstated_one_stay_what_they_were(rows: list[dict[str, Any]]) -> None:
    tables = rules_tables(rows)

    for engine in ENGINES:
        assert terms(rules_in(tables, engine, None)) == terms(rules_for(engine))
    for row in all_rules():
        assert terms(rules_in(tables, row.engine, row.first_version)) == terms(rules_for(row.engine, row.first_version))


def test_a_toy_version_between_two_changes_what_comes_after_it_too() -> None:
    toy = {
        "engine": "vllm",
        "first_version": "0.21",
        "rules_version": "toy-0.21",
        "measured": {"long_sparse_workspace_factor": 7},
    }
    tables = rules_tables([*written(), toy])
    factors = {
        version: rules_in(tables, "vllm", version).long_sparse_workspace_factor
        for version in ("0.20.2", "0.21", "0.32", "0.33")
    }

    assert factors == {"0.20.2": 5, "0.21": 7, "0.32": 7, "0.33": 2}


def test_an_unstated_version_means_the_row_that_says_so() -> None:
    rows = written()
    newest = rows[index_of(rows, "vllm-0.33")]
    moved = [without(row, "unstated") if row is newest else row for row in rows]
    tables = rules_tables([*moved, {**TOY, "unstated": True}])

    assert rules_in(tables, "vllm", None).rules_version == "toy-0.35"
    assert not rules_in(tables, "vllm", None).is_version_stated


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a version that stands already": ({"first_version": "0.33.0"}, "toy-0.35 and vllm-0.33: both speak"),
    "no version": ({"first_version": "newest"}, "toy-0.35: first_version 'newest' is no version"),
    "a number, of which YAML drops the zero": ({"first_version": 0.40}, "toy-0.35: first_version 0.4 is no text"),
    "a candidate, to which no stated version is held": ({"first_version": "0.35rc1"}, "toy-0.35: .* is no release"),
    "a build": ({"first_version": "0.35+cu128"}, "toy-0.35: .* is no release"),
    "a name that stands already": ({"rules_version": "vllm-0.33"}, "vllm-0.33: two rows have this name"),
    "a key without a meaning": ({"gpu_memory_utilization": 0.9}, "toy-0.35: gpu_memory_utilization: Extra inputs"),
    "such a key in a block": ({"measured": {"graph_base": 1}}, "toy-0.35: measured.graph_base: Extra inputs"),
    "such a key for mixtures": ({"for_mixtures": {"sampler": 1}}, "toy-0.35: sampler: Extra inputs"),
    "a value of another kind": ({"steps_planned_ahead": "one"}, "toy-0.35: steps_planned_ahead: Input should be"),
    "a constant that is not listed": ({"measured": {"hidden_state_copies": "guess"}}, "toy-0.35: no constant is named guess"),
    "a source that is not listed": ({"source": "hearsay"}, "toy-0.35: no source is named hearsay"),
    "a second that speaks without a version": ({"unstated": True}, "of vllm .* not (vllm-0.33 and toy|toy-0.35 and)"),
    "an engine that is not known": ({"engine": "toy"}, "toy-0.35: engine: Input should be 'vllm'"),
    "no name": ({"rules_version": ""}, "row .*: rules_version"),
}  # fmt: skip


@pytest.mark.parametrize(("change", "sentence"), REFUSED.values(), ids=REFUSED)
@pytest.mark.parametrize("position", [0, 3, None])
def test_what_cannot_be_used_is_refused_by_name(change: dict[str, Any], sentence: str, position: int | None) -> None:
    rows = written()
    rows.insert(len(rows) if position is None else position, {**TOY, **change})

    with pytest.raises(VersionTableError, match=sentence):
        rules_tables(rows)


def test_an_oldest_row_states_everything() -> None:
    with pytest.raises(VersionTableError, match=r"toy-0.1: .*graph_accounting: Field required"):
        rules_tables([*written(), {**TOY, "first_version": "0.1", "rules_version": "toy-0.1"}])


@pytest.mark.parametrize("engine", ENGINES)
def test_some_row_of_every_engine_says_what_an_unstated_version_means(engine: EngineName) -> None:
    rows = [without(row, "unstated") if row["engine"] == engine else row for row in written()]

    with pytest.raises(VersionTableError, match=f"of {engine} exactly one row says .* not none"):
        rules_tables(rows)


def test_a_block_that_states_a_name_twice_is_refused() -> None:
    text = "rules:\n  - rules_version: toy-0.35\n    first_version: '0.35'\n    first_version: '0.36'\n"

    with pytest.raises(VersionTableError, match="line 2 states first_version twice"):
        yaml.load(text, Loader=UniqueKeys)  # noqa: S506 - a safe loader, but for repeated names


def test_the_same_rules_are_the_same_object() -> None:
    # Plans and times are kept by the rules' identity.
    tables: Tables = rules_tables(written())

    assert rules_for("vllm", "0.10.2") is rules_for("vllm", "v0.10.2")
    assert rules_for("vllm") is rules_for("vllm")
    assert rules_in(tables, "vllm", "0.33.1") is rules_in(tables, "vllm", "0.33.1")


def test_a_version_is_named_as_it_is_asked_for_whoever_asked_before() -> None:
    assert [rules_for("vllm", version).plan.version for version in ("0.33.0", "0.33", "0.33.0")] == [
        "0.33.0", "0.33", "0.33.0",
    ]  # fmt: skip
