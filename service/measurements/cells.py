"""Lines of printed tables as cells: drawn with lines or bars, or divided by commas, semicolons or tabs.

Spreadsheets of countries that write a decimal comma divide by semicolons.
Source: https://support.microsoft.com/office/c250e3f7-2ac6-4bc7-8eb3-cb56e0c6cbb1 ("list separator").
"""

import csv
import re
from typing import Final

from service.measurements.patterns import MOST_CHARACTERS, number

DRAWN: Final = re.compile(r"[│┃|]")
VALUE: Final = re.compile(r"-?\d[\d,]{0,18}(?:\.\d{1,9})?%?")
DIVIDERS: Final = ("\t", ";")
COMMA: Final = re.compile(r"(-?\d[\d.]{0,22}),(\d{1,9})")
POINT: Final = re.compile(r"-?\d[\d,]{0,22}\.(?!\d{3}$)\d{1,9}")
MOST_CELLS: Final = 200


def cells_of(line: str) -> list[str]:
    r"""Return the cells of a line of a table; the whole line where it is of none.

    >>> cells_of("│ TTFT (ms) │ 16.26 │"), cells_of('"Request Latency (ms)","1,799.53",2.00')
    (['TTFT (ms)', '16.26'], ['Request Latency (ms)', '1,799.53', '2.00'])
    >>> cells_of("TTFT (ms);16,26;1.799,53"), cells_of("TTFT (ms)\t16.26")
    (['TTFT (ms)', '16.26', '1799.53'], ['TTFT (ms)', '16.26'])
    """
    line = line[:MOST_CHARACTERS].strip()
    if DRAWN.search(line):
        return [cell.strip() for cell in DRAWN.split(line.strip("│┃|"))][:MOST_CELLS]
    divider = next((mark for mark in DIVIDERS if mark in line), ",")
    cells = [cell.strip() for cell in next(csv.reader([line], delimiter=divider), [""])][:MOST_CELLS]
    is_comma = divider == ";" and not any(POINT.fullmatch(cell) for cell in cells)
    return [_with_point(cell) for cell in cells] if is_comma else cells


def _with_point(cell: str) -> str:
    """Return a number with a decimal comma as one with a point."""
    said = COMMA.fullmatch(cell)
    return f"{said[1].replace('.', '')}.{said[2]}" if said else cell


def value_of(cell: str) -> float | None:
    """Return the number in a cell; None where there is none.

    >>> value_of("1,799.53"), value_of("100.0%"), value_of("N/A")
    (1799.53, 100.0, None)
    """
    return number(cell.removesuffix("%")) if VALUE.fullmatch(cell) else None
