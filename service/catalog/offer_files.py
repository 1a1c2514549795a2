"""Reads price lists into offers: own CSV files, and the catalogs that gpuhunt and SkyPilot publish.

    own        provider, instance_type, region, gpu, gpu_count, usd_per_hour, as_of, source; and, where they differ from
               the usual, tier, purchase, commitment_months, id, checked_on: as `/catalog/offers?format=csv` writes them
    gpuhunt    instance_name, location, price, gpu_count, gpu_name, gpu_memory, spot; the file's name is the provider
    SkyPilot   InstanceType, AcceleratorName, AcceleratorCount, Region, Price, SpotPrice; the folder is the provider

Sources:
    gpuhunt 0.1.34 `_internal/storage.py` (CATALOG_V2_FIELDS); skypilot-org/skypilot-catalog README, schema v5.
"""

import csv
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from math import isfinite, nan
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from service.catalog.entries import OfferEntry
from service.catalog.errors import NotInCatalogError, UnusableOfferError
from service.catalog.faults import told
from service.catalog.names.providers import PROVIDERS
from service.catalog.offer_columns import BEYOND, COLUMNS, Kind, Row, kind_of, table_of, without_kind
from service.catalog.offer_rules import check_day, check_purchase
from service.catalog.snapshot import Snapshot

