"""A price list is taken whole or not at all, and says what it changes."""

from pathlib import Path

import pytest
from sqlalchemy import Engine
from typer.testing import CliRunner

from service.catalog.database import make_engine, migrate, reading, writing
from service.catalog.offer_import import differences, take_offers
from service.catalog.reading import read_catalog
from service.cli import app
from tests.catalog.samples import fill, offer

HEAD = "provider,instance_type,region,gpu,gpu_count,usd_per_hour,as_of,source\n"
GOOD = "aws,p99.48xlarge,us-east-1,made-up-100gb,8,9.5,2026-11-03,https://example.com\n"
BAD = "aws,p98,us-east-1,no-such-gpu,8,9.5,2026-11-03,https://example.com\n"


def test_differences_are_told_apart() -> None:
    present = {each.id: each for each in (offer(), offer(id="other"))}
    found = differences(present, [offer(usd_per_hour=9.0), offer(id="other"), offer(id="third")])

    assert ([each.id for each in found.added], found.unchanged) == (["third"], 1)
    assert found.lines() == (
        "+ third: 10 USD/h as of 2026-11-01",
        "~ made-up-offer: 10 -> 9 USD/h, as of 2026-11-01 -> 2026-11-01",
        "1 added, 1 changed, 1 unchanged",
    )


def test_what_changes_nothing_keeps_the_revision(database: Engine) -> None:
    fill(database)
    with writing(database) as session, session.begin():
        take_offers(session, [offer()])
    with reading(database) as session:
        before = read_catalog(session).entries
    with writing(database) as session, session.begin():
        take_offers(session, [offer(usd_per_hour=9.0)])
    with reading(database) as session:
        after = read_catalog(session).entries

    assert (before.revision, after.revision) == (1, 2)
    assert {each.id: each.usd_per_hour for each in after.offers} == {"made-up-offer": 9.0, "other-offer": 10.0}


@pytest.mark.parametrize(
    ("lines", "options", "code", "price"),
    [
        (GOOD, [], 0, 9.5),
        (GOOD, ["--dry-run"], 0, 10.0),
        (GOOD + BAD, [], 2, 10.0),
    ],
    ids=["taken", "looked at", "one line at fault"],
)
def test_the_command_takes_all_or_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: str, options: list[str], code: int, price: float
) -> None:
    url = f"sqlite:///{tmp_path}/offers.sqlite3"
    monkeypatch.setenv("SIZER_DATABASE_URL", url)
    monkeypatch.setenv("SIZER_SNAPSHOT_PATH", str(tmp_path / "snapshot.json"))
    engine = make_engine(url)
    migrate(engine)
    fill(engine)
    file = tmp_path / "prices.csv"
    file.write_text(HEAD + lines, encoding="utf-8")

    done = CliRunner().invoke(app, ["offers", "import", str(file), *options])

    assert done.exit_code == code, done.output
    assert ("~ made-up-offer: 10 -> 9.5 USD/h" in done.output) == (code == 0)
    with reading(engine) as session:
        prices = {each.id: each.usd_per_hour for each in read_catalog(session).entries.offers}
    assert prices == {"made-up-offer": price, "other-offer": 10.0}
