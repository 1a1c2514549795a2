"""Where regions are, as far as their names tell, and what ways to buy GPUs are called: to suggest, never to read."""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from rapidfuzz import fuzz

WORD: Final = re.compile(r"[a-z]+")
CONTINENTS: Final[Mapping[str, frozenset[str]]] = {
    name: frozenset(words.split())
    for name, words in {
        "europe": "eu de fra fr ams nl lon gb se fi ie "
        "europe european euw eun euc emea frankfurt berlin munich germany germanywestcentral london uk "
        "uksouth ukwest paris france francecentral ireland dublin stockholm sweden swedencentral amsterdam netherlands "
        "northeurope westeurope finland hamina helsinki norway oslo norwayeast milan italy italynorth madrid spain "
        "spaincentral zurich switzerland switzerlandnorth warsaw poland polandcentral belgium iceland",
        "america": "us usa usw use america american na northamerica united states virginia ohio oregon california "
        "texas iowa nevada utah carolina ashburn phoenix chicago dallas seattle eastus westus centralus "
        "northcentralus southcentralus westcentralus canada ca toronto montreal canadacentral canadaeast",
        "asia": "ap apac asia japan tokyo osaka japaneast japanwest seoul korea koreacentral singapore southeastasia "
        "eastasia hongkong mumbai pune chennai hyderabad delhi india southindia centralindia westindia jakarta "
        "indonesia taiwan",
    }.items()
}
# What providers call what they sell for months or years, what they may take away, and what they sell by the hour.
BOUGHT: Final[Mapping[str, str]] = {
    "reserved": "1yr 3yr 1y 3y 1year 3year 12m 36m reservation committed commitment cud ri savingsplan savingsplans",
    "spot": "preemptible preemptable interruptible lowpriority spotinstance spotinstances",
    "on-demand": "ondemand payg payasyougo hourly standard listprice list",
}
PURCHASE_CALLED: Final[Mapping[str, str]] = {name: bought for bought, names in BOUGHT.items() for name in names.split()}
NOT_IN_NAMES: Final = re.compile(r"[^a-z0-9]+")


def continent_of(region: str) -> str | None:
    """Return the continent that a region's or a place's name tells; None where it tells none.

    >>> continent_of("Frankfurt"), continent_of("eu-north1"), continent_of("westus2"), continent_of("any")
    ('europe', 'europe', 'america', None)
    """
    words = set(WORD.findall(region.lower()))
    return next((name for name, known in CONTINENTS.items() if words & known), None)


def nearest_first(asked: str, regions: Iterable[str]) -> list[str]:
    """Return regions with those of the same continent first, and of these the likest name.

    >>> nearest_first("Frankfurt", ["any", "eu-west1", "us-east-1"])
    ['eu-west1', 'any', 'us-east-1']
    """
    continent = continent_of(asked)

    def distance(region: str) -> tuple[bool, float]:
        is_there = continent is not None and continent_of(region) == continent
        return not is_there, -fuzz.ratio(asked.lower(), region.lower()) if is_there or continent is None else 0.0

    return sorted(regions, key=distance)


def likest_first(asked: str, names: Iterable[str]) -> list[str]:
    """Return names with those first that are written most like the one asked.

    >>> likest_first("amazn", ["gcp", "amazon", "azure"])
    ['amazon', 'azure', 'gcp']
    """
    return sorted(names, key=lambda name: (-fuzz.ratio(asked.lower(), name.lower()), name))


def purchase_meant(asked: str) -> str | None:
    """Return the way to buy GPUs that another name of it means; None where nobody calls one so.

    >>> purchase_meant("1-yr"), purchase_meant("Savings Plan"), purchase_meant("barter")
    ('reserved', 'reserved', None)
    """
    return PURCHASE_CALLED.get(NOT_IN_NAMES.sub("", asked.lower()))
