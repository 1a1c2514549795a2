"""Odd layouts are told as such, beside the next one that operators start."""

import re
from typing import Any

import pytest
from starlette.testclient import TestClient

from service.catalog.snapshot import Snapshot
from service.engine.answers.plainer import is_usual, stated
from service.engine.inputs import Layout
from tests.engine.answers.test_decision import answer, load

LAYOUT = ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size", "expert_parallel")
NEXT = re.compile(r"(.*) is odd, and few run it: the next usual layout takes (\d+) GPUs, as (.*), ([\d.]+) USD/h")
# Six, seven and twice seven GPUs of 141 GB hold 671 GB of weights and the cache; nobody's server is so divided.
ODD: dict[str, dict[str, Any]] = {
    "six": {**load(8, 2000, 500), "usd_per_gpu_hour": 3},
    "seven": load(1024, 2000, 500),
    "two of seven": load(2060, 2000, 500),
}


def told(document: dict[str, Any]) -> re.Match[str]:
    """Return what is told of an odd layout."""
    [match] = [match for warning in document["warnings"] if (match := NEXT.fullmatch(warning))]
    return match


def pinned(words: str) -> dict[str, Any]:
    """Return fields that state a layout, and leave the rest of it at one."""
    named = dict(part.split("=") for part in words.rsplit("replicas of ", maxsplit=1)[-1].split(" and "))
    return {"pipeline_parallel_size": 1, "tensor_parallel_size": 1, "data_parallel_size": 1, **named}


@pytest.mark.parametrize("asked", ODD.values(), ids=ODD)
def test_the_next_usual_layout_takes_what_it_is_said_to_and_no_other_takes_less(
    client: TestClient, asked: dict[str, Any]
) -> None:
    asked = {"model": "deepseek-v3", "gpu": "h200", "latency": "none", **asked}
    odd = answer(client, "size", **asked)
    chosen, gpus, words, price = told(odd).groups()

    assert chosen == stated(Layout(**{name: odd["layout"][name] for name in LAYOUT}))
    usual = answer(client, "size", **asked, **pinned(words))
    assert usual["gpus"] == int(gpus) > odd["gpus"]
    assert usual["cost"]["usd_per_hour"] == pytest.approx(float(price), abs=0.005)
    for ranks, copies in ((1, 4), (1, 8), (2, 2), (2, 4), (4, 1), (4, 2), (8, 1)):
        shape = {"tensor_parallel_size": ranks, "data_parallel_size": copies, "pipeline_parallel_size": 1}
        for experts in (False, True):
            other = answer(client, "size", **asked, **shape, expert_parallel=experts)
            assert not other["feasible"] or other["gpus"] >= int(gpus)


def test_the_text_says_so_too_and_lists_do(client: TestClient) -> None:
    asked: dict[str, Any] = {
        "model": "deepseek-v3",
        "concurrent_requests": 1024,
        "input_tokens": 2000,
        "output_tokens": 500,
    }
    text = client.get("/size", params={**asked, "gpu": "h200", "format": "text"}).text
    formats = {"weight_formats": "fp8", "kv_cache_dtypes": "bf16", "service_class": "batch", "objective": "gpus"}
    listed = client.get("/recommend", params={**asked, "gpus": "h200", **formats, "format": "text"}).text

    said = "pipeline_parallel_size=7 is odd, and few run it: the next usual layout takes 8 GPUs"
    assert f"warning: {said}" in text
    assert f"warning of 1: {said}" in listed


def test_usual_layouts_and_stated_ones_are_not_remarked_on(client: TestClient) -> None:
    plain = answer(client, "size", model="llama-3.3-70b", gpu="h100", **load(100, 3000, 500))
    stages = answer(
        client, "size", model="deepseek-v3", gpu="h200", pipeline_parallel_size=7, latency="none", **load(8, 2000, 500)
    )

    assert not any("is odd" in warning for warning in (*plain["warnings"], *stages["warnings"]))


def test_usual_are_powers_of_two_and_stages_of_whole_servers(catalog: Snapshot) -> None:
    h100 = catalog.gpu("h100")

    assert is_usual(Layout(tensor_parallel_size=8, pipeline_parallel_size=2), h100)
    assert is_usual(Layout(data_parallel_size=8, expert_parallel=True), h100)
    assert not is_usual(Layout(tensor_parallel_size=2, pipeline_parallel_size=2), h100)
    assert not is_usual(Layout(tensor_parallel_size=6), h100)


def test_caches_spread_within_copies_of_the_attention_are_odd(catalog: Snapshot) -> None:
    h200 = catalog.gpu("h200")
    both = Layout(tensor_parallel_size=4, data_parallel_size=2, expert_parallel=True, decode_context_parallel_size=4)

    assert not is_usual(both, h200)
    assert stated(both).endswith("decode_context_parallel_size=4 and expert_parallel=true")
    assert is_usual(Layout(tensor_parallel_size=8, decode_context_parallel_size=8), h200)


def test_layers_over_servers_are_not_their_own_next_usual_layout(client: TestClient, catalog: Snapshot) -> None:
    over = answer(client, "size", model="llama-3.3-70b", gpu="h100", tensor_parallel_size=16, **load(8, 1000, 200))

    assert not is_usual(Layout(tensor_parallel_size=16), catalog.gpu("h100"))
    assert not any("next usual" in warning for warning in over["warnings"])
