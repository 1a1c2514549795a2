"""A price list is taken whole or not at all, and says what it changes."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from sqlalchemy import Engine, text
from typer.testing import CliRunner

from service.catalog.changes import read_changes
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
    with reading(database) as session:
        [change] = read_changes(session, None, None, 10, None)
    assert (change.revision, change.entry_id, change.changed_by) == (2, "made-up-offer", "price list")
    assert [None if told is None else told["usd_per_hour"] for told in (change.before, change.after)] == [10.0, 9.0]


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


def is_in_the_middle_of_writing(engine: Engine) -> bool:
    """Return whether somebody else has written rows that are not committed."""
    if engine.dialect.name == "sqlite":
        return Path(f"{engine.url.database}-journal").exists()
    at_work = "SELECT count(*) FROM pg_locks WHERE mode = 'RowExclusiveLock' AND pid <> pg_backend_pid()"
    with engine.connect() as connection:
        return bool(connection.execute(text(at_work)).scalar_one())


def test_a_process_killed_in_the_middle_of_an_import_leaves_all_of_it_or_nothing(
    database: Engine, tmp_path: Path
) -> None:
    fill(database)
    file, num_lines = tmp_path / "prices.csv", 1_500
    lines = (GOOD.replace("p99.48xlarge", f"p{number}") for number in range(num_lines))
    file.write_text(HEAD + "".join(lines), encoding="utf-8")
    environment = {
        **os.environ,
        "SIZER_DATABASE_URL": database.url.render_as_string(hide_password=False),
        "SIZER_SNAPSHOT_PATH": str(tmp_path / "snapshot.json"),
    }
    command = [sys.executable, "-c", "from service.cli import main; main()", "offers", "import", str(file)]

    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL) as importing:
        while not is_in_the_middle_of_writing(database):
            assert importing.poll() is None
            time.sleep(0.002)
        time.sleep(0.03)
        importing.kill()

    with reading(database) as session:
        stored = read_catalog(session)
    assert (len(stored.entries.offers), stored.entries.revision) in ((2, 1), (2 + num_lines, 2))
    with writing(database) as session, session.begin():  # nothing holds a lock
        take_offers(session, [offer(usd_per_hour=9.0)])
