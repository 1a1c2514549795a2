"""What a write to the catalog costs, and what it does to answers: reported and never asserted."""

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.conftest import API_KEY, seeded_service, service_settings

OFFER = "aws-p5.48xlarge-us-east-1"
WRITES = 200
QUESTION = {
    "model": "llama-3.3-70b",
    "gpu": "h100",
    "concurrent_requests": 64,
    "input_tokens": 2_000,
    "output_tokens": 500,
    "ttft_s": 2.0,
    "tpot_s": 0.05,
}
# Fields at their defaults: the same question to the engine, and another one to whoever keeps answers.
RESTATED: tuple[dict[str, Any], ...] = (
    {"percentile": 95},
    {"engine": "vllm"},
    {"spare_replicas": 0},
    {"headroom_fraction": 0},
    {"kv_cache_dtype": "auto"},
)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    with seeded_service(service_settings(tmp_path_factory.mktemp("writes"), snapshot_poll_seconds=1)) as client:
        client.headers["X-API-Key"] = API_KEY
        for thread in threading.enumerate():
            if thread.name == "warm-up":  # it reads tables of kernels, which is not what is measured here
                thread.join()
        yield client


class Prices:
    """Writes one offer again and again, each time at another price."""

    def __init__(self, client: TestClient) -> None:
        self._client = client
        self._offer = client.get(f"/catalog/offers/{OFFER}").json()
        self._usd = 20.0

    def change(self) -> None:
        self._usd += 0.01
        response = self._client.put(f"/catalog/offers/{OFFER}", json={**self._offer, "usd_per_hour": self._usd})
        assert response.status_code == 200, response.text


def resident_mb() -> float:
    """Return the process's resident memory."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def asked_ms(client: TestClient, **restated: Any) -> float:
    began = time.perf_counter()
    assert client.post("/size", json={**QUESTION, **restated}).status_code == 200
    return 1e3 * (time.perf_counter() - began)


@pytest.mark.benchmark(timer=time.process_time)
def test_cpu_time_of_a_write(benchmark: Any, service: TestClient) -> None:
    """Of the whole process: the request, the transaction, the new snapshot, and its copy on disk."""
    prices = Prices(service)

    benchmark.pedantic(prices.change, rounds=50, warmup_rounds=5)


def test_memory_after_writes(benchmark: Any, service: TestClient, capsys: pytest.CaptureFixture[str]) -> None:
    prices = Prices(service)
    asked_ms(service)
    for _ in range(10):
        prices.change()
    before_mb = resident_mb()

    def written() -> None:
        for _ in range(WRITES):
            prices.change()
            asked_ms(service)

    benchmark.pedantic(written, rounds=1)
    with capsys.disabled():
        print(f"\n{WRITES} writes, a question after each: {before_mb:.0f} -> {resident_mb():.0f} MB resident")


def test_question_after_a_price_change(benchmark: Any, service: TestClient, capsys: pytest.CaptureFixture[str]) -> None:
    prices = Prices(service)
    asked_ms(service)
    warm_ms = sorted(asked_ms(service, **restated) for restated in RESTATED)[len(RESTATED) // 2]
    after_ms: list[float] = []

    def changed_and_asked() -> None:
        prices.change()
        after_ms.append(asked_ms(service))

    benchmark.pedantic(changed_and_asked, rounds=20)
    kept_ms = sorted(asked_ms(service) for _ in range(20))[10]
    with capsys.disabled():
        print(
            f"\nthe same question: answer kept {kept_ms:.1f} ms, computed anew {warm_ms:.1f} ms, "
            f"after a price change {sorted(after_ms)[10]:.1f} ms (worst {max(after_ms):.1f})"
        )
