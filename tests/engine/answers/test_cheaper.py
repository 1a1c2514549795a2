"""More GPUs that cost less are told of, with what a caller who states them is answered."""

import re
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.engine.answers.test_decision import answer, load
from tests.engine.answers.test_plainer import pinned

TOLD = re.compile(r"more GPUs cost less: (\d+) as (.*) take ([\d.]+) USD/h, ([\d.]+) less than these (\d+)")
# Five of 24 GB in stages of one hold 61 GB of weights and the cache; A10G are rented as 1, 4 and 8.
FIVE: dict[str, Any] = {"model": "qwen3-30b-a3b", "gpu": "a10g", "latency": "none", **load(64, 3_744, 121)}


def told(document: dict[str, Any]) -> list[re.Match[str]]:
    """Return what is told of cheaper deployments."""
    return [match for warning in document["warnings"] if (match := TOLD.fullmatch(warning))]


def test_what_costs_less_is_told_and_holds_when_it_is_stated(client: TestClient) -> None:
    fewest = answer(client, "size", **FIVE)
    [match] = told(fewest)
    gpus, words, price, saved, these = match.groups()
    stated = answer(client, "size", **FIVE, **pinned(words))

    assert int(these) == fewest["gpus"] < int(gpus) == stated["gpus"]
    assert stated["cost"]["usd_per_hour"] == pytest.approx(float(price), abs=0.005)
    assert fewest["cost"]["usd_per_hour"] - float(price) == pytest.approx(float(saved), abs=0.01)
    assert not told(stated)


def test_nothing_is_cheaper_than_the_fewest_gpus_at_a_price_of_ones_own(client: TestClient) -> None:
    assert not told(answer(client, "size", **FIVE, usd_per_gpu_hour=1.0))


def test_what_was_found_for_one_aim_is_not_told_of_another(client: TestClient) -> None:
    """Three pairs of L4 cost less than the five that are fewest: a search for GPUs says nothing of prices."""
    dear = answer(client, "size", model="gpt-oss-20b", gpu="l4", latency="none", **load(1_000, 2_000, 500))
    [match] = told(dear)
    stated = answer(
        client, "size", model="gpt-oss-20b", gpu="l4", latency="none", **load(1_000, 2_000, 500), **pinned(match[2])
    )
    assert stated["gpus"] == int(match[1]) > dear["gpus"]
    assert stated["cost"]["usd_per_hour"] < dear["cost"]["usd_per_hour"]
