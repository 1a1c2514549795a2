"""Which entries a list of the catalog shows, and as what: pages of JSON, or every one of them as a sheet."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Final, Literal, TypeVar, get_args

from fastapi import Path
from pydantic import BaseModel, ConfigDict, Field, field_validator
from starlette.convertors import PathConvertor, register_url_convertor
from starlette.responses import Response

from service.api.pages import Paged, one_page
from service.catalog.entries import PURCHASES, Entry, GpuEntry, ModelEntry, OfferEntry
from service.catalog.names.providers import PROVIDERS, likest_provider_first
from service.catalog.names.regions import likest_first, nearest_first
from service.engine.inputs import Tier
from service.questions.formats import table
from service.questions.refusals import Fault, RefusalError

Named = TypeVar("Named", ModelEntry, GpuEntry, OfferEntry)
AnyName = Annotated[str, Path(max_length=200, description="its catalog id, or whatever else it is called")]
ANY_NAME: Final = "any_name"
VENDORS: Final[tuple[str, ...]] = get_args(GpuEntry.model_fields["vendor"].annotation)
NOT_IN_NAMES: Final = re.compile(r"[-_ .]")
MOST_NAMES: Final = 20  # that are told
NEAREST: Final = {"region": nearest_first, "provider": likest_provider_first}  # else by how it is written
Words = Annotated[str, Field(max_length=200)]  # of a filter; empty, as a dashboard's variable may be, it lets all pass


class _AnyName(PathConvertor):
    """The rest of a path, whatever is in it: a `path` ends at a line break."""

    regex = "(?s:.*)"


register_url_convertor(ANY_NAME, _AnyName())


class Listing(Entry, Paged):
    """Which part of a list to return, and how it is written."""

    of: ClassVar[str]  # what is listed, as its path calls it
    named: ClassVar[tuple[str, ...]] = ()  # filters by a name that some entry has
    search: Words | None = Field(
        default=None, description="words that an id, a name or an alias must hold, all of them"
    )
    format: Literal["json", "csv"] = Field(default="json", description="csv: every entry that is meant, on one sheet")

    def is_meant(self, entry: ModelEntry | GpuEntry | OfferEntry) -> bool:
        """Return whether an entry is one of those asked for."""
        stated = {name: getattr(self, name) for name in type(self).model_fields if name not in Listing.model_fields}
        if any(value and not _is(getattr(entry, name), value) for name, value in stated.items()):
            return False
        called = " ".join(_names_of(entry)).lower()
        return all(word in called for word in (self.search or "").lower().split())


class ModelListing(Listing):
    """Which models."""

    of = "models"
    named = ("publisher",)

    publisher: Words | None = Field(default=None, description="who published it, as the hub names them")


class GpuListing(Listing):
    """Which GPUs."""

    of = "gpus"
    named = ("architecture",)

    vendor: Words | None = Field(default=None, description="such as nvidia or amd")
    architecture: Words | None = Field(default=None, description="such as hopper")

    @field_validator("vendor")
    @classmethod
    def _some_vendor(cls, value: str | None) -> str | None:
        return _one_of(VENDORS, value)


class OfferListing(Listing):
    """Which offers."""

    of = "offers"
    named = ("provider", "region")

    provider: Words | None = Field(default=None, description="such as aws")
    region: Words | None = Field(default=None, description="as the provider names it")
    gpu: Words | None = Field(default=None, description="id of a GPU of the catalog, or what else it is called")
    purchase: Words | None = Field(default=None, description="such as on-demand or spot")
    tier: Tier | None = Field(default=None, description="secure or community")

    @field_validator("provider")
    @classmethod
    def _as_listed(cls, value: str | None) -> str | None:
        return value and PROVIDERS.get(NOT_IN_NAMES.sub("", value.lower()), value)

    @field_validator("purchase")
    @classmethod
    def _some_purchase(cls, value: str | None) -> str | None:
        return _one_of(PURCHASES, value)


class Listed(BaseModel):
    """What every list shares."""

    model_config = ConfigDict(frozen=True)

    next_page_token: str | None
    catalog_revision: int


class ModelList(Listed):
    """Models, in the order of their ids."""

    items: tuple[ModelEntry, ...]


class GpuList(Listed):
    """GPUs, in the order of their ids."""

    items: tuple[GpuEntry, ...]


class OfferList(Listed):
    """Offers, in the order of their ids."""

    items: tuple[OfferEntry, ...]


def _one_of(names: Collection[str], value: str | None) -> str | None:
    """Return a filter that some entry may pass; a misspelt one would show none, and not say why."""
    if value and value.lower() not in names:
        raise ValueError(f"no entry can have it; accepted: {', '.join(names)}")
    return value


def _is(value: object, wanted: str) -> bool:
    return isinstance(value, str) and value.lower() == wanted.lower()


def _names_of(entry: ModelEntry | GpuEntry | OfferEntry) -> Iterator[str]:
    if isinstance(entry, OfferEntry):
        yield from (entry.id, entry.provider, entry.instance_type, entry.region, entry.gpu)
    else:
        yield from (entry.id, entry.name, *entry.aliases)
        if isinstance(entry, ModelEntry):
            yield from (name for name in (entry.hf_id, entry.publisher) if name)


def _check_named(entries: tuple[Named, ...], listing: Listing) -> None:
    """Hold filters by a name against the entries there are.

    Raises:
        RefusalError: no entry has the name: an empty list would not say that it is misspelt.
    """
    for field in listing.named if entries else ():
        wanted = getattr(listing, field)
        if not wanted or any(_is(getattr(entry, field), wanted) for entry in entries):
            continue
        names = sorted({getattr(entry, field) for entry in entries} - {None})
        detail = f"no entry has the {field} {wanted!r}"
        raise RefusalError("invalid-request", detail, Fault(field, detail, _nearest(field, wanted, names)))


def _nearest(field: str, wanted: str, names: Sequence[str]) -> str:
    """Return the names that entries have, those that may be meant first."""
    ranked = NEAREST.get(field, likest_first)(wanted, names)
    more = f" and {len(ranked) - MOST_NAMES} more" if len(ranked) > MOST_NAMES else ""
    return ", ".join(ranked[:MOST_NAMES]) + more


def shown(entries: tuple[Named, ...], listing: Listing) -> tuple[tuple[Named, ...], str | None]:
    """Return one page of what is meant, and the token of the next.

    Raises:
        RefusalError: a filter names what no entry has, or the page's token is none of this list.
    """
    _check_named(entries, listing)
    return one_page([entry for entry in entries if listing.is_meant(entry)], listing.of, listing)


def sheet(entries: tuple[Named, ...], listing: Listing, row_of: Callable[[Named], Mapping[str, Any]]) -> Response:
    """Return every entry that is meant as CSV, under the same columns whichever they are, and be it none.

    Raises:
        RefusalError: a filter names what no entry has.
    """
    _check_named(entries, listing)
    columns = list(dict.fromkeys(name for entry in entries for name in row_of(entry)))
    rows = [row_of(entry) for entry in entries if listing.is_meant(entry)]
    sheet_text = table([{name: row.get(name) for name in columns} for row in rows], columns)
    return Response(sheet_text, media_type="text/csv")


def model_row(entry: ModelEntry) -> Mapping[str, Any]:
    """Return a model on one line."""
    return {
        "id": entry.id,
        "name": entry.name,
        "hf_id": entry.hf_id,
        "publisher": entry.publisher,
        "num_parameters": entry.num_parameters,
        "weight_formats": " ".join(dict.fromkeys(one.weight_format for one in entry.checkpoints)),
        "aliases": " ".join(entry.aliases),
        "source": entry.source.url,
        "checked_on": entry.source.checked_on,
    }


def gpu_row(entry: GpuEntry) -> Mapping[str, Any]:
    """Return a GPU on one line, with the value of every figure."""
    plain = entry.model_dump(mode="json", exclude={"figures", "aliases"})
    return plain | {name: figure.value for name, figure in sorted(entry.figures.items())}


def offer_row(entry: OfferEntry) -> Mapping[str, Any]:
    """Return an offer on one line."""
    plain = entry.model_dump(mode="json", exclude={"source"})
    return plain | {"source": entry.source.url, "checked_on": entry.source.checked_on}
