"""What an offer must be to be found, by field."""

from datetime import date

import pytest

from service.catalog.errors import UnusableOfferError
from service.catalog.offer_rules import check_day, check_purchase


def test_what_questions_name_passes() -> None:
    check_purchase("on-demand")
    check_purchase("reserved", 12)
    check_day(date(2026, 11, 6), date(2026, 11, 5))


@pytest.mark.parametrize(
    ("purchase", "months", "told"),
    [
        ("ondemand", None, "purchase: 'ondemand' is none; accepted: on-demand, reserved, spot"),
        (
            "reserved",
            None,
            "commitment_months: a reserved price binds for some; accepted: for how many months it binds",
        ),
        ("spot", 1, "commitment_months: spot binds for none; accepted: purchase reserved, or none of them"),
    ],
)
def test_what_no_question_names_does_not(purchase: str, months: int | None, told: str) -> None:
    with pytest.raises(UnusableOfferError) as refused:
        check_purchase(purchase, months)

    assert str(refused.value) == told


def test_a_day_to_come_does_not() -> None:
    with pytest.raises(UnusableOfferError, match=r"as_of: 2026-11-07 is yet to come; accepted: a day up to 2026-11-05"):
        check_day(date(2026, 11, 7), date(2026, 11, 5))
