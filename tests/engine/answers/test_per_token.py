"""A token costs no less on a stated layout than what `objective=cost_per_token` chooses: of a closed loop price misleads."""

from typing import Any, Final

import pytest
from starlette.testclient import TestClient

from tests.engine.answers.test_decision import answer, load

# Of three GPUs at the price of four, and of layouts at one price: the cheapest by the hour is not that of a token.
ASKED: Final[dict[str, dict[str, Any]]] = {
    "paid for anyway": {"model": "gpt-oss-120b", "gpus": "l40s", "service_class": "batch", **load(300, 3000, 300)},
    "stages": {"model": "llama-3.3-70b", "gpus": "h100", "weight_formats": "fp8", **load(64, 5500, 500)},
    "more of them": {"model": "llama-3.1-8b", "gpus": "l4", "service_class": "batch", **load(128, 4000, 300)},
}
SHAPES: Final = [(ranks, stages) for ranks in (1, 2, 4) for stages in (1, 2, 4)]
OBJECTIVE: Final = {"objective": "cost_per_token", "limit": 1}


def per_million(client: TestClient, **asked: Any) -> float:
    options = answer(client, "recommend", **asked, **OBJECTIVE)["options"]
    return float(options[0]["usd_per_million_output_tokens"]) if options else float("inf")


@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
def test_no_stated_layout_makes_cheaper_tokens(client: TestClient, asked: dict[str, Any]) -> None:
    chosen = per_million(client, **asked)

    for ranks, stages in SHAPES:
        shape = {"tensor_parallel_size": ranks, "pipeline_parallel_size": stages, "data_parallel_size": 1}
        assert chosen <= per_million(client, **asked, **shape) * 1.001


def test_arrivals_make_the_lowest_price_that_of_a_token_too(client: TestClient) -> None:
    asked = {
        "model": "qwen3-32b", "gpus": "l40s", "request_rate_per_s": 2, "input_tokens": 2000, "output_tokens": 400,
        "ttft_s": 3, "tpot_s": 0.08, "limit": 1,
    }  # fmt: skip
    [by_hour] = answer(client, "recommend", **asked)["options"]
    [by_token] = answer(client, "recommend", **asked, objective="cost_per_token")["options"]

    assert by_hour["usd_per_million_output_tokens"] == by_token["usd_per_million_output_tokens"]