SOURCES: Final[Mapping[Kind, str]] = {
    "gpuhunt": "https://github.com/dstackai/gpuhunt",
    "skypilot": "https://github.com/skypilot-org/skypilot-catalog",
}
THIRD_PARTY_HOSTS: Final = frozenset({"vast", "tensordock", "salad", "akash", "spheron"})
MOST_CELL_SHOWN: Final = 60
A_NUMBER: Final = "accepted: 20.5 or 20,5, without a currency's sign or marks of thousands"
MARKETPLACE = "community"
NOT_IN_ID: Final = re.compile(r"[^a-z0-9._-]+")
GPU_NAME: Final = re.compile(r"'Name': '([^']+)'")
ON_ANYBODYS: Final = re.compile(r"(^|[-_])community($|[-_])", re.IGNORECASE)
DECIMAL_COMMA: Final = re.compile(r"[0-9]+,[0-9]{1,2}")
MEMORY_MIB: Final = re.compile(r"'SizeInMiB': ([0-9]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """What a file of another catalog does not state."""

    provider: str | None
    as_of: date | None
    checked_on: date
    skip_unknown_gpus: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceList:
    """What a file says: offers, what is wrong with its lines, and the GPUs it names that were skipped."""

    offers: tuple[OfferEntry, ...]
    faults: tuple[str, ...]
    skipped_gpus: tuple[str, ...]


class _UnknownGpuError(ValueError):
    """A line names a GPU that the catalog does not have."""


def read_price_list(file: Path, catalog: Snapshot, stated: Stated) -> PriceList:
    """Return the offers of a file; faults are named by line, and a file with any must not be taken.

    Raises:
        OSError: the file cannot be read.
    """
    try:
        columns, rows = table_of(file)
    except (UnicodeDecodeError, csv.Error):
        return PriceList(offers=(), faults=("not a CSV file in UTF-8",), skipped_gpus=())
    kind = kind_of(columns)
    if kind is None:
        return PriceList(offers=(), faults=(without_kind(columns),), skipped_gpus=())
    if twice := sorted(name for name in COLUMNS[kind] if columns.count(name) > 1):
        return PriceList(offers=(), faults=(f"columns that stand twice: {', '.join(twice)}",), skipped_gpus=())
    if not rows:
        return PriceList(offers=(), faults=("no lines below the names of columns",), skipped_gpus=())
    if (fault := _fault_beside(kind, stated)) is not None:
        return PriceList(offers=(), faults=(fault,), skipped_gpus=())
    return _gathered(rows, kind, catalog, _with_provider(stated, file))


def _fault_beside(kind: Kind, stated: Stated) -> str | None:
    """Return what is wrong with what was stated beside a file: nothing that is stated is left out unsaid."""
    if kind == "own":
        beside = {"--as-of": stated.as_of, "--provider": stated.provider}
        twice = next((option for option, value in beside.items() if value is not None), None)
        told = "a file in own columns states its provider and as_of line by line"
        return None if twice is None else f"{twice}: {told}; leave {twice} out"
    if stated.as_of is None:
        return f"{kind} files state no date; state --as-of"
    try:
        check_day(stated.as_of, stated.checked_on, "--as-of")
    except UnusableOfferError as error:
        return str(error)
    return None


def _with_provider(stated: Stated, file: Path) -> Stated:
    """Return the provider that a file's name tells: `aws.csv`, or SkyPilot's `aws/vms.csv`."""
    name = (file.parent.name if file.stem == "vms" else file.stem).lower()
    provider = stated.provider or PROVIDERS.get(name, name)
    return Stated(
        provider=provider,
        as_of=stated.as_of,
        checked_on=stated.checked_on,
        skip_unknown_gpus=stated.skip_unknown_gpus,
    )


def _gathered(rows: Iterable[Row], kind: Kind, catalog: Snapshot, stated: Stated) -> PriceList:
    offers: dict[str, OfferEntry] = {}
    faults: list[str] = []
    skipped: dict[str, None] = {}
    for number, row in enumerate(rows, start=2):
        try:
            for offer in _offers(row, kind, catalog, stated):
                kept = offers.setdefault(offer.id, offer)
                if offer.usd_per_hour < kept.usd_per_hour and kind != "own":  # zones of a region differ
                    offers[offer.id] = offer
                elif offer != kept and kind == "own":
                    faults.append(f"line {number}: {offer.id} is listed twice")
        except _UnknownGpuError as error:
            if stated.skip_unknown_gpus:
                skipped[str(error)] = None
            else:
                faults.append(f"line {number}: the catalog has no GPU {error}")
        except ValidationError as error:
            faults += [f"line {number}: {fault}" for fault in told(error)]
        except ValueError as error:
            faults.append(f"line {number}: {error}")
    return PriceList(offers=tuple(offers.values()), faults=tuple(faults), skipped_gpus=tuple(skipped))


def _offers(row: Row, kind: Kind, catalog: Snapshot, stated: Stated) -> Iterator[OfferEntry]:
    """Yield the offers of one line; none where it has no GPU or no price."""
    _check_cells(row, kind)
    match kind:
        case "own":
            yield _entry(catalog, _own(row, stated))
        case "gpuhunt":
            if _number(row["gpu_count"]) and row["gpu_name"]:
                spot = row["spot"].strip().lower() == "true"
                memory = f"{_number(row['gpu_memory']):g}"
                gpu = _gpu(catalog, row["gpu_name"], memory)
                shared = _shared(stated, kind, row["instance_name"], row["location"], gpu, row["gpu_count"])
                yield _entry(catalog, {**shared, "usd_per_hour": _number(row["price"]), "purchase": _bought(spot=spot)})
        case "skypilot":
            if _number(row["AcceleratorCount"]) and row["AcceleratorName"]:
                gpu = _skypilot_gpu(catalog, row)
                shared = _shared(stated, kind, row["InstanceType"], row["Region"], gpu, row["AcceleratorCount"])
                for column, spot in (("Price", False), ("SpotPrice", True)):
                    if price := _number(row[column]):
                        yield _entry(catalog, {**shared, "usd_per_hour": price, "purchase": _bought(spot=spot)})


def _check_cells(row: Row, kind: Kind) -> None:
    """Raise ValueError where a line has more cells than columns, or breaks off before one that its kind always has.

    Of own columns those that are left out are named, as blank ones are.
    """
    if BEYOND in row:
        raise ValueError("more cells than columns; a cell with a comma stands in quotes")
    missing = [] if kind == "own" else sorted(name for name in COLUMNS[kind] if row.get(name) is None)
    if missing:
        raise ValueError(f"the line breaks off before {', '.join(missing)}; accepted: a cell for each column")


def _skypilot_gpu(catalog: Snapshot, row: Row) -> str:
    """Return the id of a line's GPU: by the provider's own name for it, which tells PCIe from SXM, or by SkyPilot's.

    Raises:
        _UnknownGpuError: the catalog has neither.
    """
    memory_gb, own = _skypilot_memory(row), GPU_NAME.search(row.get("GpuInfo") or "")
    if own is not None:
        try:
            return _gpu(catalog, own[1], memory_gb)
        except _UnknownGpuError:
            pass
    return _gpu(catalog, row["AcceleratorName"], memory_gb)


def _skypilot_memory(row: Row) -> str:
    """Return the GB of one GPU: as the line states them, or those that SkyPilot means by a bare A100.

    RunPod's lines state GB under the name of MiB.
    """
    stated = MEMORY_MIB.search(row.get("GpuInfo") or "")
    if stated:
        size = int(stated[1])
        return f"{size / 1024 if size >= 1024 else size:.0f}"
    return "40" if row["AcceleratorName"] == "A100" else ""


def _own(row: Row, stated: Stated) -> dict[str, Any]:
    """Return a line of an own file as an entry is written; blank cells are not stated."""
    unknown = row.keys() - COLUMNS["own"] - {"id", "tier", "purchase", "commitment_months", "checked_on"}
    if unknown:
        raise ValueError(f"unknown columns: {', '.join(sorted(unknown))}")
    cells = {name: value.strip() for name, value in row.items() if value and value.strip()}
    numbers: dict[str, Any] = {
        name: _number(cells[name]) for name in ("gpu_count", "usd_per_hour", "commitment_months") if name in cells
    }
    check_purchase(cells.get("purchase", "on-demand"), cells.get("commitment_months"))
    for name in ("as_of", "checked_on"):
        _check_stated_day(name, cells.get(name, ""), stated.checked_on)
    source = {"url": cells.pop("source", ""), "checked_on": cells.pop("checked_on", stated.checked_on)}
    return {**cells, **numbers, "source": source}


def _check_stated_day(name: str, stated: str, today: date) -> None:
    try:
        day = date.fromisoformat(stated)
    except ValueError:
        return  # is told with what else is wrong with the line
    check_day(day, today, name)


def _shared(stated: Stated, kind: Kind, instance: str, region: str, gpu: str, count: str) -> dict[str, Any]:
    """Return what both purchases of a line of another catalog have in common."""
    return {
        "provider": stated.provider,
        "instance_type": instance,
        "region": region or "any",
        "gpu": gpu,
        "gpu_count": _number(count),
        "tier": MARKETPLACE if stated.provider in THIRD_PARTY_HOSTS or ON_ANYBODYS.search(instance) else "secure",
        "as_of": stated.as_of,
        "source": {"url": SOURCES[kind], "checked_on": stated.checked_on},
    }


def _bought(*, spot: bool) -> str:
    return "spot" if spot else "on-demand"


def _entry(catalog: Snapshot, fields: dict[str, Any]) -> OfferEntry:
    """Return an offer under the id that the catalog has for it, or else one of its names."""
    gpu = _gpu(catalog, str(fields.get("gpu", "")), "")
    offer = OfferEntry.model_validate({**fields, "id": fields.get("id") or "new", "gpu": gpu})
    if "id" in fields:
        return offer
    same = (known.id for known in catalog.offer_entries.values() if _sold(known) == _sold(offer))
    return offer.model_copy(update={"id": next(same, _named(offer))})


def _sold(offer: OfferEntry) -> tuple[object, ...]:
    """Return what is sold, without what it costs."""
    where = (offer.provider, offer.instance_type, offer.region, offer.gpu, offer.gpu_count)
    return (*where, offer.purchase, offer.commitment_months, offer.tier)


def _named(offer: OfferEntry) -> str:
    months = f"{offer.commitment_months}m" if offer.commitment_months else ""
    bought = offer.purchase if offer.purchase != "on-demand" else ""
    parts = (offer.provider, offer.instance_type, offer.gpu, offer.region, bought, months)
    return NOT_IN_ID.sub("-", "-".join(part for part in parts if part).lower())[:128]


def _gpu(catalog: Snapshot, name: str, memory_gb: str) -> str:
    """Return the id of a GPU, by its name with or without its memory.

    Raises:
        _UnknownGpuError: the catalog has none of that name.
    """
    bare = name.strip()
    for spelled in ((f"{bare} {memory_gb}GB", f"{bare}-{memory_gb}GB") if memory_gb else ()) + (bare,):
        try:
            reading = catalog.called_gpus.read(spelled)
        except NotInCatalogError:
            continue
        if reading.gpu_count is None:  # of an instance's name, or several GPUs, a line would count twice
            return reading.gpu_id
    raise _UnknownGpuError(f"{bare[:MOST_CELL_SHOWN]!r}" + (f" with {memory_gb} GB" if memory_gb else ""))


def _number(text: str) -> float:
    """Return a number; 0 for a blank cell. A comma before one or two digits is a decimal one, as in `20,5`.

    Raises:
        ValueError: it is none.
    """
    try:
        stated = text.replace(",", ".") if text and DECIMAL_COMMA.fullmatch(text.strip()) else text
        number = float(stated) if stated and stated.strip() else 0.0
    except ValueError:
        number = nan
    if not isfinite(number):
        raise ValueError(f"{text[:MOST_CELL_SHOWN]!r} is no number; {A_NUMBER}")
    return int(number) if number.is_integer() else number
