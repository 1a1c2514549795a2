"""What a fleet costs at list prices."""

import pytest

from service.engine.fleet.costs import Fleet, cheapest, instances_needed, usd_per_million_tokens
from service.engine.fleet.questions import Offer


def offer(gpu_count: int, usd_per_hour: float, name: str = "one") -> Offer:
    return Offer(
        id=name, provider="p", instance_type="i", region="r", gpu="g", gpu_count=gpu_count,
        usd_per_hour=usd_per_hour, as_of="2026-11-01",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("replicas", "per_replica", "instance", "instances"),
    [(5, 2, 8, 2), (1, 1, 8, 1), (2, 16, 8, 4), (3, 4, 1, 0)],
    ids=["four in each", "one in a large one", "each fills two nodes", "slices share no fabric"],
)
def test_replicas_stay_within_an_instance_or_fill_whole_nodes(
    replicas: int, per_replica: int, instance: int, instances: int
) -> None:
    fleet = Fleet(gpu="g", replicas=replicas, gpus_per_replica=per_replica, gpus_per_node=8)

    assert instances_needed(fleet, offer(instance, 1.0)) == instances


def test_the_cheapest_offer_that_holds_the_fleet_is_named() -> None:
    fleet = Fleet(gpu="g", replicas=2, gpus_per_replica=4, gpus_per_node=8)
    cost = cheapest(fleet, [offer(1, 0.1, "slices"), offer(8, 30.0, "node"), offer(4, 16.0, "half")])

    assert cost is not None
    assert (cost.offer, cost.usd_per_hour, cost.instances) == ("node", 30.0, 1)
    assert cheapest(fleet, [offer(1, 0.1)]) is None


def test_a_million_tokens_at_a_thousand_a_second_take_a_thousand_seconds() -> None:
    assert usd_per_million_tokens(3.6, 1_000) == pytest.approx(1.0)
