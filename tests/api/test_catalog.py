"""Reading and writing the catalog."""

import json
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from service.main import create_app
from tests.catalog.samples import GPU, MODEL, OFFER, SOURCE, with_figure
from tests.conftest import seeded_service, service_settings
from tests.waiting import eventually


def held(client: TestClient) -> tuple[Any, ...]:
    """Return what a service holds, to compare."""
    ready = client.get("/readyz").json()
    return tuple(ready[name] for name in ("catalog_revision", "models", "gpus"))


def test_reads_are_open_and_show_sources(client: TestClient) -> None:
    gpu = client.get("/catalog/gpus/h100").json()
    model = client.get("/catalog/models/meta-llama/Llama-3.3-70B-Instruct").json()

    assert gpu["figures"]["memory_bytes"]["value"] == 81_559 << 20
    assert gpu["figures"]["memory_bytes"]["source"]["url"].startswith("http")
    assert model["id"] == "llama-3.3-70b-instruct"
    assert model["source"]["checked_on"]


@pytest.mark.parametrize(
    ("path", "body", "field", "accepted"),
    [
        ("/catalog/offers/made-up-offer", {**OFFER, "gpu": "h100"}, "gpu", "h100-sxm-80gb"),
        ("/catalog/offers/made-up-offer", {**OFFER, "gpu": "no-such-gpu"}, "gpu", "the id of one of /catalog/gpus"),
        ("/catalog/gpus/made-up-100gb", {**GPU, "aliases": ["h100"]}, "aliases", "what no other entry has"),
        ("/catalog/gpus/h100", {**GPU, "id": "h100"}, "id", "what no other entry has"),
        ("/catalog/gpus/made-up-100gb", {**GPU, "name": "H100"}, "name", "what no other entry has"),
        ("/catalog/gpus/made-up-100gb", {**GPU, "name": "L40S"}, "name", "what no other entry has"),
        ("/catalog/gpus/made-up-100gb", {**GPU, "name": "NVIDIA L40S"}, "name", "what no other entry has"),
        ("/catalog/gpus/made-up-100gb", {**GPU, "aliases": ["nvidia l40s"]}, "aliases", "what no other entry has"),
        ("/catalog/models/made-up-8b", {**MODEL, "aliases": ["qwen3-32b"]}, "aliases", "what no other entry has"),
        ("/catalog/models/made-up-8b", {**MODEL, "hf_id": "Qwen/Qwen3-32B"}, "hf_id", "what no other entry has"),
    ],
)
def test_a_conflict_names_its_field(
    writable: TestClient, path: str, body: dict[str, Any], field: str, accepted: str
) -> None:
    refused = writable.put(path, json=body)

    assert refused.status_code == 409
    assert [(fault["field"], fault["accepted"]) for fault in refused.json()["errors"]] == [(field, accepted)]


def test_a_list_that_is_too_short_is_told_how_long_it_is_to_be(writable: TestClient) -> None:
    [fault] = writable.put("/catalog/models/made-up-8b", json={**MODEL, "checkpoints": []}).json()["errors"]

    assert fault == {
        "field": "checkpoints",
        "detail": "should be a list of at least 1",
        "accepted": "a list of at least 1",
    }


@pytest.mark.parametrize(
    ("changes", "field", "accepted"),
    [
        ({"aliases": None}, "aliases", "a list"),
        ({"checkpoints": "bf16"}, "checkpoints", "a list"),
        ({"checkpoints": [{**MODEL["checkpoints"][0], "is_default": False}]}, "checkpoints", "of exactly one"),
        ({"checkpoints": MODEL["checkpoints"] * 2}, "checkpoints", "of exactly one"),
        (
            {"checkpoints": [MODEL["checkpoints"][0], {**MODEL["checkpoints"][0], "is_default": False}]},
            "checkpoints",
            "each weight_format and hf_id once",
        ),
    ],
)
def test_a_list_that_is_none_or_does_not_add_up_is_told_by_its_field(
    writable: TestClient, changes: dict[str, Any], field: str, accepted: str
) -> None:
    refused = writable.put("/catalog/models/made-up-8b", json={**MODEL, **changes})

    assert refused.status_code == 422
    [fault] = refused.json()["errors"]
    assert (fault["field"], fault["accepted"].endswith(accepted)) == (field, True)


@pytest.mark.parametrize("listed", ["models", "gpus", "offers"])
def test_a_name_with_a_line_break_is_not_there(client: TestClient, listed: str) -> None:
    assert client.get(f"/catalog/{listed}/no%0Asuch").status_code == 404


