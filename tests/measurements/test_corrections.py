"""A stored measurement changes the answers it should and no other; without it they are what they were."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from typer.testing import CliRunner

from service.cli import app
from tests.conftest import API_KEY, seeded_service, service_settings

MODEL, GPU, VERSION = "llama-3.1-8b", "h100", "0.31.0"
LOG = "Model loading took 15.0 GiB memory\nAvailable KV cache memory: 54.70 GiB"
BENCHMARK = json.dumps(
    {
        "model_id": "meta-llama/Llama-3.1-8B-Instruct",
        "num_prompts": 64,
        "completed": 64,
        "max_concurrency": 8,
        "total_input_tokens": 64_000,
        "total_output_tokens": 12_800,
        "mean_ttft_ms": 260.0,
        "mean_tpot_ms": 9.5,
    }
)
ASKED: dict[str, Any] = {"model": MODEL, "gpu": GPU, "gpu_count": 1, "engine_version": VERSION}
# With the engine's own settings, as the benchmark's server ran: others are chosen where they carry more.
OWN = {"max_num_seqs": 1024, "max_num_batched_tokens": 8192}
LOADED = {**ASKED, **OWN, "concurrent_requests": 8, "input_tokens": 1000, "output_tokens": 200, "num_prompts": 64}


@pytest.fixture
def service(tmp_path: Path, database_url: str) -> Iterator[TestClient]:
    """A service on each kind of database."""
    with seeded_service(service_settings(tmp_path, database_url=database_url)) as client:
        client.headers["X-API-Key"] = API_KEY
        yield client


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    with seeded_service(service_settings(tmp_path_factory.mktemp("measured"))) as client:
        client.headers["X-API-Key"] = API_KEY
        yield client


def asked(client: TestClient, question: dict[str, Any], name: str = "capacity") -> dict[str, Any]:
    """Return an answer but for the revision, which every write raises."""
    response = client.post(f"/{name}", json=question)
    assert response.status_code == 200, response.text
    body: dict[str, Any] = response.json()
    del body["catalog_revision"]
    return body


def stored(client: TestClient, text: str, **question: Any) -> dict[str, Any]:
    response = client.post(
        "/measurements", json={"text": text, "question": {"gpu": GPU, "engine_version": VERSION, **question}}
    )
    assert response.status_code == 200, response.text
    kept: dict[str, Any] = response.json()["stored"]
    return kept


def test_a_start_up_corrects_the_ledger_and_deleting_it_restores_every_answer(service: TestClient) -> None:
    others = [{**ASKED, **other} for other in (
        {"gpu": "h200"}, {"model": "qwen2.5-7b-instruct"}, {"engine_version": "0.11.0"}, {"tensor_parallel_size": 2, "gpu_count": 2},
        {"engine": "sglang", "engine_version": "0.5.10"},
    )]  # fmt: skip
    before, untouched = asked(service, ASKED), [asked(service, each) for each in others]
    kept = stored(service, LOG, model=MODEL)
    after = asked(service, ASKED)

    assert after["memory_per_gpu"]["kv_cache_bytes"] == pytest.approx(54.70 * 2**30, abs=4096)
    assert (
        sum(value for name, value in after["memory_per_gpu"].items() if name not in ("total_bytes", "shortfall_bytes"))
        == (after["memory_per_gpu"]["total_bytes"])
    )
    assert before["memory_per_gpu"] != after["memory_per_gpu"]
    [row] = [each for each in after["assumptions"] if each["name"] == "measured_memory"]
    assert row["value"] == kept["id"]
    assert "line 2 kv_cache_bytes" in row["source"]
    [term] = [each for each in after["assumptions"] if each["name"] == "activation_bytes"]
    assert kept["id"] in term["source"]
    assert [asked(service, each) for each in others] == untouched
    ignoring = asked(service, {**ASKED, "use_measurements": False})
    assert {**ignoring, "asked": None} == {**before, "asked": None}
    assert service.delete(f"/measurements/{kept['id']}").status_code == 200
    assert asked(service, ASKED) == before


def test_a_benchmark_corrects_step_times_at_its_own_layout(quick: TestClient) -> None:
    before, apart = asked(quick, LOADED), asked(quick, {**LOADED, "gpu_count": 2, "tensor_parallel_size": 2})
    kept = stored(quick, BENCHMARK, gpu_count=1)
    after = asked(quick, LOADED)
    latency = after["latency"]

    assert before["latency"]["basis"] == "measured-kernels"
    assert latency["basis"] == "measured-here"
    assert latency["ttft_s"]["mean"] == pytest.approx(0.26, rel=0.05)
    assert latency["tpot_s"]["mean"] == pytest.approx(0.0095, rel=0.05)
    assert latency["expected_error_fraction"] == kept["error_fraction"] <= 0.05
    assert asked(quick, {**LOADED, "gpu_count": 2, "tensor_parallel_size": 2}) == apart
    options = asked(quick, {**{name: LOADED[name] for name in ("model", "engine_version", "concurrent_requests", "input_tokens", "output_tokens")}, "gpus": ["h100"]}, "recommend")["options"]  # fmt: skip
    assert {each["basis"] for each in options if each["weight_format"] == "bf16" and each["gpus_per_replica"] == 1} == {
        "measured-here"
    }
    assert quick.delete(f"/measurements/{kept['id']}").status_code == 200
    assert asked(quick, LOADED) == before


def test_it_is_listed_shown_and_its_writers_are_kept(quick: TestClient) -> None:
    service = quick
    first, again = stored(service, LOG, model=MODEL), stored(service, LOG, model=MODEL)
    listed = service.get("/measurements", params={"model": "Llama 3.1 8B"}).json()
    shown = service.get(f"/measurements/{first['id']}").json()
    service.delete(f"/measurements/{first['id']}")
    changes = service.get(f"/measurements/{first['id']}/changes").json()["items"]

    assert first["id"] == again["id"]
    assert [each["id"] for each in listed["items"]] == [first["id"]]
    assert service.get("/measurements", params={"model": "qwen3-32b"}).json()["items"] == []
    assert shown["figures"]["kv_cache_bytes"] == {"value": pytest.approx(54.70 * 2**30), "line": 2}
    assert shown["stored"]["changes"]
    assert [(each["number"], each["before"] is None, each["after"] is None) for each in changes] == [
        (2, False, True),
        (1, True, False),
    ]
    assert all(each["changed_by"].startswith("configured key ") for each in changes)
    assert service.get(f"/measurements/{first['id']}").status_code == 404
    assert service.delete(f"/measurements/{first['id']}").status_code == 404
    assert service.get("/measurements/none/changes").status_code == 404


def test_without_a_key_nothing_is_stored(quick: TestClient) -> None:
    body = {"text": LOG, "question": {"model": MODEL, "gpu": GPU, "engine_version": VERSION}}
    key = quick.headers.pop("X-API-Key")
    try:
        told = quick.post("/measurements", json=body)
        refused = quick.post("/measurements", json={**body, "store": True})
        deleted = quick.delete("/measurements/none")
        listed = quick.get("/measurements").json()["items"]
    finally:
        quick.headers["X-API-Key"] = key

    assert (told.status_code, told.json()["stored"]) == (200, None)
    assert refused.status_code == deleted.status_code == 401
    assert listed == []


def test_what_another_deployment_measured_is_not_stored(quick: TestClient) -> None:
    far = stored(quick, "Available KV cache memory: 20.0 GiB", model=MODEL)
    light = stored(quick, "Model loading took 8.5 GiB memory", model=MODEL)
    nothing = stored(quick, "Maximum concurrency for 8,192 tokens per request: 50.0x", model=MODEL)

    assert far["id"] is None
    assert "not explained" in far["why_not"]
    assert light["id"] is None
    assert "of bf16's on 1 ranks" in light["why_not"]
    assert nothing["id"] is None
    assert quick.get("/measurements").json()["items"] == []


@pytest.mark.parametrize(
    ("factor", "said"),
    [(10.0, "times slower than predicted"), (0.1, "times faster than predicted"), (1e-3, "over 1,000 times faster")],
)
def test_times_of_another_deployment_are_told_by_how_far_they_are_off(
    quick: TestClient, factor: float, said: str
) -> None:
    slow = {**json.loads(BENCHMARK), "mean_ttft_ms": 260.0 * factor, "mean_tpot_ms": 9.5 * factor}
    kept = stored(quick, json.dumps(slow), gpu_count=1)

    assert kept["id"] is None
    assert said in kept["why_not"]


def test_two_start_ups_that_contradict_each_other_are_told_apart(quick: TestClient) -> None:
    pools = 54.70, 51.0
    kept = [stored(quick, LOG.replace("54.70", str(pool)), model=MODEL) for pool in pools]
    after = asked(quick, ASKED)
    for each in kept:
        quick.delete(f"/measurements/{each['id']}")

    [error] = [each["value"] for each in after["assumptions"] if each["name"] == "measured_memory_error_fraction"]
    told = after["memory_per_gpu"]["kv_cache_bytes"] / 2**30
    assert told == pytest.approx(sum(pools) / 2, rel=1e-4)
    assert error == pytest.approx(told / pools[1] - 1, rel=1e-3)


def test_a_second_process_answers_the_same(tmp_path: Path) -> None:
    first = seeded_service(service_settings(tmp_path / "a"))
    with first, TestClient(first.app, raise_server_exceptions=False) as second:
        first.headers["X-API-Key"] = API_KEY
        stored(first, LOG, model=MODEL)
        second.app.state.catalog.refresh()  # type: ignore[attr-defined]

        assert asked(first, ASKED) == asked(second, ASKED)


def test_the_command_line_stores_lists_and_removes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIZER_DATABASE_URL", f"sqlite:///{tmp_path}/cli.sqlite3")
    monkeypatch.setenv("SIZER_SNAPSHOT_PATH", str(tmp_path / "snapshot.json"))
    run = CliRunner().invoke
    for command in ("migrate", "seed"):
        assert run(app, [command]).exit_code == 0
    told = run(app, ["check", "-", "--store", "--model", MODEL, "--gpu", GPU, "--engine-version", VERSION], input=LOG)
    listed = run(app, ["measurements", "list"])
    own_id = listed.output.split()[0]

    assert "stored as measurement " + own_id in told.output
    assert "llama-3.1-8b-instruct on h100-sxm-80gb" in listed.output
    assert run(app, ["measurements", "remove", own_id]).exit_code == 0
    assert run(app, ["measurements", "remove", own_id]).exit_code == 2
    assert run(app, ["measurements", "list"]).output == ""
