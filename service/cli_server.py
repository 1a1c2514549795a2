"""Questions on the command line, asked of a running service: tables in a terminal, plain text where piped."""

import csv
import io
import json
import sys
from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal, get_args

import httpx2
import typer

from service.cli_words import INFEASIBLE, NOT_ALL_ANSWERED, USAGE_ERROR, commands, refuse, said
from service.client import Asks, Client, RefusedError
from service.questions.many import UnreadableError, of_json, of_lines, of_sheet
from service.questions.outcomes import outcome_rows, sheet_of
from service.questions.refusals import Fault, RefusalError

app = commands()
BESIDE: Final = "asked."
MOST_COLUMNS: Final = 12
ANSWERED: Final = 200
UNAUTHORIZED: Final = 401
STANDARD_INPUT: Final = Path("-")
OF_LINES: Final = frozenset({".ndjson", ".jsonl"})  # names that end so are of files with a question on each line
BatchFormat = Literal["csv", "json"]
ASKS: Final[tuple[Asks, ...]] = get_args(Asks)


@dataclass(frozen=True, slots=True)
class Server:
    """Where a service runs, and who asks it."""

    url: str
    key: str | None = None

    def answer(self, question: Asks, fields: Mapping[str, Any]) -> None:
        """Print the answer to a question: a table in a terminal, unless a format was stated."""
        is_table = sys.stdout.isatty() and not {"format", "field"} & fields.keys()
        with self._asking() as client:
            text = client.text(question, **fields, **({"format": "csv"} if is_table else {}))
        if is_table:
            show_table(text)
        else:
            typer.echo(text, nl=False)

    def check(self, text: str, question: Mapping[str, Any], *, is_stored: bool) -> None:
        """Print what was measured beside the service's prediction."""
        from pydantic import TypeAdapter  # noqa: PLC0415 - of this command alone

        from service.measurements.checking import Checked, lines_of  # noqa: PLC0415 - as above

        with self._asking() as client:
            checked = client.check(text, question, is_stored=is_stored)
        typer.echo("\n".join(lines_of(TypeAdapter(Checked).validate_python(checked))))

    def batch(self, question: Asks, questions: Sequence[Mapping[str, Any]], written: BatchFormat) -> None:
        """Print what became of many questions, as they become known in a terminal's progress."""
        from rich.console import Console  # noqa: PLC0415 - loading it takes a tenth of a second
        from rich.progress import track  # noqa: PLC0415 - as above

        errors = Console(stderr=True)
        with self._asking() as client:
            lines = client.each(question, questions)
            shown = track(lines, question, len(questions), console=errors, disable=not errors.is_terminal)
            outcomes = [(outcome.index, outcome.status, outcome.answer or outcome.problem or {}) for outcome in shown]
        if written == "csv":
            typer.echo(sheet_of([row for outcome in outcomes for row in outcome_rows(*outcome)]), nl=False)
        else:
            typer.echo(json.dumps([{"index": index, "status": status, **told} for index, status, told in outcomes]))
        failed = sum(status != ANSWERED for _, status, _ in outcomes)
        if failed:
            refuse(f"{failed} of {len(outcomes)} questions were not answered", code=NOT_ALL_ANSWERED)

    @contextmanager
    def _asking(self) -> Iterator[Client]:
        """Open a client; what it is refused is told as every question's refusal is."""
        try:
            with Client(self.url, self.key) as client:
                yield client
        except RefusedError as error:
            faults = [
                Fault(fault["field"], fault["detail"], fault["accepted"]) for fault in error.problem.get("errors", ())
            ]
            is_infeasible = str(error.problem.get("type", "")).endswith("/infeasible")
            by_key = "; state one by --key, or SIZER_KEY" if error.status == UNAUTHORIZED else ""
            told = map(said, faults) if faults and not by_key else (f"{self.url}: {error}{by_key}",)
            refuse(*told, code=INFEASIBLE if is_infeasible else USAGE_ERROR)
        except httpx2.UnsupportedProtocol:
            refuse(f"{self.url}: it has to begin with http:// or https://, as in http://{self.url.rpartition('//')[2]}")
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            refuse(f"{self.url}: not reached ({type(error).__name__})")


def show_table(text: str) -> None:
    """Show CSV as a table: one row as names and values, several by their first columns."""
    from rich.console import Console  # noqa: PLC0415 - loading it takes a tenth of a second
    from rich.table import Table  # noqa: PLC0415 - as above
    from rich.text import Text  # noqa: PLC0415 - as above

    rows = [
        {name: value for name, value in row.items() if not name.startswith(BESIDE)}
        for row in csv.DictReader(io.StringIO(text))
    ]
    table = Table(box=None, pad_edge=False, header_style="bold")
    if len(rows) == 1:
        table.add_column("field")
        table.add_column("value", overflow="fold")
        for name, value in rows[0].items():
            if value:
                table.add_row(name, Text(value))
    else:
        names = [name for name in rows[0] if any(row[name] for row in rows)][:MOST_COLUMNS] if rows else []
        for name in names:
            table.add_column(name, overflow="fold")
        for row in rows:
            table.add_row(*(Text(row[name]) for name in names))
    Console().print(table)


def questions_of(path: Path) -> Sequence[Mapping[str, Any]]:
    """Return the questions of a file, read as the service reads a batch: CSV under names, JSON, or lines of it."""
    try:
        body = sys.stdin.buffer.read() if path == STANDARD_INPUT else path.read_bytes()
    except OSError as error:
        refuse(f"{path}: not a readable file of questions ({error.strerror})")
    is_json = body.removeprefix(BOM_UTF8).lstrip().startswith((b"{", b"["))
    try:
        if path.suffix in OF_LINES:
            return of_lines(body)
        return of_json(body, may_be_list=True) if is_json else of_sheet(body)
    except UnreadableError as error:
        refuse(f"{path}: {error.detail}; accepted: {error.accepted}")
    except RefusalError as error:
        refuse(*(f"{path}: {said(fault)}" for fault in error.faults))


@app.command("batch")
def batch_command(
    context: typer.Context,
    question: Annotated[Asks, typer.Argument(help="which question")],
    path: Annotated[
        Path, typer.Argument(metavar="FILE", help="CSV under names of fields, JSON, or .ndjson; - reads standard input")
    ],
    written: Annotated[BatchFormat, typer.Option("--format", help="how the answers are written")] = "csv",
) -> None:
    """Ask a running service up to a thousand questions of a file: sizer --server URL batch size FILE.

    The exit code is 0 where all are answered, 4 where some are not, 2 where none could be asked.
    """
    if context.obj is None:
        refuse("batch needs a running service: sizer --server URL batch ...")
    context.obj.batch(question, questions_of(path), written)