@pytest.mark.parametrize("kind", ["models", "gpus", "offers"])
def test_lists_come_in_pages_without_gaps(client: TestClient, kind: str) -> None:
    ids: list[str] = []
    token: str | None = None
    for _ in range(100):
        page = client.get(
            f"/catalog/{kind}", params={"page_size": 40} | ({"page_token": token} if token else {})
        ).json()
        ids += [item["id"] for item in page["items"]]
        token = page["next_page_token"]
        if token is None:
            break

    assert ids == sorted(set(ids))
    assert ids[:500] == [item["id"] for item in client.get(f"/catalog/{kind}?page_size=500").json()["items"]]


def test_a_written_gpu_answers_questions_at_once(writable: TestClient) -> None:
    before = writable.get("/readyz").json()["catalog_revision"]

    written = writable.put("/catalog/gpus/made-up-100gb", json=GPU)
    offered = writable.put("/catalog/offers/made-up-offer", json=OFFER)

    assert written.json() == {"id": "made-up-100gb", "catalog_revision": before + 1}
    assert offered.json()["catalog_revision"] == before + 2
    question = {
        "model": "llama-3.1-8b",
        "gpu": "madeup",
        "concurrent_requests": 8,
        "input_tokens": 9,
        "output_tokens": 9,
    }
    answer = writable.post("/size", json=question).json()
    assert answer["gpu"] == "made-up-100gb"
    assert answer["cost"]["usd_per_hour"] == 10.0
    assert answer["catalog_revision"] == before + 2


def test_a_written_model_can_be_sized_replaced_and_deleted(writable: TestClient) -> None:
    question = {"model": "UP8", "gpu": "h100", "concurrent_requests": 8, "input_tokens": 9, "output_tokens": 9}

    assert writable.put("/catalog/models/made-up-8b", json=MODEL).status_code == 200
    assert writable.post("/size", json=question).json()["model"] == "made-up-8b"
    assert writable.put("/catalog/models/made-up-8b", json={**MODEL, "aliases": ["other"]}).status_code == 200
    assert writable.post("/size", json=question).status_code == 404
    assert writable.delete("/catalog/models/made-up-8b").status_code == 200
    assert writable.get("/catalog/models/made-up-8b").status_code == 404
    assert writable.delete("/catalog/models/made-up-8b").status_code == 404


def test_what_a_deleted_entry_was_called_means_no_other(writable: TestClient) -> None:
    """By its words `h100 oam` is an H100 SXM, and a repository a fine-tune: until they were somebody's, and deleted."""
    load = {"concurrent_requests": 8, "input_tokens": 9, "output_tokens": 9, "latency": "none"}
    question = {"model": "me/Llama-3.1-8B-wide", "gpu": "h100 oam", **load}
    assert writable.post("/size", json=question).json()["gpu"] == "h100-sxm-80gb"

    named = {"hf_id": "me/Llama-3.1-8B-wide", "checkpoints": [{**MODEL["checkpoints"][0], "hf_id": "me/wide"}]}
    writable.put("/catalog/gpus/made-up-100gb", json={**GPU, "aliases": ["h100 oam"]})
    writable.put("/catalog/models/made-up-8b", json={**MODEL, **named})
    theirs = writable.post("/size", json=question).json()
    writable.delete("/catalog/gpus/made-up-100gb")
    writable.delete("/catalog/models/made-up-8b")

    assert (theirs["gpu"], theirs["model"]) == ("made-up-100gb", "made-up-8b")
    for name in ("H100-OAM", "2 x h100 oam"):
        refused = writable.post("/size", json={"model": "qwen3-8b", "gpu": name, **load})
        assert (refused.status_code, refused.json()["errors"][0]["field"]) == (404, "gpu")
    for name in ("me/llama-3.1-8b-wide", "https://huggingface.co/me/Llama-3.1-8B-wide", "me/wide"):
        refused = writable.post("/size", json={"model": name, "gpu": "h100", **load})
        assert (refused.status_code, refused.json()["errors"][0]["field"]) == (404, "model")
    other = writable.post("/size", json={"model": "you/Llama-3.1-8B-wide", "gpu": "h100", **load})
    assert other.json()["model"] == "llama-3.1-8b-instruct"
    writable.put("/catalog/gpus/made-up-100gb", json={**GPU, "aliases": ["h100 oam"]})
    again = writable.post("/size", json={**question, "model": "qwen3-8b"})
    assert again.json()["gpu"] == "made-up-100gb"


