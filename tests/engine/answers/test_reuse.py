"""What caches are worth that are kept for their next use: by hand from bytes and rates."""

from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.engine.answers.test_decision import answer, load


@pytest.fixture(scope="module")
def sized(client: TestClient) -> dict[str, Any]:
    return answer(client, "size", model="llama-3.1-70b", gpu="h100", weight_format="fp8", **load(16, 7500, 500))


def test_a_hit_saves_what_reading_anew_takes_less_the_time_to_fetch_it(sized: dict[str, Any]) -> None:
    reuse, cache = sized["reuse"], sized["kv_cache"]
    # 80 layers x 2 x 8 heads x 128 x 1 byte = 163,840 bytes a token (config.json; the fp8 checkpoint keeps its cache so)
    assert reuse["request_bytes"] == 8_000 * 163_840
    host, drive = reuse["tiers"]

    assert (host["tier"], host["bytes_per_s"]) == ("cpu", 64e9)  # PCI-SIG: 16 lanes of PCIe 5.0
    assert drive["bytes_per_s"] == 8e9  # 4 lanes of 4.0
    for tier in (host, drive):
        assert tier["fetch_s"] == pytest.approx(cache["bytes_per_request_per_gpu"] / tier["bytes_per_s"])
        assert tier["saves_s"] == pytest.approx(reuse["read_again_s"] - tier["fetch_s"])
        assert tier["bytes_per_waiting_s"] == pytest.approx(sized["at_load"]["requests_per_s"] * reuse["request_bytes"])


def test_storing_every_request_breaks_even_where_hits_save_as_much_as_it_takes(sized: dict[str, Any]) -> None:
    host = sized["reuse"]["tiers"][0]

    assert 0 < host["break_even_hit_fraction"] < 1
    assert host["break_even_hit_fraction"] * host["saves_s"] == pytest.approx(host["fetch_s"])
    assert sized["reuse"]["break_even_bytes_per_s"] < host["bytes_per_s"]


def test_dollars_are_those_of_a_replica_for_that_time(sized: dict[str, Any]) -> None:
    reuse, per_s = sized["reuse"], sized["cost"]["usd_per_hour"] / sized["replicas"] / 3_600

    priced = [(reuse["usd_per_thousand_reads"], reuse["read_again_s"])]
    priced += [(tier["saves_usd_per_thousand_hits"], tier["saves_s"]) for tier in reuse["tiers"]]
    for usd, seconds in priced:
        assert usd == pytest.approx(1_000 * per_s * seconds, rel=1e-5)
        assert usd == float(f"{usd:.6g}")  # a price of the simulation, as those of tokens are written


def test_a_cache_is_worth_the_room_it_takes_for_so_long(sized: dict[str, Any]) -> None:
    reuse, pool = sized["reuse"], sized["memory_per_gpu"]["kv_cache_bytes"]
    share = sized["kv_cache"]["bytes_per_request_per_gpu"] / pool

    assert reuse["worth_keeping_s"] * share == pytest.approx(reuse["read_again_s"])


def test_latents_are_fetched_sooner_than_heads(client: TestClient) -> None:
    latents = answer(client, "size", model="deepseek-v3", gpu="h200", **load(16, 7500, 500))["reuse"]

    assert latents["request_bytes"] == pytest.approx(8_000 * 70_272, rel=0.01)  # 61 x 576 x 2 bytes


def test_memory_alone_tells_of_no_reuse(client: TestClient) -> None:
    sized = answer(client, "size", model="llama-3.1-8b", gpu="h100", latency="none", **load(16, 7500, 500))

    assert sized["reuse"] is None
