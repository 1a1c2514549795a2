"""Everything in the catalog at one revision, as it is read from the database and kept on disk."""

from typing import Annotated, Literal

from pydantic import Field

from service.catalog.entries import Entry, GpuEntry, ModelEntry, OfferEntry
from service.catalog.measurement_rows import MeasurementEntry


class TakenOut(Entry):
    """A GPU or model that somebody deleted, and what it was called: it is nothing else that has the words."""

    number: int  # of the change
    kind: Literal["gpu", "model"]
    id: str
    names: tuple[str, ...]


class CatalogEntries(Entry):
    """Everything in the catalog at one revision, in the order of ids."""

    revision: Annotated[int, Field(ge=0)]
    models: tuple[ModelEntry, ...]
    gpus: tuple[GpuEntry, ...]
    offers: tuple[OfferEntry, ...]
    measurements: tuple[MeasurementEntry, ...] = ()
    taken_out: tuple[TakenOut, ...] = ()
