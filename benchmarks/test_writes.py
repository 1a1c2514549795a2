"""What a write to the catalog costs, and what it does to answers: reported and never asserted."""

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.conftest import API_KEY, seeded_service, service_settings

OFFER = "aws-p5.48xlarge-us-east-1"
WRITES = 200
OTHER_OFFER = "aws-g6.xlarge-us-east-1"
LOAD = {"concurrent_requests": 64, "input_tokens": 2_000, "output_tokens": 500, "ttft_s": 2.0, "tpot_s": 0.05}
ASKED: dict[str, dict[str, Any]] = {
    "size": {"model": "llama-3.3-70b", "gpu": "h100", **LOAD},
    "capacity": {"model": "qwen2.5-7b", "gpu": "h100", **LOAD},
    "replicas": {"model": "llama-3.1-8b", "gpu": "h100", **LOAD},
    "recommend": {"model": "qwen3-32b", **LOAD},
}


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

    def __init__(self, client: TestClient, offer: str = OFFER) -> None:
        self._client = client
        self._offer = client.get(f"/catalog/offers/{offer}").json()
        self._usd = 20.0

    def change(self) -> None:
        self._usd += 0.01
        response = self._client.put(
            f"/catalog/offers/{self._offer['id']}", json={**self._offer, "usd_per_hour": self._usd}
        )
        assert response.status_code == 200, response.text


def resident_mb() -> float:
    """Return the process's resident memory."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def asked_ms(client: TestClient, name: str = "size") -> float:
    """Return the CPU time of the whole process for one question."""
    began = time.process_time()
    response = client.post(f"/{name}", json=ASKED[name])
    assert response.status_code == 200, response.text
    return 1e3 * (time.process_time() - began)


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


@pytest.mark.parametrize("name", ASKED)
def test_question_after_a_price_change(
    benchmark: Any, service: TestClient, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    """Warm: made again of kept pieces at the prices before, because another GPU's price changed."""
    its_own, another = Prices(service), Prices(service, OTHER_OFFER)
    asked_ms(service, name)
    warm_ms: list[float] = []
    after_ms: list[float] = []

    def changed_and_asked() -> None:
        for prices, times in ((another, warm_ms), (its_own, after_ms)):
            prices.change()
            times.append(asked_ms(service, name))

    benchmark.pedantic(changed_and_asked, rounds=20)
    kept_ms = median(asked_ms(service, name) for _ in range(20))
    with capsys.disabled():
        print(
            f"\n/{name}, CPU time of the process: answer kept {kept_ms:.1f} ms, made again {median(warm_ms):.1f} ms, "
            f"after its own price changed {median(after_ms):.1f} ms (worst {max(after_ms):.1f})"
        )