@pytest.mark.parametrize("stated", [1, 8_030, 1 << 61, 70_000_000_000])
def test_parameters_that_the_config_cannot_have_are_refused_with_its_count(writable: TestClient, stated: int) -> None:
    """Llama 3.1 8B has 8.03 billion by Meta's card; 8,030 are millions, and 70 billion another model's."""
    refused = writable.put("/catalog/models/made-up-8b", json={**MODEL, "num_parameters": stated})
    [fault] = refused.json()["errors"]

    assert (refused.status_code, fault["field"]) == (422, "num_parameters")
    assert "8030261248" in fault["accepted"]
    assert writable.get("/catalog/models/made-up-8b").status_code == 404
    counted = writable.put("/catalog/models/made-up-8b", json={**MODEL, "num_parameters": 8_030_000_000})
    assert counted.status_code == 200


def test_two_models_are_not_shown_under_one_name(writable: TestClient) -> None:
    shown = writable.get("/catalog/models/llama-3.1-8b").json()["name"]
    refused = writable.put("/catalog/models/made-up-8b", json={**MODEL, "name": shown.upper()})

    assert (refused.status_code, "llama-3.1-8b-instruct" in refused.json()["detail"]) == (409, True)
    assert writable.put("/catalog/models/made-up-8b", json=MODEL).status_code == 200
    assert writable.put("/catalog/models/made-up-8b", json=MODEL).status_code == 200  # its own, again


def test_deleting_a_gpu_takes_its_offers_along(writable: TestClient) -> None:
    writable.put("/catalog/gpus/made-up-100gb", json=GPU)
    writable.put("/catalog/offers/made-up-offer", json=OFFER)

    assert writable.delete("/catalog/gpus/made-up-100gb").status_code == 200
    assert writable.get("/catalog/offers/made-up-offer").status_code == 404


def _nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    "extra",
    [_nested(50), _nested(900), {"x": "\ud800"}, {"x": ["\0"]}, {"\ud800": 1}, {"num_hidden_layers": 1_000_000}],
    ids=["deep", "deeper", "surrogate", "nul", "surrogate key", "layers"],
)
def test_a_config_no_client_could_read_back_is_refused(writable: TestClient, extra: dict[str, Any]) -> None:
    before = held(writable)
    body = json.dumps({**MODEL, "config": {**MODEL["config"], **extra}})

    response = writable.put("/catalog/models/made-up-8b", content=body, headers={"content-type": "application/json"})

    assert response.status_code == 422, response.text
    assert "config" in response.json()["errors"][0]["field"]
    assert held(writable) == before


def test_an_infinite_number_of_a_config_is_kept_as_transformers_writes_it(writable: TestClient) -> None:
    body = json.dumps({**MODEL, "config": {**MODEL["config"], "time_step_limit": [0.0, float("inf")]}})

    response = writable.put("/catalog/models/made-up-8b", content=body, headers={"content-type": "application/json"})

    assert response.status_code == 200, response.text
    kept = writable.get("/catalog/models/made-up-8b").json()["config"]["time_step_limit"]
    assert kept == [0.0, {"__float__": "Infinity"}]


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/catalog/gpus/another-id", GPU, 422),
        ("/catalog/gpus/made-up-100gb", {**GPU, "aliases": ["h100"]}, 409),
        ("/catalog/gpus/made-up-100gb", {**GPU, "figures": {}}, 422),
        ("/catalog/gpus/made-up-100gb", {**GPU, "gpus_per_node": 0}, 422),
        ("/catalog/models/made-up-8b", {**MODEL, "config": {"architectures": ["NoSuchForCausalLM"]}}, 422),
        ("/catalog/models/made-up-8b", {**MODEL, "checkpoints": []}, 422),
        ("/catalog/models/made-up-8b", {**MODEL, "aliases": ["llama-3.1-8b"]}, 409),
        ("/catalog/offers/made-up-offer", {**OFFER, "gpu": "no-such-gpu"}, 409),
        ("/catalog/offers/made-up-offer", {**OFFER, "usd_per_hour": -1}, 422),
        # Each of these was taken, and then no question was answered any more, or was a 503 on PostgreSQL alone.
        ("/catalog/gpus/made-up-100gb", with_figure("memory_bytes", 1e-300), 422),
        ("/catalog/gpus/made-up-100gb", with_figure("memory_bandwidth_bytes_per_s", 1e-300), 422),
        ("/catalog/gpus/made-up-100gb", with_figure("peak_bf16_flop_per_s", 1e-300), 422),
        ("/catalog/gpus/made-up-100gb", with_figure("memory_bytes", True), 422),
        ("/catalog/gpus/made-up-100gb", with_figure("memory_bytes", "5"), 422),
        ("/catalog/gpus/made-up-100gb", {**GPU, "scale_up_kind": "\0"}, 422),
        ("/catalog/offers/made-up-offer", {**OFFER, "gpu": "h100-sxm-80gb", "usd_per_hour": 5e-324}, 422),
        ("/catalog/offers/made-up-offer", {**OFFER, "gpu": "h100-sxm-80gb", "instance_type": "x" * 129}, 422),
        ("/catalog/offers/made-up-offer", {**OFFER, "gpu": "h100-sxm-80gb", "instance_type": "x\0"}, 422),
        (
            "/catalog/models/made-up-8b",
            {
                **MODEL,
                "config": {
                    **MODEL["config"],
                    "architectures": ["Step3TextForCausalLM"],
                    "moe_layers_enum": "9" * 5000,
                    "moe_num_experts": 8,
                    "moe_top_k": 2,
                    "moe_intermediate_size": 64,
                    "share_expert_dim": 64,
                    "share_q_dim": 64,
                    "num_attention_groups": 1,
                },
            },
            422,
        ),
    ],
    ids=lambda value: value.rsplit("/", 1)[-1] if isinstance(value, str) else None,
)
def test_a_refused_write_changes_nothing(on_each: TestClient, path: str, body: dict[str, Any], status: int) -> None:
    before = held(on_each)

    response = on_each.put(path, json=body)

    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    assert held(on_each) == before


