"""Requests that a served context refuses. Referee: drawing them, two thousand of each."""

import numpy as np
import pytest
from starlette.testclient import TestClient

from service.engine.answers.overlong import share_beyond
from service.engine.time.lengths import FixedLength, Length, LogNormalLength, UniformLength

LENGTHS = [
    FixedLength(tokens=2_000),
    UniformLength(shortest_tokens=1_800, longest_tokens=2_200),
    LogNormalLength(mean_tokens=2_000, variation=1.0),
]


@pytest.mark.parametrize("inputs", LENGTHS)
@pytest.mark.parametrize("outputs", LENGTHS)
@pytest.mark.parametrize("most", [3_000, 3_999, 4_100, 6_000])
def test_the_share_is_that_of_drawn_requests(inputs: Length, outputs: Length, most: int) -> None:
    draw = np.random.default_rng(1)
    read, written = (
        np.array([length.quantile(share) for share in draw.uniform(1e-9, 1 - 1e-9, 2_000)])
        for length in (inputs, outputs)
    )

    assert share_beyond(inputs, outputs, most) == pytest.approx(float(np.mean(read + written > most)), abs=0.03)


@pytest.mark.parametrize(
    ("stated", "count"),
    [
        ({"max_model_len": 2_600, "length_distribution": "lognormal", "length_variation_fraction": 1}, 1),
        ({"max_model_len": 2_500}, 1),  # by a tenth around their means, half of them
        ({"max_model_len": 2_800}, 0),
        ({"max_model_len": 2_500, "length_variation_fraction": 0}, 0),
        ({}, 0),
    ],
)
@pytest.mark.parametrize("path", ["/size", "/capacity"])
def test_requests_that_the_engine_refuses_are_told(
    client: TestClient, path: str, stated: dict[str, int], count: int
) -> None:
    """A command with --max-model-len 2600 was told to carry requests of 4,500 tokens."""
    asked = {
        "model": "llama-3.1-8b",
        "gpu": "h100",
        "concurrent_requests": 20,
        "input_tokens": 2_000,
        "output_tokens": 500,
    }
    answer = client.post(path, json={**asked, **stated}).json()

    told = [each for each in answer["warnings"] if "longer than max_model_len" in each]
    assert len(told) == count
    assert not told or f"max_model_len={stated['max_model_len']}" in told[0]


def test_whole_contexts_are_no_requests_of_a_load(client: TestClient) -> None:
    warnings = client.get("/capacity", params={"model": "llama-3.1-8b", "gpu": "h100", "max_model_len": 8192}).json()[
        "warnings"
    ]

    assert not [each for each in warnings if "longer than max_model_len" in each]
