"""What callers are told is told in this service's words: nothing that a library said of its own troubles."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from service.catalog.keeper import CatalogKeeper
from service.catalog.offer_files import Stated, read_price_list
from service.catalog.snapshot import Snapshot
from tests.catalog.samples import GPU, MODEL, OFFER
from tests.conftest import API_KEY, seeded_service, service_settings
from tests.hub.server import FILES, REDIRECTS, STATUSES, running_hub

# Classes of exceptions, folders and modules of libraries, and what libraries are known to say.
FOREIGN = re.compile(
    r"\b[A-Z]\w*(?:Error|Exception|Expired|Timeout)\b|Traceback|site-packages|/(?:work|root|usr|tmp)/"
    r"|\b(?:sqlalchemy|psycopg|sqlite3|pydantic|packaging|httpx2?|aiconfigurator_core|numba|zlib)\b"
    r"|Input should be|Field required|unable to parse|Expecting value|could not convert|invalid literal|Errno"
    r"|codec can't|Invalid isoformat|day is out of range|InFailedSql|UNIQUE constraint|perf data|GEMM",
)
LOAD: dict[str, Any] = {"gpu": "h100", "concurrent_requests": 8, "input_tokens": 1_000, "output_tokens": 100}
LIMITED: dict[str, Any] = {**LOAD, "ttft_s": 2.0, "tpot_s": 0.05}
BY_NAME: dict[str, Any] = {"model": "llama-3.1-8b", **LOAD}
LLAMA = MODEL["config"]


def assert_own(said: str) -> None:
    assert FOREIGN.findall(said) == [], said[:2_000]


@pytest.fixture(scope="module")
def writable(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    with running_hub() as url:
        settings = service_settings(tmp_path_factory.mktemp("words"), hub_url=url, hub_allowed_hosts="127.0.0.1")
        with seeded_service(settings) as client:
            client.headers["X-API-Key"] = API_KEY
            yield client


@pytest.mark.parametrize(
    ("model", "gpu", "stated"),
    [
        ("lfm2-1.2b", "h100", {}),  # an architecture that the kernel library does not know
        ("jamba-1.5-mini", "h100", {}),
        ("llama-3.1-8b", "a100", {"weight_format": "nvfp4"}),  # matrices that were never measured there
        ("llama-3.1-8b", "rtx-4090", {}),  # a GPU without any
        ("mixtral-8x7b", "l40s", {"expert_parallel": True}),
    ],
)
def test_why_kernels_are_missing(client: TestClient, model: str, gpu: str, stated: dict[str, Any]) -> None:
    answer = client.post("/size", json={**LIMITED, "model": model, "gpu": gpu, **stated})

    assert answer.status_code in (200, 422), answer.text
    assert_own(answer.text)


@pytest.mark.parametrize(
    "question",
    [
        {**BY_NAME, "engine_version": "main"},
        {**BY_NAME, "engine_version": "1!2.0+<b>"},
        {**BY_NAME, "engine_version": "0.33..1"},
        {**BY_NAME, "concurrent_requests": "many"},
        {**BY_NAME, "concurrent_requests": 1.5},
        {**BY_NAME, "concurrent_requests": {"a": 1}},
        {**BY_NAME, "ttft_s": "1e999"},
        {**BY_NAME, "ttft_s": [1]},
        {**BY_NAME, "model": 7},
        {**BY_NAME, "weight_format": ["fp8"]},
        {**BY_NAME, "usd_per_gpu_hour": "$x"},
        {**LOAD, "model_config": {**LLAMA, "hidden_size": "wide"}},
        {**LOAD, "model_config": {**LLAMA, "architectures": [None]}},
        {**LOAD, "model_config": {**LLAMA, "architectures": ["NoSuchForCausalLM"]}},
        {**LOAD, "model_config": {**LLAMA, "rope_scaling": 7}},
        {
            **LOAD,
            "model_config": {
                **LLAMA,
                "quantization_config": {
                    "quant_method": "fp8",
                    "activation_scheme": "dynamic",
                    "ignored_layers": ["re:("],
                },
            },
        },
        {**LOAD, "model_config": {**LLAMA, "quantization_config": {"quant_method": "compressed-tensors"}}},
        {**LOAD, "model_config": {**LLAMA, "quantization_config": [1, 2]}},
        {**LOAD, "model_config": {**LLAMA, "num_hidden_layers": 10**30}},
        {**LOAD, "model_config": []},
    ],
    ids=str,
)
def test_why_a_question_is_refused(client: TestClient, question: dict[str, Any]) -> None:
    answer = client.post("/size", json=question)

    assert answer.status_code < 500
    assert_own(answer.text)


@pytest.mark.parametrize(
    ("body", "media_type"),
    [
        (b"{", "application/json"),
        (b'{"model": NaN}', "application/json"),
        (b"\xff\xfe", "application/json"),
        (b"[" * 10_000, "application/json"),
        (b"1" * 5_000, "application/json"),
        (b"", "application/json"),
        (b"model=x", "application/x-www-form-urlencoded"),
    ],
)
@pytest.mark.parametrize("path", ["/size", "/size:batch", "/measurements"])
def test_why_a_body_is_refused(client: TestClient, path: str, body: bytes, media_type: str) -> None:
    answer = client.post(path, content=body, headers={"content-type": media_type})

    assert 400 <= answer.status_code < 500
    assert_own(answer.text)


@pytest.mark.parametrize("sheet", [b"model\n\xff\n", b'model\n"a\n', b"\x00\n", b"model,gpu\nllama-3.1-8b,h100,x,y\n"])
def test_why_a_sheet_is_refused(client: TestClient, sheet: bytes) -> None:
    answer = client.post("/size:batch", content=sheet, headers={"content-type": "text/csv"})

    assert answer.status_code < 500
    assert_own(answer.text)


@pytest.mark.parametrize(
    "measured", ['{"a":', "INFO vllm\n\x00", '{"mean_ttft_ms": "x"}', "Traceback: a log of errors"]
)
def test_why_a_measurement_is_refused(client: TestClient, measured: str) -> None:
    answer = client.post("/measurements", json={"text": measured, "question": {"model": "llama-3.1-8b", "gpu": "h100"}})

    assert answer.status_code == 422
    assert_own(answer.text.replace(measured.partition("\n")[0], ""))


@pytest.mark.parametrize(
    ("path", "entry"),
    [
        ("offers/made-up-offer", {**OFFER, "gpu": "h100-sxm-80gb", "as_of": "2026-02-31"}),
        ("offers/made-up-offer", {**OFFER, "gpu": "h100-sxm-80gb", "gpu_count": 10**30}),
        ("offers/made-up-offer", {**OFFER, "gpu": "h100-sxm-80gb", "instance_type": "a\x00b"}),
        ("offers/made-up-offer", {**OFFER, "gpu": "h100-sxm-80gb", "source": {"url": "x", "checked_on": "now"}}),
        ("offers/made-up-offer", {**OFFER, "gpu": "nothing"}),
        ("gpus/made-up-100gb", {**GPU, "figures": 7}),
        ("gpus/made-up-100gb", {**GPU, "name": "H100 SXM", "compute_capability": "nine"}),
        ("gpus/made-up-100gb", {**GPU, "aliases": ["h100"]}),
        ("models/made-up-8b", {**MODEL, "config": {**LLAMA, "hidden_size": "wide"}}),
        ("models/made-up-8b", {**MODEL, "config": {"architectures": ["LlamaForCausalLM"], "rope_scaling": [[]]}}),
        ("models/made-up-8b", {**MODEL, "checkpoints": []}),
        ("models/made-up-8b", {**MODEL, "aliases": ["qwen3-32b"]}),
    ],
)
def test_why_a_write_is_refused(writable: TestClient, path: str, entry: dict[str, Any]) -> None:
    answer = writable.put(f"/catalog/{path}", json=entry)

    assert answer.status_code < 500
    assert_own(answer.text)


@pytest.mark.parametrize(
    "path",
    sorted({"/made/Missing", *FILES, *REDIRECTS, *STATUSES}),
)
def test_why_an_import_is_refused(writable: TestClient, path: str) -> None:
    name = "/".join(path.removeprefix("/api/models").split("?", maxsplit=1)[0].split("/")[1:3])
    answer = writable.post("/catalog/models/import", json={"hf_id": name})

    assert answer.status_code in (200, 404, 409, 422, 502)
    assert_own(answer.text if answer.status_code != 200 else str(answer.json().get("warnings", "")))


def test_why_a_hub_is_out_of_reach(tmp_path: Path) -> None:
    settings = service_settings(tmp_path, hub_url="http://127.0.0.1:9", hub_allowed_hosts="127.0.0.1")
    with seeded_service(settings) as service:
        answer = service.post("/catalog/models/import", json={"hf_id": "made/Tiny"}, headers={"X-API-Key": API_KEY})

    assert answer.status_code == 502
    assert_own(answer.text)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE offers SET usd_per_hour = 5e-300",
        "UPDATE offers SET as_of = 'yesterday'",
        "UPDATE gpus SET figures = '{'",
        "UPDATE models SET config = '[]'",
        "UPDATE catalog_revision SET revision = 'abc'",
        "DROP TABLE offers",
    ],
)
def test_why_the_catalog_is_not_refreshed(tmp_path: Path, statement: str) -> None:
    with seeded_service(service_settings(tmp_path)) as service:
        with closing(sqlite3.connect(tmp_path / "catalog.sqlite3")) as database:
            database.execute(statement)
            if "catalog_revision" not in statement:
                database.execute("UPDATE catalog_revision SET revision = revision + 1")
            database.commit()
        keeper: CatalogKeeper = service.app.state.catalog  # type: ignore[attr-defined]
        keeper.refresh()
        told = service.get("/readyz").json()["last_refresh_error"]
        written = service.put(
            "/catalog/offers/made-up-offer", json={**OFFER, "gpu": "h100-sxm-80gb"}, headers={"X-API-Key": API_KEY}
        )

    assert told
    assert_own(told)
    assert_own(written.text)


@pytest.mark.parametrize(
    "line",
    ["aws,p5,us,h100,x,3.0,,,,2026-11-01,", "aws,p5,us,h100,8,nan,,,,2026-11-01,", "aws,p5,us,h100,8,-3,,,,yesterday,",
     "aws,p5,us,h100,8,3.0,gold,,,2026-13-01,", 'aws,"p5,us', "aws,p5,us,h900,8,3.0,,,,2026-11-01,"],
)  # fmt: skip
def test_why_a_price_list_is_refused(tmp_path: Path, catalog: Snapshot, line: str) -> None:
    columns = "provider,instance_type,region,gpu,gpu_count,usd_per_hour,tier,purchase,commitment_months,as_of,source"
    file = tmp_path / "aws.csv"
    day = date(2026, 11, 22)
    for content in (f"{columns}\n{line}\n".encode(), f"{columns}\n{line}\n\xff".encode("latin-1"), b"\x00"):
        file.write_bytes(content)
        stated = Stated(provider=None, as_of=None, checked_on=day, skip_unknown_gpus=False)
        listed = read_price_list(file, catalog, stated)

        assert listed.faults
        assert_own("\n".join(listed.faults))