def test_bounds_are_stated_where_a_figure_breaks_them(writable: TestClient) -> None:
    problem = writable.put("/catalog/gpus/made-up-100gb", json=with_figure("power_watts", 1e9)).json()

    assert problem["errors"][0]["field"].startswith("figures")
    assert problem["errors"][0]["accepted"] == "1 to 100000 watts"


@pytest.mark.parametrize(
    ("fault", "field", "accepted"),
    [
        ({"purchase": "ondemand"}, "purchase", "on-demand, reserved, spot"),
        ({"purchase": "On-Demand"}, "purchase", "on-demand, reserved, spot"),
        ({"purchase": "spot", "commitment_months": 12}, "commitment_months", "purchase reserved, or none of them"),
        ({"purchase": "reserved"}, "commitment_months", "for how many months it binds"),
        ({"as_of": "2099-01-01"}, "as_of", "a day up to "),
        ({"source": {**SOURCE, "checked_on": "2099-01-01"}}, "source.checked_on", "a day up to "),
        ({"gpu": "H100"}, "gpu", "lower-case letters, digits, points"),
    ],
)
def test_an_offer_that_no_question_would_find_is_refused(
    writable: TestClient, fault: dict[str, Any], field: str, accepted: str
) -> None:
    response = writable.put("/catalog/offers/made-up-offer", json={**OFFER, "gpu": "h100-sxm-80gb", **fault})

    assert response.status_code == 422
    assert response.json()["errors"][0]["field"] == field
    assert response.json()["errors"][0]["accepted"].startswith(accepted)


TO_COME = {**SOURCE, "checked_on": "2099-01-01"}


@pytest.mark.parametrize(
    ("path", "entry", "field"),
    [
        ("models/made-up-8b", {**MODEL, "source": TO_COME}, "source"),
        (
            "models/made-up-8b",
            {**MODEL, "checkpoints": [{**MODEL["checkpoints"][0], "source": TO_COME}]},
            "checkpoints.0.source",
        ),
        (
            "gpus/made-up-100gb",
            {**GPU, "figures": {**GPU["figures"], "memory_bytes": {"value": 1 << 36, "source": TO_COME}}},
            "figures.memory_bytes.source",
        ),
    ],
)
def test_a_source_that_will_be_looked_at_some_day_is_refused(
    writable: TestClient, path: str, entry: dict[str, Any], field: str
) -> None:
    response = writable.put(f"/catalog/{path}", json=entry)

    assert response.status_code == 422, response.text
    assert response.json()["errors"][0]["field"] == f"{field}.checked_on"
    assert response.json()["errors"][0]["accepted"].startswith("a day up to ")


