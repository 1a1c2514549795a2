"""What a question is refused with: which field, what is wrong, what would be accepted. It knows no HTTP.

The engine's own refusals (`service.engine.errors`) pass through questions as they are.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Final, Literal

from service.catalog.errors import NotInCatalogError

MOST_FAULTS: Final = 20
MOST_NAME_SHOWN: Final = 100
RefusalKind = Literal["invalid-request", "not-in-catalog", "other-revision", "no-such-field", "infeasible"]


@dataclass(frozen=True, slots=True)
class Fault:
    """One field at fault."""

    field: str
    detail: str
    accepted: str | None


class RefusalError(Exception):
    """A question that is not answered, and why."""

    def __init__(self, kind: RefusalKind, detail: str, *faults: Fault) -> None:
        """Keep what a caller is told."""
        super().__init__(detail)
        self.kind = kind
        self.detail = detail
        self.faults = faults


def not_in_catalog(error: NotInCatalogError, field: str) -> RefusalError:
    """Return the refusal of a name that the catalog does not have, for the field that was asked."""
    listed = "/measurements" if error.kind == "measurement" else f"/catalog/{error.kind}s"
    close = ", ".join(error.suggestions)
    hint = f"did you mean {close}?" if close else f"{listed} lists what there is"
    fault = Fault(field, str(error), close or f"an id or alias from {listed}")
    return RefusalError("not-in-catalog", f"{error}; {hint}", fault)


def stated_twice(names: Iterable[str]) -> RefusalError:
    """Return the refusal of fields of which one statement would be ignored."""
    detail = "stated more than once"
    faults = (Fault(name[:MOST_NAME_SHOWN], detail, "one value") for name in islice(names, MOST_FAULTS))
    return RefusalError("invalid-request", detail, *faults)
