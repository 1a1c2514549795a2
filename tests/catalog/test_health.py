"""How old a catalog may be."""

from service.catalog.health import STALE_SECONDS, Health


def test_a_catalog_that_was_never_the_database_s_has_no_age_and_is_stale() -> None:
    assert Health().age_s(1e9) is None
    assert Health().is_stale(1e9)


def test_five_minutes_after_it_was_confirmed_it_is_stale() -> None:
    health = Health(confirmed_at=1e9)

    assert health.age_s(1e9 + 10) == 10
    assert not health.is_stale(1e9 + STALE_SECONDS)
    assert health.is_stale(1e9 + STALE_SECONDS + 1)


def test_a_clock_set_back_makes_nothing_younger_than_new() -> None:
    assert Health(confirmed_at=1e9).age_s(1e9 - 60) == 0
