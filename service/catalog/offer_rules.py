"""What an offer must be so that questions find it, and its price grows old, however it comes into the catalog."""

from datetime import date, timedelta
from typing import Final

from service.catalog.entries import PURCHASES
from service.catalog.errors import UnusableOfferError

MOST_SHOWN: Final = 60


def check_purchase(purchase: str, commitment_months: object = None) -> None:
    """Let pass what questions can ask for.

    Raises:
        UnusableOfferError: no question names this purchase, or it is not said for how long it binds.
    """
    if purchase not in PURCHASES:
        raise UnusableOfferError("purchase", f"{purchase[:MOST_SHOWN]!r} is none", ", ".join(PURCHASES))
    if commitment_months is not None and purchase != "reserved":
        raise UnusableOfferError(
            "commitment_months", f"{purchase} binds for none", "purchase reserved, or none of them"
        )
    if commitment_months is None and purchase == "reserved":
        raise UnusableOfferError("commitment_months", "a reserved price binds for some", "for how many months it binds")


def check_day(as_of: date, today: date, field: str = "as_of") -> None:
    """Let pass a day that has come; somewhere it is tomorrow already.

    Raises:
        UnusableOfferError: a price of a day to come would never be stale.
    """
    if as_of > today + timedelta(days=1):
        raise UnusableOfferError(field, f"{as_of} is yet to come", f"a day up to {today}")
