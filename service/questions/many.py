"""Many questions of one document, read alike over HTTP and on the command line: JSON, lines of it, or CSV."""

import csv
import io
import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Mapping, Sequence
from itertools import islice
from json import JSONDecodeError
from typing import Any, Final

from service.questions.misread import UNNAMED_COLUMN
from service.questions.reading import read_json
from service.questions.refusals import MOST_NAME_SHOWN, Fault, RefusalError, stated_twice

MOST_QUESTIONS: Final = 1_000
MOST_LINES: Final = 5 * MOST_QUESTIONS  # of a sheet, blank ones too
UTF_16: Final = (BOM_UTF16_LE, BOM_UTF16_BE)  # what Excel saves as Unicode text begins so
SEPARATOR: Final = re.compile(r"sep=([,;\t])\r?\n")
TOO_LONG: Final = "field larger than field limit"  # as the csv module says it
ACCEPTED: Final = f'{{"questions": [...]}} with 1 to {MOST_QUESTIONS} questions, or CSV under the names of fields'


class UnreadableError(ValueError):
    """A document that is not in the format it is said to be in."""

    def __init__(self, detail: str, accepted: str = ACCEPTED) -> None:
        """Keep what it is not, and what would be read."""
        super().__init__(detail)
        self.detail = detail
        self.accepted = accepted


def of_json(body: bytes, *, may_be_list: bool = False) -> Sequence[Any]:
    """Return the questions of a JSON document, each as it stands there.

    Raises:
        UnreadableError: it is not JSON.
        RefusalError: it holds none, or too many, or something beside them.
    """
    try:
        document, twice = read_json(body)
    except JSONDecodeError as error:
        raise UnreadableError(f"not valid JSON from character {error.pos + 1} on") from error
    except (ValueError, RecursionError) as error:
        raise UnreadableError("not valid JSON") from error
    if twice:
        raise stated_twice(twice)
    if may_be_list and isinstance(document, list):
        return _counted(document)
    if not isinstance(document, dict) or "questions" not in document:
        raise _refused("no list of questions")
    if (beside := next((name for name in document if name != "questions"), None)) is not None:
        detail = "stands beside the questions, and nothing is shared by all of them"
        raise RefusalError("invalid-request", detail, Fault(beside[:MOST_NAME_SHOWN], detail, "inside each question"))
    if not isinstance(document["questions"], list):
        raise _refused("questions is no list")
    return _counted(document["questions"])


def of_lines(body: bytes) -> Sequence[Any]:
    """Return the questions of JSON that is delimited by newlines, one on each line; blank lines are none.

    Raises:
        UnreadableError: a line is not JSON.
        RefusalError: there are none, or too many, or one states a name twice.
    """
    lines = [(number, line) for number, line in enumerate(body.splitlines(), 1) if line.strip()]
    if len(lines) > MOST_QUESTIONS:
        raise _refused(f"{len(lines)} questions")
    return _counted([_of_line(number, line) for number, line in lines])


def _of_line(number: int, line: bytes) -> Any:
    try:
        fields, twice = read_json(line)
    except (ValueError, RecursionError) as error:
        raise UnreadableError(f"not valid JSON on line {number}", "one whole question on each line") from error
    if twice:
        raise stated_twice(twice)
    return fields


def of_sheet(body: bytes) -> Sequence[Any]:
    """Return rows as fields; an empty cell states nothing, nor does a column that is empty to its end.

    Raises:
        UnreadableError: it is not CSV.
        RefusalError: it holds no question, or too many, or not under names.
    """
    try:
        rows = _rows(body.decode("utf-16" if body.startswith(UTF_16) else "utf-8-sig"))
    except UnicodeDecodeError as error:
        raise UnreadableError("not in UTF-8", "UTF-8; sheets save it as CSV UTF-8") from error
    except csv.Error as error:
        if TOO_LONG in str(error):
            most = csv.field_size_limit()
            raise UnreadableError(f"a table with a cell of more than {most} characters", "shorter cells") from error
        detail = "not CSV: a quote is not closed, or stands amid a cell"
        raise UnreadableError(detail, 'a quote within a quoted cell is written twice: "say ""8"""') from error
    if len(rows) > MOST_LINES:
        raise _refused(f"more than {MOST_LINES} lines")
    # Sheets have headings: "Input Tokens".
    names = ["_".join(name.lower().split()) for name in rows[0]] if rows else []
    while names and not names[-1]:
        names.pop()
    if not names or len(set(names)) < len(names) or "" in names:
        raise _refused("the first line names no fields, or one of them twice")
    lines = [row for row in rows[1:] if any(cell.strip() for cell in row)]
    return _counted([_fields(names, row) for row in lines])


def _rows(text: str) -> list[list[str]]:
    """Return rows of cells, separated as the first line is: sheets write semicolons where commas are decimal.

    Excel names the separator in a line of its own.
    """
    named = SEPARATOR.match(text)
    first = text.partition("\n")[0]
    separator = named[1] if named else next((each for each in ",;\t" if each in first), ",")
    lines = io.StringIO(text[named.end() :] if named else text, newline="")
    return list(islice(csv.reader(lines, delimiter=separator, strict=True), MOST_LINES + 1))


def _fields(names: Sequence[str], row: Sequence[str]) -> Mapping[str, str]:
    fields = {name: cell.strip() for name, cell in zip(names, row, strict=False) if cell.strip()}
    beyond = [cell for cell in row[len(names) :] if cell.strip()]
    # A cell under no name is an unknown field.
    return {**fields, **({f"{UNNAMED_COLUMN}{len(names) + 1}": beyond[0]} if beyond else {})}


def _counted(questions: Sequence[Any]) -> Sequence[Any]:
    if not 1 <= len(questions) <= MOST_QUESTIONS:
        raise _refused(f"{len(questions)} questions")
    return questions


def _refused(detail: str) -> RefusalError:
    return RefusalError("invalid-request", detail, Fault("questions", detail, ACCEPTED))
