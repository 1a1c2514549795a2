"""The command that holds a log against the prediction, and may keep what it says."""

import sys
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Sequence
from dataclasses import replace
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
    """Hold a start-up log or a benchmark against the prediction: sizer check LOG --gpu h100, or ... | sizer check -.

    What the text does not say is stated as sizer capacity takes it: --model, --gpu, --tensor-parallel-size.
    """
    path, stated = _parted([path, *context.args])
    try:
        text = text_of(sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes())
    except OSError:
        refuse(f"{path}: not a readable file")
    if context.obj is not None:
        context.obj.check(text, stated, is_stored=is_stored)  # a service elsewhere
        return
    settings = Settings()
    keeper = CatalogKeeper(make_engine(settings.database_url), None, settings.snapshot_poll_seconds)
    try:
        corrections = StoredMeasurements()
        desk = Desk(KernelTimers(KernelTables(TableFiles(settings.tables_path), InProcess())), corrections=corrections)
        checked = check(text, stated, keeper.snapshot, desk)
        if is_stored:
            checked = replace(checked, stored=store(checked, keeper, desk, corrections))
    except EngineError as error:
        refuse(said(Fault(error.field, error.detail, error.accepted)))
    except RefusalError as error:
        refuse(*map(said, error.faults))
    typer.echo("\n".join(lines_of(checked)))


def text_of(content: bytes) -> str:
    """Return a log as it was written: PowerShell's `>` writes two bytes a character, and a mark before them.

    >>> text_of("# GPU blocks: 27824".encode("utf-16")), text_of(b"# GPU blocks: 27824")
    ('# GPU blocks: 27824', '# GPU blocks: 27824')
    """
    is_wide = content.startswith((BOM_UTF16_LE, BOM_UTF16_BE))
    return content.decode("utf-16" if is_wide else "utf-8", errors="replace")


def _parted(words: Sequence[str]) -> tuple[str, dict[str, str]]:
    """Return the log, wherever it stands, and `--field value` and `--field=value` as fields."""
    logs: list[str] = []
    pairs: dict[str, str] = {}
    rest = iter(words)
    for word in rest:
        if not word.startswith("--"):
            logs.append(word)
            continue
        name, _, value = word.partition("=")
        value = value or next(rest, "")
        if not value:
            refuse(f"{word!r}: write --field value")
        pairs[name.removeprefix("--").replace("-", "_")] = value
    if not logs:
        refuse("no LOG: a file, or - for the standard input")
    if len(logs) > 1:
        refuse(*(f"{word!r}: write --field value" for word in logs[1:]))
    return logs[0], pairs
