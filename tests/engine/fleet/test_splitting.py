"""Among deployments of as many GPUs and one price the lower latency tells, whatever settings a layout needs to fit."""

from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.engine.answers.test_decision import answer, load

# Weights of 141 GB leave little on two GPUs of 80: split in layers they fit as they are, in stages as well.
TIGHT: dict[str, dict[str, Any]] = {
    "few users": {"gpu": "h100", **load(4, 2526, 180)},
    "many GPUs": {"gpu": "a10g", **load(31, 3951, 145)},
    "within limits": {"gpu": "a100-sxm-80gb", "ttft_s": 1, "tpot_s": 0.1, **load(58, 87, 313)},
    "by memory alone": {"gpu": "h100", "latency": "none", **load(4, 2526, 180)},
}


@pytest.mark.parametrize("asked", TIGHT.values(), ids=TIGHT)
def test_no_split_of_every_layer_over_as_many_gpus_is_faster(client: TestClient, asked: dict[str, Any]) -> None:
    sized = answer(client, "size", model="llama-3.3-70b", **asked)
    layout, seen = sized["layout"], sized["latency"]

    if asked["gpu"] != "a10g":  # over PCIe a split within each server is faster than one over several
        assert layout["tensor_parallel_size"] == sized["gpus_per_replica"]
    for ranks in (1, 2, 4, 8):
        shape = {"tensor_parallel_size": ranks, "pipeline_parallel_size": 1}
        other = answer(client, "size", model="llama-3.3-70b", **asked, **shape)
        if other["feasible"] and other["gpus"] == sized["gpus"] and seen is not None:
            assert other["latency"]["end_to_end_s"]["p95"] >= seen["end_to_end_s"]["p95"] / 1.03


def test_tokens_cost_no_less_on_a_stated_split_of_the_same_gpus(client: TestClient) -> None:
    asked = {
        "model": "llama-3.3-70b", "gpus": "a100-sxm-80gb", "weight_formats": "bf16", "objective": "cost_per_token",
        "service_class": "batch", **load(8, 2517, 56),
    }  # fmt: skip
    [chosen] = answer(client, "recommend", **asked)["options"]
    [split] = answer(client, "recommend", **asked, tensor_parallel_size=2, pipeline_parallel_size=1)["options"]

    assert chosen["gpus"] == split["gpus"] == 2
    assert chosen["usd_per_million_output_tokens"] <= split["usd_per_million_output_tokens"] * 1.001


def test_what_is_stated_and_what_is_infeasible_are_left_alone(client: TestClient) -> None:
    asked = {"model": "llama-3.3-70b", "gpu": "h100", **load(4, 2526, 180)}
    stages = answer(client, "size", **asked, pipeline_parallel_size=2)
    nothing = answer(client, "size", **asked, ttft_s=0.001)

    assert stages["layout"]["pipeline_parallel_size"] == 2
    assert not nothing["feasible"]


def test_caches_that_are_stated_to_stay_whole_stay_whole(client: TestClient) -> None:
    # Spread over eight ranks they would fit on fewer GPUs.
    asked = {"model": "kimi-k2", "gpu": "h200", "latency": "none", **load(100, 2000, 500)}
    whole = answer(client, "size", **asked, decode_context_parallel_size=1)
    open_ = answer(client, "size", **asked)

    assert whole["layout"]["decode_context_parallel_size"] == 1
    assert open_["gpus"] <= whole["gpus"]
