"""Which offers count, and what the caller pays."""

from dataclasses import replace
from datetime import date
from typing import Any

import pytest
from pydantic import ValidationError

from service.questions.parts.prices import Priced
from service.questions.refusals import RefusalError
from service.questions.size import SizeQuery
from service.questions.sources import Sources

H100 = ["h100-sxm-80gb"]
ASKED: dict[str, Any] = {
    "model": "llama-3.1-8b",
    "gpu": "h100",
    "concurrent_requests": 8,
    "input_tokens": 1000,
    "output_tokens": 200,
}


def kinds(sources: Sources, **asked: Any) -> set[tuple[str, str]]:
    return {(offer.tier, offer.purchase) for offer in Priced(**asked).prices(sources, sources.catalog.gpus).offers}


def test_only_the_providers_own_servers_on_demand_count_unasked(sources: Sources) -> None:
    assert kinds(sources) == {("secure", "on-demand")}
    assert kinds(sources, tiers="community", purchases="spot") == {("community", "spot")}
    assert ("secure", "reserved") in kinds(sources, purchases=["on-demand", "reserved"])


def test_what_does_not_count_is_kept_to_tell_why_there_is_no_price(sources: Sources) -> None:
    prices = Priced(providers="AWS", regions="us-east-1").prices(sources, sources.catalog.gpus)

    assert {(offer.provider, offer.region) for offer in prices.offers} == {("aws", "us-east-1")}
    assert len(prices.offers) + len(prices.left_out) == len(sources.catalog.offers)


@pytest.mark.parametrize("field", ["providers", "regions", "purchases"])
def test_a_name_that_no_offer_has_is_refused_with_those_that_are_known(sources: Sources, field: str) -> None:
    with pytest.raises(RefusalError) as refused:
        Priced(**{field: ["aws-no-such"]}).prices(sources, [])

    [fault] = refused.value.faults
    assert (fault.field, fault.detail) == (field, "no offer has 'aws-no-such'")
    assert {"providers": "aws", "regions": "us-east-1", "purchases": "spot"}[field] in str(fault.accepted).split(", ")


@pytest.mark.parametrize("place", ["Frankfurt", "eu-central-1", "Europe", "westeurope"])
def test_a_region_without_offers_is_refused_with_the_nearest_first(sources: Sources, place: str) -> None:
    with pytest.raises(RefusalError) as refused:
        Priced(regions=[place]).prices(sources, [])

    [fault] = refused.value.faults
    near, far = str(fault.accepted).split(", ")[:2], str(fault.accepted).split(", ")[2:]
    assert set(near) == {"eu-north1", "eu-west1"}
    assert {"any", "us-east-1", "southindia"} <= set(far)


@pytest.mark.parametrize(
    ("named", "meant"),
    [
        ("1yr", "did you mean reserved: each offer tells for how many months? on-demand, reserved, spot"),
        ("Savings Plan", "did you mean reserved: each offer tells for how many months? on-demand, reserved, spot"),
        ("preemptible", "did you mean spot? on-demand, reserved, spot"),
        ("pay-as-you-go", "did you mean on-demand? on-demand, reserved, spot"),
    ],
)
def test_a_way_to_buy_that_providers_call_otherwise_is_refused_with_ours(
    sources: Sources, named: str, meant: str
) -> None:
    with pytest.raises(RefusalError) as refused:
        Priced(purchases=[named]).prices(sources, [])

    assert [fault.accepted for fault in refused.value.faults] == [meant]


@pytest.mark.parametrize(
    ("field", "begins"),
    [
        ("providers", "leave providers out for all of them: akash, aws"),
        ("regions", "leave regions out for all of them: any, "),
        ("purchases", "name them all: on-demand, reserved, spot"),
    ],
)
def test_a_word_for_all_of_them_is_refused_with_how_to_ask_for_all(sources: Sources, field: str, begins: str) -> None:
    with pytest.raises(RefusalError) as refused:
        Priced(**{field: ["all"]}).prices(sources, [])

    [fault] = refused.value.faults
    assert str(fault.accepted).startswith(begins)


def test_a_discount_is_taken_off_list_prices(sources: Sources) -> None:
    listed = Priced().prices(sources, H100).offers
    paid = Priced(discount_fraction=0.25).prices(sources, H100).offers

    assert [offer.usd_per_hour for offer in paid] == pytest.approx([0.75 * offer.usd_per_hour for offer in listed])


def test_an_own_price_takes_the_place_of_offers(sources: Sources) -> None:
    cost = SizeQuery(**ASKED, usd_per_gpu_hour=2.5).answer(sources).result.cost

    assert cost is not None
    assert (cost.usd_per_hour, cost.origin, cost.offer) == (2.5 * cost.gpus, "request", None)
    with pytest.raises(ValidationError, match="takes the place of list prices"):
        Priced(usd_per_gpu_hour=2.5, discount_fraction=0.1)


def test_a_price_is_stale_after_sixty_days(sources: Sources) -> None:
    def stale(today: date) -> set[str]:
        prices = Priced().prices(replace(sources, today=today), sources.catalog.gpus)
        return {offer.as_of for offer in prices.offers if offer.is_stale}

    assert "2026-09-24" not in stale(date(2026, 11, 23))
    assert "2026-09-24" in stale(date(2026, 11, 24))


def test_every_way_to_choose_prices_works_on_size(sources: Sources) -> None:
    dearer = SizeQuery(**ASKED, providers="aws").answer(sources).result.cost
    spot = SizeQuery(**ASKED, purchases="spot", tiers="community").answer(sources).result.cost

    assert dearer is not None
    assert spot is not None
    assert (dearer.provider, dearer.tier, dearer.region is None) == ("aws", "secure", False)
    assert (spot.purchase, spot.tier) == ("spot", "community")


def test_an_answer_says_by_what_offers_count(sources: Sources) -> None:
    def noted(**asked: Any) -> dict[str, tuple[Any, str]]:
        notes = SizeQuery(**ASKED, **asked).answer(sources).result.assumptions
        names = ("providers", "regions", "tiers", "purchases", "discount_fraction", "usd_per_gpu_hour")
        return {note.name: (note.value, note.origin) for note in notes if note.name in names}

    usual = {"tiers": ("secure", "default"), "purchases": ("on-demand", "default")}
    assert noted() == usual
    assert noted(providers=["aws"], discount_fraction=0.2) == {
        "providers": ("aws", "request"),
        **usual,
        "discount_fraction": (0.2, "request"),
    }
    assert noted(purchases=["spot", "on-demand"], tiers=["secure", "community"]) == {
        "tiers": ("secure, community", "request"),
        "purchases": ("spot, on-demand", "request"),
    }
    assert noted(usd_per_gpu_hour=2.1) == {"usd_per_gpu_hour": (2.1, "request")}
