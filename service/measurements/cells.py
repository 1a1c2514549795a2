"""Lines of printed tables as cells: drawn with lines or bars, or divided by commas."""

import csv
import re
from typing import Final

from service.measurements.patterns import MOST_CHARACTERS, number

DRAWN: Final = re.compile(r"[│┃|]")
VALUE: Final = re.compile(r"-?\d[\d,]{0,18}(?:\.\d{1,9})?%?")
MOST_CELLS: Final = 200


def cells_of(line: str) -> list[str]:
    """Return the cells of a line of a table; the whole line where it is of none.

    >>> cells_of("│ TTFT (ms) │ 16.26 │"), cells_of('"Request Latency (ms)","1,799.53",2.00')
    (['TTFT (ms)', '16.26'], ['Request Latency (ms)', '1,799.53', '2.00'])
    """
    line = line[:MOST_CHARACTERS].strip()
    if DRAWN.search(line):
        return [cell.strip() for cell in DRAWN.split(line.strip("│┃|"))][:MOST_CELLS]
    return [cell.strip() for cell in next(csv.reader([line]), [""])][:MOST_CELLS]


def value_of(cell: str) -> float | None:
    """Return the number in a cell; None where there is none.

    >>> value_of("1,799.53"), value_of("100.0%"), value_of("N/A")
    (1799.53, 100.0, None)
    """
    return number(cell.removesuffix("%")) if VALUE.fullmatch(cell) else None