def test_a_gpu_added_over_the_api_may_have_measured_kernels(writable: TestClient) -> None:
    """The same silicon in another form: it is timed by the kernels it names."""
    h100 = writable.get("/catalog/gpus/h100").json()
    twin = {**h100, "id": "h100-of-somebody", "name": "H100 of somebody", "aliases": []}
    question = {
        "model": "llama-3.1-8b",
        "concurrent_requests": 8,
        "input_tokens": 500,
        "output_tokens": 100,
        "tensor_parallel_size": 1,
        "ttft_s": 2.0,
    }

    for measured_as, basis in ((h100["measured_as"], "measured-kernels"), (None, "roofline")):
        written = writable.put("/catalog/gpus/h100-of-somebody", json={**twin, "measured_as": measured_as})
        assert written.status_code == 200, written.text
        answer = writable.post("/size", json={**question, "gpu": "h100-of-somebody"}).json()
        assert answer["latency"]["basis"] == basis


def test_a_price_change_parses_nothing_but_the_offer(writable: TestClient) -> None:
    keeper = writable.app.state.catalog  # type: ignore[attr-defined]
    before = keeper.snapshot
    offer = writable.get("/catalog/offers").json()["items"][0]

    written = writable.put(f"/catalog/offers/{offer['id']}", json={**offer, "usd_per_hour": 77.0})

    assert written.status_code == 200
    assert keeper.snapshot.revision == before.revision + 1
    assert keeper.snapshot.built_models is before.built_models
    assert keeper.snapshot.gpus is before.gpus


@pytest.mark.parametrize("method", ["put", "delete"])
def test_writing_needs_the_key(writable: TestClient, method: str) -> None:
    for key in ("", "wrong", "test-key2", "clé"):
        response = writable.request(
            method, "/catalog/gpus/made-up-100gb", json=GPU, headers={b"X-API-Key": key.encode("latin-1")}
        )
        assert response.status_code == 401


def test_without_a_configured_key_nobody_writes(tmp_path: Any) -> None:
    with seeded_service(service_settings(tmp_path, api_keys="")) as client:
        response = client.put("/catalog/gpus/made-up-100gb", json=GPU, headers={"X-API-Key": ""})

        assert response.status_code == 403
        assert "read-only" in response.json()["detail"]


def test_a_dead_database_costs_writes_and_never_answers(tmp_path: Any) -> None:
    with seeded_service(service_settings(tmp_path)) as client:
        client.headers["X-API-Key"] = "test-key"
        for file in tmp_path.glob("catalog.sqlite3*"):
            file.write_bytes(b"not a database")

        write = client.put("/catalog/gpus/made-up-100gb", json=GPU)
        question = {
            "model": "llama-3.1-8b",
            "gpu": "h100",
            "concurrent_requests": 8,
            "input_tokens": 9,
            "output_tokens": 9,
        }

        assert write.status_code == 503
        assert int(write.headers["retry-after"]) > 0
        assert client.post("/size", json=question).status_code == 200
        assert client.get("/readyz").json()["status"] == "ready"


@pytest.mark.parametrize("poll_seconds", [0.2, 3600])
def test_two_services_on_one_postgresql_converge(empty_postgres_url: str, tmp_path: Path, poll_seconds: float) -> None:
    """By looking, and by being told."""
    shared = {"database_url": empty_postgres_url, "snapshot_poll_seconds": poll_seconds}
    first_settings = service_settings(tmp_path / "first", **shared)
    second_settings = service_settings(tmp_path / "second", **shared)
    with seeded_service(first_settings) as first, TestClient(create_app(second_settings)) as second:

        def is_seen() -> bool:
            written = first.put("/catalog/gpus/made-up-100gb", json=GPU, headers={"X-API-Key": "test-key"})
            assert written.status_code == 200, written.text
            revision = written.json()["catalog_revision"]
            return eventually(lambda: second.get("/readyz").json()["catalog_revision"] == revision, seconds=5)

        assert any(is_seen() for _ in range(5))  # the second may not listen yet when the first write is made
        assert second.get("/catalog/gpus/made-up-100gb").status_code == 200
        question = {
            "model": "llama-3.1-8b",
            "gpu": "madeup",
            "concurrent_requests": 8,
            "input_tokens": 9,
            "output_tokens": 9,
        }
        assert second.post("/size", json=question).content == first.post("/size", json=question).content


def test_what_another_process_has_just_written_is_not_missing(writable: TestClient, tmp_path: Path) -> None:
    with TestClient(create_app(service_settings(tmp_path, snapshot_path=tmp_path / "other.json"))) as other:
        written = writable.put("/catalog/offers/made-up-offer", json={**OFFER, "gpu": "h100-sxm-80gb"})
        shown = other.get("/catalog/offers/made-up-offer")
        missing = other.get("/catalog/offers/never-was")

    assert written.status_code == shown.status_code == 200
    assert missing.status_code == 404
