"""What a price rests on. Referee: the offers that an answer names are of the kinds it says."""

from dataclasses import replace

from service.catalog.snapshot import Snapshot
from service.engine.answers.priced import USUAL, priced
from service.engine.answers.size import size
from service.engine.fleet.questions import PriceTerm
from tests.engine.conftest import Asked


def test_what_is_usual_has_a_reason_and_what_is_stated_has_none(asked: Asked) -> None:
    terms = (PriceTerm("tiers", "secure", is_stated=False), PriceTerm("purchases", "spot", is_stated=True))
    notes = {note.name: (note.value, note.origin, note.source) for note in priced(replace(asked(), price_terms=terms))}

    assert notes == {"tiers": ("secure", "default", USUAL["tiers"]), "purchases": ("spot", "request", None)}
    assert list(priced(asked())) == []  # nobody asked for prices


def test_a_sizing_notes_them_beside_its_price(asked: Asked, catalog: Snapshot) -> None:
    terms = (PriceTerm("purchases", "on-demand", is_stated=False),)
    offers = tuple(offer for offer in catalog.offers if offer.purchase == "on-demand" and offer.tier == "secure")
    sizing = size(replace(asked(), price_terms=terms, offers=offers))

    assert sizing.cost is not None
    assert sizing.cost.purchase == "on-demand"
    assert [note.value for note in sizing.assumptions if note.name == "purchases"] == ["on-demand"]
