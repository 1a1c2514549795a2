"""What a hub publishes about a model, and the one deadline for all of it."""

import time
from collections.abc import Iterator

import pytest

from service.hub.client import Hub, PublishedModel
from service.hub.errors import HubError, UnusableHubAnswerError
from service.hub.fetch import Fetcher
from tests.hub.server import CONFIG, DRIP, TRICKLE, running_hub


@pytest.fixture(scope="module")
def hub_url() -> Iterator[str]:
    with running_hub() as url:
        yield url


def published(url: str, name: str, deadline_seconds: float = 20.0) -> PublishedModel:
    return Hub(Fetcher(url, frozenset({"127.0.0.1"}), 10.0), deadline_seconds).published(name)


@pytest.mark.parametrize(
    ("name", "elements", "weight_bytes"),
    [
        ("made/Tiny", 64 * 64 + 256, 2 * (64 * 64 + 256)),  # one file, by its header
        ("made/Sharded", 64 * 64 + 256, 2 * (64 * 64 + 256)),  # two, by their index
        ("made/Counted", 98_880, 2 * 98_624 + 4 * 256),  # as the hub has counted
        ("made/Whole", 64 * 64 + 256, 2 * (64 * 64 + 256)),  # of a hub that ignores ranges
    ],
)
def test_weights_are_counted(hub_url: str, name: str, elements: int, weight_bytes: int) -> None:
    model = published(hub_url, name)

    assert model.config == CONFIG
    assert model.counts is not None
    assert (model.counts.elements, model.counts.weight_bytes) == (elements, weight_bytes)
    assert model.config_url == f"{hub_url}/{name}/resolve/main/config.json"


def test_weights_on_another_host_are_not_counted(hub_url: str) -> None:
    assert published(hub_url, "made/Elsewhere").counts is None


def test_a_quantization_beside_the_config_is_found(hub_url: str) -> None:
    model = published(hub_url, "made/Four-Bit")

    assert model.quantization is not None
    assert "NVFP4" in str(model.quantization)


@pytest.mark.parametrize("name", ["made/BadWeights", "made/Negative", "made/Leading"])
def test_weight_files_that_are_none_are_refused(hub_url: str, name: str) -> None:
    with pytest.raises(UnusableHubAnswerError):
        published(hub_url, name)


@pytest.mark.parametrize("name", [TRICKLE, DRIP])
def test_one_deadline_holds_however_busily_a_hub_trickles(hub_url: str, name: str) -> None:
    began = time.monotonic()
    with pytest.raises(HubError, match="in time"):
        published(hub_url, name, deadline_seconds=0.7)
    assert time.monotonic() - began < 60  # it would trickle on for a hundred seconds
