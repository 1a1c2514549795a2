"""The command that holds a log against the prediction, and may keep what it says."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import Annotated

import typer

from service.catalog.database import make_engine
from service.catalog.keeper import CatalogKeeper
from service.cli_words import commands, refuse, said
from service.engine.errors import EngineError
from service.measurements.checking import check, lines_of
from service.measurements.corrections import StoredMeasurements
from service.measurements.stored_list import measurements, store
from service.performance.kernel_tables import InProcess, KernelTables
from service.performance.stored import TableFiles
from service.performance.timers import KernelTimers
from service.questions.asked import Desk
from service.questions.refusals import Fault, RefusalError
from service.settings import Settings

app = commands()
app.add_typer(measurements, name="measurements")


@app.command("check", context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def check_command(
    context: typer.Context,
    path: Annotated[str, typer.Argument(metavar="LOG", help="a log or a benchmark's JSON; - reads the standard input")],
    *,
    is_stored: Annotated[bool, typer.Option("--store", help="answers rest on it from now on")] = False,
) -> None:
    """Hold a start-up log or a benchmark against the prediction: sizer check LOG --gpu h100, or ... | sizer check -."""
    try:
        text = sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        refuse(f"{path}: not a readable file")
    settings = Settings()
    keeper = CatalogKeeper(make_engine(settings.database_url), None, settings.snapshot_poll_seconds)
    try:
        corrections = StoredMeasurements()
        desk = Desk(KernelTimers(KernelTables(TableFiles(settings.tables_path), InProcess())), corrections=corrections)
        checked = check(text, _pairs(context.args), keeper.snapshot, desk)
        if is_stored:
            checked = replace(checked, stored=store(checked, keeper, desk, corrections))
    except EngineError as error:
        refuse(said(Fault(error.field, error.detail, error.accepted)))
    except RefusalError as error:
        refuse(*map(said, error.faults))
    typer.echo("\n".join(lines_of(checked)))


def _pairs(words: Sequence[str]) -> dict[str, str]:
    """Return `--field value` as fields."""
    pairs: dict[str, str] = {}
    for word, value in zip_longest(words[::2], words[1::2]):
        if not word.startswith("--") or value is None:
            refuse(f"{word!r}: write --field value")
        pairs[word.removeprefix("--").replace("-", "_")] = value
    return pairs
