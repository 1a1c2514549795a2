"""Imports from a hub: a few at once, in a lane of their own, however slow the hub is."""

from collections.abc import Sequence
from datetime import date
from typing import Final

from service.api.lanes import FullError, Lane
from service.api.problems import ProblemError
from service.catalog.entries import ModelEntry
from service.hub.client import Hub
from service.hub.errors import HubError
from service.hub.fetch import NOT_IN_TIME, Fetcher
from service.hub.imports import ImportedModel, imported_model
from service.settings import Settings

MOST_AT_ONCE: Final = 4
GRACE_S: Final = 5.0  # for reading what was fetched
RETRY: Final = {"Retry-After": "10"}


class Importer:
    """Turns what a hub publishes into entries of the catalog."""

    def __init__(self, settings: Settings) -> None:
        """Keep where to ask, and for how long."""
        self._settings = settings
        patience_s = settings.hub_deadline_seconds + GRACE_S
        self.lane = Lane("import", width=MOST_AT_ONCE, waiting=0, patience_s=patience_s)

    async def imported(
        self, hf_id: str, known: Sequence[ModelEntry], wanted_id: str | None, today: date
    ) -> ImportedModel:
        """Return a model as it would be kept.

        Raises:
            EngineError: its config lacks a field, or names a structure without a rule.
            ConflictError: the id belongs to another model.
            HubError: it was not to be had.
            ProblemError: as many imports run already as may.
        """

        def fetched() -> ImportedModel:
            asked = self._settings
            fetcher = Fetcher(asked.hub_url, asked.allowed_hosts(), asked.hub_timeout_seconds)
            published = Hub(fetcher, asked.hub_deadline_seconds).published(hf_id)
            return imported_model(published, known, wanted_id, today)

        try:
            return await self.lane.run(fetched)
        except FullError as error:
            detail = f"{MOST_AT_ONCE} imports run already; nothing was written"
            raise ProblemError(503, "busy", detail, headers=RETRY) from error
        except TimeoutError as error:
            raise HubError(NOT_IN_TIME) from error
