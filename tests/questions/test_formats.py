"""Any answer in every format, made of its rows, lines and gauges alone."""

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, get_args

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families
from starlette.testclient import TestClient

from service.questions.answers import Answer, Row
from service.questions.formats import WRITERS, table, written
from service.questions.parts.writing import Format, Writing
from service.questions.refusals import RefusalError


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A block."""

    word: str
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A result."""

    feasible: bool
    model: str
    gpus: int
    total_bytes: int
    cells: tuple[Cell, ...]
    best: Cell | None


class TableAnswer(Answer[Table]):
    """Cells."""

    def rows(self) -> Sequence[Row]:
        return list(self.document["cells"])

    def lines(self) -> Sequence[str]:
        return [f"{cell.word}: {cell.share}" for cell in self.result.cells]


def table_answer(*, feasible: bool = True) -> TableAnswer:
    cells = (Cell(word="=SUM(A1)", share=0.25), Cell(word='quoted "é"\nline', share=1e-9))
    result = Table(feasible=feasible, model='a"b\\c\nd', gpus=3, total_bytes=85_520_809_984, cells=cells, best=cells[0])
    return TableAnswer(result, 1)


@pytest.mark.parametrize(
    ("field", "nearest"),
    [
        ("gpuss", "gpus"),
        ("layout", "layout."),
        ("kv_cache.token", "kv_cache.tokens"),
        ("pools", ""),
        ("price", "cost.usd_per_hour"),
        ("cost", "cost.usd_per_hour"),
        ("num_gpus", "gpus"),
        ("ttft", "latency.ttft_s.p95"),
    ],
)
def test_a_field_is_refused_with_those_that_are_taken(client: TestClient, field: str, nearest: str) -> None:
    asked: dict[str, Any] = {
        "model": "llama-3.1-8b", "gpu": "h100", "input_tokens": 900, "output_tokens": 90, "concurrent_requests": 8,
    }  # fmt: skip
    [fault] = client.get("/size", params={**asked, "field": field}).json()["errors"]
    named = fault["accepted"].split(", ")

    assert fault["field"] == "field"
    assert named[0].startswith(nearest)
    assert {client.get("/size", params={**asked, "field": name}).status_code for name in named} == {200}


def test_every_format_of_the_contract_has_a_writer() -> None:
    assert set(WRITERS) == set(get_args(Format))


def test_json_and_yaml_hold_the_whole_answer() -> None:
    answer = table_answer()

    as_json, as_yaml = written(answer, Writing()), written(answer, Writing(format="yaml"))

    assert json.loads(as_json.text) == yaml.safe_load(as_yaml.text) == answer.document
    assert as_json.text.endswith("}\n")
    assert (as_json.media_type, as_yaml.media_type) == ("application/json", "application/yaml")


def test_csv_holds_the_rows_and_no_formula() -> None:
    answer = written(table_answer(), Writing(format="csv"))

    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert [row["word"] for row in rows] == ["'=SUM(A1)", 'quoted "é"\nline']
    assert [float(row["share"]) for row in rows] == [0.25, 1e-9]
    assert table([]) == ""
    assert table([{"fits": True, "is_stale": False}]) == "fits,is_stale\ntrue,false\n"


def test_text_holds_the_lines() -> None:
    assert written(table_answer(), Writing(format="text")).text.startswith("=SUM(A1): 0.25\n")


def test_gauges_are_read_back_by_a_prometheus_parser() -> None:
    answer = written(table_answer(), Writing(format="prometheus"))

    families = {family.name: family for family in text_string_to_metric_families(answer.text)}
    samples = {name: family.samples[0].value for name, family in families.items()}
    assert samples == {
        "sizer_feasible": 1,
        "sizer_gpus": 3,
        "sizer_total_bytes": 85_520_809_984,
        "sizer_best_share": 0.25,
        "sizer_catalog_revision": 1,
    }
    assert all(family.type == "gauge" for family in families.values())
    assert families["sizer_gpus"].samples[0].labels == {"workload": table_answer().digest, "model": 'a"b\\c\nd'}
    assert answer.text.endswith("\n")
    assert answer.media_type.startswith("text/plain; version=0.0.4")


@pytest.mark.parametrize(
    ("field", "text"),
    [("gpus", "3\n"), ("feasible", "true\n"), ("cells.1.share", "1e-09\n"), ("best.word", "=SUM(A1)\n")],
)
def test_one_field_is_read_by_its_path(field: str, text: str) -> None:
    assert written(table_answer(), Writing(field=field)).text == text


