"""Lists of the catalog are filtered, searched, and read by a spreadsheet."""

import csv
import io
from typing import Any

import pytest
from starlette.testclient import TestClient


def ids(client: TestClient, query: str) -> list[str]:
    response = client.get(f"/catalog/{query}")
    assert response.status_code == 200, response.text
    return [item["id"] for item in response.json()["items"]]


def whole(client: TestClient, kind: str) -> list[dict[str, Any]]:
    """Return every entry, page after page."""
    entries: list[dict[str, Any]] = []
    params: dict[str, Any] = {"page_size": 500}
    while True:
        page = client.get(f"/catalog/{kind}", params=params).json()
        entries += page["items"]
        if page["next_page_token"] is None:
            return entries
        params["page_token"] = page["next_page_token"]


def test_words_are_searched_in_ids_names_and_aliases(client: TestClient) -> None:
    found = ids(client, "models?search=llama 70b&page_size=500")

    assert "llama-3.3-70b-instruct" in found
    assert all("llama" in name for name in found)
    assert ids(client, "models?search=no-such-word") == []


@pytest.mark.parametrize("query", ["models?search=", "gpus?vendor=&architecture=", "offers?gpu=&region=&search="])
def test_an_empty_filter_lets_all_pass(client: TestClient, query: str) -> None:
    assert ids(client, query) == ids(client, query.partition("?")[0])


@pytest.mark.parametrize(
    ("kind", "field", "value"),
    [("gpus", "vendor", "amd"), ("gpus", "architecture", "hopper"), ("offers", "provider", "aws"),
     ("offers", "gpu", "h100-sxm-80gb"), ("offers", "tier", "community"), ("offers", "purchase", "on-demand")],
)  # fmt: skip
def test_a_list_shows_those_asked_for_and_no_other(client: TestClient, kind: str, field: str, value: str) -> None:
    every = whole(client, kind)
    shown = client.get(f"/catalog/{kind}", params={"page_size": 500, field: value}).json()["items"]

    assert shown == [entry for entry in every if entry[field] == value][:500]
    assert 0 < len(shown) < len(every)


def test_a_misspelt_filter_is_told_the_list_s_own(client: TestClient) -> None:
    fault = client.get("/catalog/gpus?vendr=nvidia").json()["errors"][0]

    assert fault["accepted"] == "did you mean vendor?"


def test_pages_of_a_filtered_list_go_on_where_they_ended(client: TestClient) -> None:
    first = client.get("/catalog/offers", params={"provider": "aws", "page_size": 2}).json()
    second = client.get("/catalog/offers", params={"provider": "aws", "page_token": first["next_page_token"]}).json()
    whole = ids(client, "offers?provider=aws&page_size=500")

    assert [entry["id"] for entry in (*first["items"], *second["items"])] == whole[: 2 + len(second["items"])]


@pytest.mark.parametrize(
    "address",
    ["catalog/gpus?page_token=abc", "catalog/gpus?page_token=%00", "measurements?page_token=h100-sxm-80gb",
     "catalog/offers?page_token={of_gpus}", "catalog/gpus?page_token={of_gpus}%3D"],
)  # fmt: skip
def test_a_token_that_is_none_of_this_list_is_refused(client: TestClient, address: str) -> None:
    of_gpus = client.get("/catalog/gpus?page_size=1&page_token=").json()["next_page_token"]
    refused = client.get("/" + address.format(of_gpus=of_gpus))

    assert refused.status_code == 422
    assert [fault["field"] for fault in refused.json()["errors"]] == ["page_token"]
    assert "`next_page_token`" in refused.json()["errors"][0]["accepted"]


@pytest.mark.parametrize("kind", ["models", "gpus", "offers"])
def test_a_sheet_has_every_entry_on_a_line_of_its_own(client: TestClient, kind: str) -> None:
    response = client.get(f"/catalog/{kind}", params={"format": "csv"})
    rows = list(csv.DictReader(io.StringIO(response.text)))

    assert response.headers["content-type"].startswith("text/csv")
    assert [row["id"] for row in rows][:500] == ids(client, f"{kind}?page_size=500")
    assert None not in rows[0]


def test_an_unknown_filter_is_refused(client: TestClient) -> None:
    assert client.get("/catalog/gpus?provider=aws").status_code == 422


def test_offers_are_found_by_what_a_gpu_is_called(client: TestClient) -> None:
    by_id, by_alias = (ids(client, f"offers?gpu={name}&page_size=500") for name in ("h100-sxm-80gb", "H100"))
    stranger = client.get("/catalog/offers?gpu=h1000")

    assert by_alias == by_id != []
    assert stranger.status_code == 404
    assert stranger.json()["errors"][0]["field"] == "gpu"


def test_a_sheet_without_a_row_has_its_columns(client: TestClient) -> None:
    asked = ("provider=aws", "provider=aws&region=eu-north1")
    some, none = (client.get(f"/catalog/offers?format=csv&{filters}").text for filters in asked)

    assert none.splitlines() == some.splitlines()[:1]
    assert "usd_per_hour" in none


@pytest.mark.parametrize(
    ("path", "field"), [("gpus?vendor=nvidea", "vendor"), ("offers?purchase=ondemand", "purchase")]
)
def test_a_filter_that_no_entry_can_pass_is_refused(client: TestClient, path: str, field: str) -> None:
    response = client.get(f"/catalog/{path}")

    assert response.status_code == 422
    assert response.json()["errors"][0]["field"] == field


@pytest.mark.parametrize("form", ["", "&format=csv"])
@pytest.mark.parametrize(
    ("path", "field", "near"),
    [("offers?provider=lamda", "provider", "lambda"), ("offers?provider=amazn", "provider", "aws"),
     ("offers?region=us-esat-1", "region", "us-east-1"),
     ("models?publisher=metta", "publisher", "Meta"), ("gpus?architecture=hoper", "architecture", "hopper")],
)  # fmt: skip
def test_a_name_that_no_entry_has_is_refused_with_the_nearest(
    client: TestClient, path: str, field: str, near: str, form: str
) -> None:
    """An empty list reads as nothing on offer, which a buyer would believe of a misspelt region."""
    response = client.get(f"/catalog/{path}{form}")
    [fault] = response.json()["errors"]

    assert (response.status_code, fault["field"]) == (422, field)
    assert fault["accepted"].split(", ")[0] == near


def test_names_that_entries_have_and_none_together_show_nothing(client: TestClient) -> None:
    assert ids(client, "offers?provider=aws&region=eu-north1") == []


def test_providers_are_listed_by_their_makers_names(client: TestClient) -> None:
    named, meant = (client.get(f"/catalog/offers?provider={name}").json() for name in ("Google Cloud", "gcp"))

    assert named == meant
    assert meant["items"]
