"""What a fleet costs at list prices, and at the caller's own."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.engine.fleet.costs import (
    Fleet,
    cheaper_apart,
    cheapest,
    cheapest_of,
    copies_apart,
    instances_needed,
    least_paid,
    price_notes,
    why_unpriced,
)
from service.engine.fleet.questions import Offer
from service.engine.inputs import Layout


def offer(gpu_count: int, price: float, name: str = "one", **changes: object) -> Offer:
    listed = Offer(
        id=name, provider="p", instance_type="i", region="r", gpu="g", gpu_count=gpu_count,
        usd_per_hour=price, as_of="2026-11-01",
    )  # fmt: skip
    return replace(listed, **changes)  # type: ignore[arg-type]


def fleet(replicas: int, per_replica: int) -> Fleet:
    return Fleet(gpu="g", replicas=replicas, gpus_per_replica=per_replica, gpus_per_node=8)


OFFERS = st.lists(
    st.builds(
        lambda count, price: offer(count, price, f"{count} at {price}"),
        st.sampled_from((1, 2, 4, 8)),
        st.integers(1, 100).map(float),
    ),
    max_size=6,
)
FLEETS = st.builds(fleet, st.integers(1, 20), st.sampled_from((1, 2, 4, 8, 16)))


class Asked:
    """What a caller left in question."""

    def __init__(self, *offers: Offer, left_out: tuple[Offer, ...] = ()) -> None:
        self.offers = offers
        self.left_out_offers = left_out


@pytest.mark.parametrize(
    ("replicas", "per_replica", "instance", "instances"),
    [(5, 2, 8, 2), (1, 1, 8, 1), (2, 16, 8, 4), (3, 4, 1, 0)],
    ids=["four in each", "one in a large one", "each fills two nodes", "slices share no fabric"],
)
def test_replicas_stay_within_an_instance_or_fill_whole_nodes(
    replicas: int, per_replica: int, instance: int, instances: int
) -> None:
    assert instances_needed(fleet(replicas, per_replica), offer(instance, 1.0)) == instances


@pytest.mark.parametrize(("stages", "copies", "instances"), [(3, 4, 4), (2, 4, 2), (4, 3, 3), (1, 12, 3), (8, 2, 4)])
def test_copies_of_the_attention_are_not_split_between_instances(stages: int, copies: int, instances: int) -> None:
    layout = Layout(pipeline_parallel_size=stages, data_parallel_size=copies)
    spread = Fleet(
        gpu="g", replicas=1, gpus_per_replica=stages * copies, gpus_per_node=4, copies=copies_apart(layout, 4)
    )

    assert instances_needed(spread, offer(4, 1.0)) == instances


def test_the_cheapest_offer_that_holds_the_fleet_is_named() -> None:
    cost = cheapest(fleet(2, 4), [offer(1, 0.1, "slices"), offer(8, 30.0, "node"), offer(4, 16.0, "half")])

    assert cost is not None
    assert (cost.offer, cost.usd_per_hour, cost.instances) == ("node", 30.0, 1)
    assert cheapest(fleet(2, 4), [offer(1, 0.1)]) is None


def test_gpus_paid_for_and_idle_are_told_from_those_used() -> None:
    cost = cheapest(fleet(1, 2), [offer(8, 31.92)])

    assert cost is not None
    assert (cost.gpus, cost.gpus_paid) == (2, 8)
    assert cost.usd_per_gpu_hour == pytest.approx(3.99)
    assert cost.usd_per_month == pytest.approx(31.92 * 730)
    assert price_notes(cost, [fleet(1, 2)], Asked()) == ("8 GPUs are paid for and 2 used: i has no fewer",)


def test_the_caller_s_own_price_is_paid_for_the_gpus_used() -> None:
    own = offer(1, 2.0, is_callers=True, instance_type="")
    cost = cheapest(fleet(3, 4), [own])

    assert cost is not None
    assert (cost.usd_per_hour, cost.gpus_paid, cost.origin) == (24.0, 12, "request")
    assert (cost.offer, cost.provider, cost.instance_type, cost.as_of, cost.source) == (None,) * 5


def test_the_caller_s_own_price_of_an_instance_is_paid_whole() -> None:
    cost = cheapest(fleet(1, 2), [offer(8, 16.0, is_callers=True)])

    assert cost is not None
    assert (cost.usd_per_hour, cost.gpus_paid, cost.instances, cost.instance_type) == (16.0, 8, 1, "i")
    assert (cost.offer, cost.provider, cost.origin) == (None, None, "request")


def test_two_pools_are_rented_by_one_offer() -> None:
    pools = (fleet(1, 2), fleet(3, 4))
    cost = cheapest_of(pools, [offer(2, 1.0, "small"), offer(8, 8.0, "large")])

    assert cost is not None
    assert (cost.offer, cost.instances, cost.gpus, cost.gpus_paid) == ("large", 2, 14, 16)


@pytest.mark.parametrize(
    ("pools", "instances"),
    [([(1, 1), (1, 1)], 1), ([(4, 1), (4, 3)], 4), ([(2, 8), (1, 2)], 5), ([(3, 2), (5, 1)], 3), ([(1, 4), (9, 1)], 4)],
)
def test_pools_share_instances_that_hold_both(pools: list[tuple[int, int]], instances: int) -> None:
    of_four = [replace(fleet(*each), gpus_per_node=4) for each in pools]
    cost = cheapest_of(of_four, [offer(4, 1.0)])

    assert cost is not None
    assert cost.instances == instances


def test_prices_are_printed_as_they_are_paid() -> None:
    """Six times 1.60 is 9.600000000000001 in binary, and was beyond a budget of 9.60."""
    cost = cheapest(fleet(6, 1), [offer(1, 1.6)])

    assert cost is not None
    assert (str(cost.usd_per_hour), str(cost.usd_per_month), str(cost.usd_per_gpu_hour)) == ("9.6", "7008.0", "1.6")
    assert least_paid(fleet(6, 1), [offer(1, 1.6)]) == (9.6, 6)


@given(pool=FLEETS, offers=OFFERS)
def test_more_offers_and_fewer_replicas_never_cost_more(pool: Fleet, offers: list[Offer]) -> None:
    price, _ = least_paid(pool, offers)

    assert all(least_paid(pool, offers[:count])[0] >= price for count in range(len(offers)))
    assert least_paid(replace(pool, replicas=pool.replicas + 1), offers)[0] >= price


def test_a_missing_price_is_explained() -> None:
    community = offer(8, 1.0, provider="vast", tier="community")

    assert why_unpriced(fleet(1, 1), (), ()) == (
        "no price: the catalog has no offer of g; usd_per_gpu_hour states your own"
    )
    assert why_unpriced(fleet(1, 4), (offer(1, 1.0), offer(2, 1.0)), ()).startswith(
        "no price: a replica takes 4 GPUs that share a fabric, and offers of g in question hold 1, 2"
    )
    assert "others are vast in r (community, on-demand)" in why_unpriced(fleet(1, 1), (), (community,))


def test_an_old_price_is_marked() -> None:
    cost = cheapest(fleet(1, 1), [offer(1, 1.0, is_stale=True)])

    assert price_notes(cost, [fleet(1, 1)], Asked()) == (
        "the price is of 2026-11-01, more than 60 days ago: ask p again",
    )


def test_pools_are_told_what_they_cost_in_instances_of_their_own_size() -> None:
    """From one offer three GPUs take two instances of two; a single one and a pair of the same provider are less."""
    offers = [offer(1, 3.2, "one"), offer(2, 6.7, "two"), offer(1, 1.0, "other", provider="elsewhere")]
    pools = [fleet(1, 1), fleet(1, 2)]
    cost = cheapest_of(pools, offers)

    assert cost is not None
    assert cost.usd_per_hour == 13.4
    assert cheaper_apart(cost, pools, offers) == (
        "in instances of other sizes both pools cost 9.90 USD/h: 1 x p i and 1 x p i",
    )
    assert cheaper_apart(cost, pools, offers[1:]) == ()


def test_a_price_says_for_how_long_it_binds() -> None:
    cost = cheapest(fleet(1, 1), [offer(1, 1.0, purchase="reserved", commitment_months=36)])

    assert price_notes(cost, [fleet(1, 1)], Asked()) == ("the price is for a commitment of 36 months",)
