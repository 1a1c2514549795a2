"""What GPUs cost the caller: which published offers count, or a price of their own."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Annotated, Final

from pydantic import Field, ValidationInfo, field_validator

from service.catalog.entries import PURCHASES
from service.catalog.names.providers import likest_provider_first
from service.catalog.names.regions import nearest_first, purchase_meant
from service.catalog.snapshot import Snapshot
from service.engine.derived import derived
from service.engine.fleet.questions import Offer, PriceTerm
from service.engine.formats.hashed import Hashed
from service.engine.inputs import Tier
from service.questions.parts.part import Part, absent, contradiction
from service.questions.refusals import Fault, RefusalError
from service.questions.sources import Sources
from service.questions.values import NUMBER, Texts, Tiers

STALE_AFTER: Final = timedelta(days=60)
USUAL_TIERS: Final[tuple[Tier, ...]] = ("secure",)
USUAL_PURCHASES: Final = ("on-demand",)
EVERY: Final = frozenset(("all", "any", "every", "*", "global", "worldwide"))
OWN_PRICE: Final = "own-price"
MOST_SHOWN: Final = 3
MOST_KINDS: Final = 12
# What a caller may ask of offers, and where an offer has it.
OF_OFFERS: Final[Mapping[str, str]] = {
    "providers": "provider", "regions": "region", "tiers": "tier", "purchases": "purchase",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """The offers that count, at what the caller pays, and the others."""

    offers: tuple[Offer, ...]
    left_out: tuple[Offer, ...]


class Priced(Part):
    """Which offers count, and what the caller pays."""

    providers: Texts | None = Field(
        default=None, description="consider only offers of these providers", examples=[["aws"]]
    )
    regions: Texts | None = Field(
        default=None,
        description="consider only offers in these regions, as offers name them; any is a region of its own: the "
        "provider asks the same everywhere",
        examples=[["us-east-1"]],
    )
    tiers: Tiers | None = Field(
        default=None,
        description="on whose servers: secure, the provider's own (default); community, anybody's",
        examples=[["secure", "community"]],
    )
    purchases: Texts | None = Field(
        default=None,
        description="how GPUs are bought: on-demand (default), reserved for months or years, or spot, which the "
        "provider may take away",
        examples=[["on-demand", "reserved"]],
    )
    discount_fraction: Annotated[float, Field(ge=0, lt=1, allow_inf_nan=False), NUMBER] | None = Field(
        default=None, description="what is taken off every list price [fraction]", examples=[0.25]
    )
    usd_per_gpu_hour: Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False), NUMBER] | None = Field(
        default=None,
        description="what the caller pays for one GPU, instead of list prices [USD per hour]",
        examples=[2.1],
    )

    @field_validator("usd_per_gpu_hour")
    @classmethod
    def _own_price_alone(cls, value: float | None, info: ValidationInfo) -> float | None:
        beside = ("providers", "regions", "tiers", "purchases", "discount_fraction")
        stated = [name for name in beside if name in info.data and not absent(info, name)]
        if value is not None and stated:
            sentence = f"usd_per_gpu_hour takes the place of list prices, and {stated[0]} speaks of those"
            raise contradiction("usd_per_gpu_hour", sentence, "one of them")
        return value

    def no_offer(self, left_out: Sequence[Offer]) -> RefusalError:
        """Return that no offer has all that is asked of offers, and what those have that have the first of it.

        Args:
            left_out: offers, none of which has all of it.
        """
        usual: dict[str, Sequence[str]] = {"tiers": USUAL_TIERS, "purchases": USUAL_PURCHASES}
        stated = [name for name in OF_OFFERS if getattr(self, name)]
        asked = {name: getattr(self, name) or usual[name] for name in OF_OFFERS if name in stated or name in usual}
        first, wanted = next((name, {each.lower() for each in names}) for name, names in asked.items())
        near = [offer for offer in left_out if getattr(offer, OF_OFFERS[first]).lower() in wanted]
        kinds = sorted({f"{offer.provider} in {offer.region} ({offer.tier}, {offer.purchase})" for offer in near})
        told = ", ".join(
            f"{name}={','.join(names)}{'' if name in stated else ' (default)'}" for name, names in asked.items()
        )
        detail = f"no offer has {told} at once"
        more = f" and {len(kinds) - MOST_KINDS} more" if len(kinds) > MOST_KINDS else ""
        fault = Fault(stated[-1] if stated else first, detail, ", ".join(kinds[:MOST_KINDS]) + more)
        return RefusalError("invalid-request", detail, fault)

    def check_names(self, catalog: Snapshot) -> None:
        """Hold providers, regions and purchases against the offers there are.

        Raises:
            RefusalError: no offer has one of them.
        """
        self._wish(()).filter(catalog.offers)

    def prices(self, sources: Sources, gpus: Iterable[str], *, names: Sequence[str] = ()) -> Prices:
        """Return the offers that count for these GPUs.

        Args:
            sources: what is looked up.
            gpus: their ids.
            names: what they were called; one that is called by instance types alone is rented in these, whole.

        Raises:
            RefusalError: the catalog has no offer of such a provider, region or purchase.
        """
        if self.usd_per_gpu_hour is not None:
            held, price = sources.instances_of(*names), self.usd_per_gpu_hour
            own = (_own(gpu, price, *each) for gpu in gpus for each in held.get(gpu, (("", 1),)))
            return Prices(offers=tuple(own), left_out=())
        catalog = sources.catalog
        wish = self._wish(gpus)
        rented = sources.offers_of(*names)
        if rented is catalog.offers:
            return _counted(catalog, wish, sources.today)
        return _divided(wish, catalog.offers, rented, sources.today)

    def price_terms(self) -> tuple[PriceTerm, ...]:
        """Return by what offers count, and what is paid: a price of the caller's own counts alone."""
        if self.usd_per_gpu_hour is not None:
            return (PriceTerm("usd_per_gpu_hour", self.usd_per_gpu_hour, is_stated=True),)
        usual = {"tiers": USUAL_TIERS, "purchases": USUAL_PURCHASES}
        of_offers = ((name, getattr(self, name) or usual.get(name), bool(getattr(self, name))) for name in OF_OFFERS)
        terms = [PriceTerm(name, ", ".join(names), is_stated) for name, names, is_stated in of_offers if names]
        if self.discount_fraction is not None:
            terms.append(PriceTerm("discount_fraction", self.discount_fraction, is_stated=True))
        return tuple(terms)

    def _wish(self, gpus: Iterable[str]) -> "_Wish":
        return _Wish(
            gpus=frozenset(gpus),
            providers=_listed(self.providers),
            regions=_listed(self.regions),
            tiers=_listed(self.tiers),
            purchases=_listed(self.purchases),
            discount_fraction=self.discount_fraction or 0.0,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wish:
    """Which offers a caller asks for, as stated."""

    gpus: frozenset[str]
    providers: tuple[str, ...] | None
    regions: tuple[str, ...] | None
    tiers: tuple[str, ...] | None
    purchases: tuple[str, ...] | None
    discount_fraction: float

    def filter(self, listed: tuple[Offer, ...]) -> Callable[[Offer], bool]:
        """Return the rule by which offers count."""
        providers = _known("providers", self.providers, (offer.provider for offer in listed))
        regions = _known("regions", self.regions, (offer.region for offer in listed))
        purchases = _known("purchases", self.purchases, _purchases(listed)) or frozenset(USUAL_PURCHASES)
        tiers = frozenset(self.tiers or USUAL_TIERS)

        def is_wanted(offer: Offer) -> bool:
            return (
                offer.tier in tiers
                and offer.purchase in purchases
                and (providers is None or offer.provider in providers)
                and (regions is None or offer.region in regions)
            )

        return is_wanted


def _purchases(listed: Iterable[Offer]) -> Iterator[str]:
    """Yield the ways to pay that offers name, and those that callers may name in any case."""
    yield from PURCHASES
    yield from (offer.purchase for offer in listed)


def _listed(names: Sequence[str] | None) -> tuple[str, ...] | None:
    return None if names is None else tuple(names)


@derived(512)
def _counted(catalog: Snapshot, wish: _Wish, today: date) -> Prices:
    """Return the offers of a catalog that count on a day."""
    return _divided(wish, catalog.offers, catalog.offers, today)


def _divided(wish: _Wish, listed: tuple[Offer, ...], rented: tuple[Offer, ...], today: date) -> Prices:
    is_wanted, off = wish.filter(listed), wish.discount_fraction
    ours = [offer for offer in rented if offer.gpu in wish.gpus]
    unheld = wish.gpus - {offer.gpu for offer in ours}  # called by instance types whose price is not known
    return Prices(
        offers=Hashed(_paid(offer, off, today) for offer in ours if is_wanted(offer)),
        left_out=Hashed(
            [offer for offer in ours if not is_wanted(offer)] + [offer for offer in listed if offer.gpu in unheld]
        ),
    )


def _known(field: str, stated: Sequence[str] | None, names: Iterable[str]) -> frozenset[str] | None:
    """Return names as the catalog spells them; None where nobody stated any.

    Raises:
        RefusalError: no offer has one of them.
    """
    if stated is None:
        return None
    spelled = {name.lower(): name for name in names}
    unknown = [name for name in stated if name.lower() not in spelled]
    if unknown:
        detail = f"no offer has {', '.join(repr(name) for name in unknown[:MOST_SHOWN])}"
        raise RefusalError("invalid-request", detail, Fault(field, detail, _accepted(field, unknown[0], spelled)))
    return frozenset(spelled[name.lower()] for name in stated)


def _accepted(field: str, unknown: str, spelled: Mapping[str, str]) -> str:
    """Return the names that offers have, with the one that is meant first, and what it is, where that can be told."""
    names = sorted(spelled.values())
    if unknown.lower() in EVERY:
        every = "name them all" if field == "purchases" else f"leave {field} out for all of them"
        return f"{every}: {', '.join(names)}"
    if field == "regions":
        return ", ".join(nearest_first(unknown, names))
    if field == "providers":
        return ", ".join(likest_provider_first(unknown, names))
    meant = purchase_meant(unknown) if field == "purchases" else None
    if meant is None:
        return ", ".join(names)
    told = ": each offer tells for how many months" if meant == "reserved" else ""
    return f"did you mean {meant}{told}? {', '.join(names)}"


def _paid(offer: Offer, off: float, today: date) -> Offer:
    """Return an offer at what the caller pays, which says whether its price is too old to rely on."""
    is_stale = date.fromisoformat(offer.as_of) + STALE_AFTER < today
    if not off and not is_stale:
        return offer
    return replace(offer, usd_per_hour=offer.usd_per_hour * (1 - off), discount_fraction=off, is_stale=is_stale)


def _own(gpu: str, usd_per_gpu_hour: float, instance_type: str, gpu_count: int) -> Offer:
    """Return the caller's own price of a GPU, or of an instance type that was named, as offers are compared with."""
    return Offer(
        id=OWN_PRICE,
        provider="",
        instance_type=instance_type,
        region="",
        gpu=gpu,
        gpu_count=gpu_count,
        usd_per_hour=usd_per_gpu_hour * gpu_count,
        as_of="",
        is_callers=True,
    )
