"""Everything in the catalog at one revision, as it is read from the database and kept on disk."""

from typing import Annotated

from pydantic import Field

from service.catalog.entries import Entry, GpuEntry, ModelEntry, OfferEntry
from service.catalog.measurement_rows import MeasurementEntry


class CatalogEntries(Entry):
    """Everything in the catalog at one revision, in the order of ids."""

    revision: Annotated[int, Field(ge=0)]
    models: tuple[ModelEntry, ...]
    gpus: tuple[GpuEntry, ...]
    offers: tuple[OfferEntry, ...]
    measurements: tuple[MeasurementEntry, ...] = ()