@pytest.mark.parametrize("field", ["no_such", "cells", "cells.2", "best", "gpus.0", "cells.x"])
def test_a_path_without_a_single_value_is_refused(field: str) -> None:
    with pytest.raises(RefusalError) as refused:
        written(table_answer(), Writing(field=field))

    assert (refused.value.kind, refused.value.faults[0].field) == ("no-such-field", "field")


def test_a_value_of_a_list_is_found_by_its_name(client: TestClient) -> None:
    asked: dict[str, Any] = {
        "model": "llama-3.1-8b", "gpus": "h100", "input_tokens": 900, "output_tokens": 90, "concurrent_requests": 8,
    }  # fmt: skip
    [fault] = client.get("/recommend", params={**asked, "field": "gpus"}).json()["errors"]

    assert fault["accepted"].startswith("options.0.gpus, ")


def test_a_list_without_names_is_refused_with_its_places(client: TestClient) -> None:
    """`the path of a value that is not null` was told of a list of flags."""
    asked: dict[str, Any] = {
        "model": "llama-3.1-8b", "gpu": "h100", "input_tokens": 900, "output_tokens": 90, "concurrent_requests": 8,
    }  # fmt: skip
    [fault] = client.get("/size", params={**asked, "field": "engine_args"}).json()["errors"]
    places = fault["accepted"].split(", ")

    assert places[:2] == ["engine_args.0", "engine_args.1"]
    assert client.get("/size", params={**asked, "field": places[-1]}).status_code == 200


def test_an_empty_list_is_told_as_one(client: TestClient) -> None:
    asked: dict[str, Any] = {
        "model": "llama-3.1-8b", "gpu": "h100", "input_tokens": 900, "output_tokens": 90, "concurrent_requests": 8,
    }  # fmt: skip
    refused = client.get("/size", params={**asked, "field": "would_fit"}).json()

    assert refused["detail"] == "the answer has an empty list at 'would_fit'"


def test_a_price_that_is_missing_is_refused_with_the_reason(client: TestClient) -> None:
    asked: dict[str, Any] = {
        "model": "llama-3.1-8b", "gpu": "gb10", "input_tokens": 900, "output_tokens": 90, "concurrent_requests": 8,
    }  # fmt: skip
    refused = client.get("/size", params={**asked, "field": "cost.usd_per_hour"})

    assert refused.status_code == 422
    assert "no price: the catalog has no offer of gb10" in refused.json()["detail"]


@pytest.mark.parametrize("how", [{"field": "gpus"}, {"format": "prometheus"}])
def test_machines_read_no_number_of_an_infeasible_answer(how: dict[str, Any]) -> None:
    with pytest.raises(RefusalError) as refused:
        written(table_answer(feasible=False), Writing(**how))

    assert refused.value.kind == "infeasible"


@pytest.mark.parametrize("how", ["json", "yaml", "csv", "text"])
def test_people_read_an_infeasible_answer(how: Format) -> None:
    assert written(table_answer(feasible=False), Writing(format=how)).text


@pytest.mark.parametrize(
    ("path", "names"), [("recommend", {"model": "llama-3.1-8b"}), ("compare", {"models": "llama-3.1-8b"})]
)
def test_a_count_in_a_name_that_decides_nothing_is_told_in_every_format(
    client: TestClient, path: str, names: dict[str, str]
) -> None:
    load = {"concurrent_requests": "8", "input_tokens": "1000", "output_tokens": "100"}
    asked = {**names, **load, "gpus": "2xh100"}
    told = {form: client.get(f"/{path}", params={**asked, "format": form}).text for form in ("json", "text", "csv")}
    row = next(csv.DictReader(io.StringIO(told["csv"])))

    assert all("the count of 2 decides nothing here" in text for text in (told["text"], row["warnings"]))
    assert any("decides nothing here" in warning for warning in json.loads(told["json"])["warnings"])


@pytest.mark.parametrize(
    ("path", "how"), [("replicas", {}), ("replicas", {"field": "replicas"}), ("capacity", {"format": "prometheus"})]
)
def test_a_machine_s_log_says_what_would_fit(client: TestClient, path: str, how: dict[str, str]) -> None:
    """An autoscaler's and Terraform's logs show the detail alone, which named no reason."""
    asked: dict[str, Any] = {"model": "llama-3.3-70b", "gpu": "h100", "tensor_parallel_size": 1}
    lengths = {"input_tokens": 2_000, "output_tokens": 500, "pipeline_parallel_size": 1}
    load = {"request_rate_per_s": 1} if path == "replicas" else {}
    refused = client.get(f"/{path}", params={**asked, **lengths, **load, **how})
    problem = refused.json()

    assert refused.status_code == 422
    assert "64." in problem["detail"]
    assert "weight_format=fp8 fits" in problem["detail"]
    assert {"weight_format"} == {error["field"] for error in problem["errors"]}
