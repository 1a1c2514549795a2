"""The columns of price lists: own ones, those of gpuhunt, and those of SkyPilot."""

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

Kind = Literal["own", "gpuhunt", "skypilot"]
COLUMNS: Final[Mapping[Kind, frozenset[str]]] = {
    "own": frozenset({"provider", "instance_type", "region", "gpu", "gpu_count", "usd_per_hour", "as_of", "source"}),
    "gpuhunt": frozenset({"instance_name", "location", "price", "gpu_count", "gpu_name", "gpu_memory", "spot"}),
    "skypilot": frozenset({"InstanceType", "AcceleratorName", "AcceleratorCount", "Region", "Price", "SpotPrice"}),
}
BEYOND: Final = "cells beyond the columns"
Row = Mapping[str, str]


def table_of(file: Path) -> tuple[Sequence[str], Sequence[Row]]:
    """Return the columns of a file, and its lines: separated as the first line is, own columns written as in a sheet.

    Sheets write semicolons where commas are decimal, and headings such as `USD per hour`.
    """
    with file.open(encoding="utf-8-sig", newline="") as lines:
        first = lines.readline()
        separator = next((each for each in ",;\t" if each in first), ",")
        stated = next(csv.reader([first], delimiter=separator), [])
        own = ["_".join(name.lower().split()) for name in stated]
        columns = own if kind_of(own) == "own" or kind_of(stated) is None else stated
        return columns, list(csv.DictReader(lines, fieldnames=columns, restkey=BEYOND, delimiter=separator))


def kind_of(columns: Iterable[str]) -> Kind | None:
    """Return which kind of file has these columns; None where it is none."""
    names = frozenset(columns)
    return next((kind for kind, needed in COLUMNS.items() if needed <= names), None)


def without_kind(columns: Iterable[str]) -> str:
    """Return what a file lacks of the kind that it has most columns of; of none of them, what there is."""
    names = frozenset(columns)
    nearest = max(COLUMNS, key=lambda kind: len(COLUMNS[kind] & names) / len(COLUMNS[kind]))
    missing = COLUMNS[nearest] - names
    if len(missing) <= len(COLUMNS[nearest]) / 2:
        kind = "" if nearest == "own" else f" of {nearest}'s"
        return f"missing columns{kind}: {', '.join(sorted(missing))}"
    known = "; ".join(f"{name}: {', '.join(sorted(needed))}" for name, needed in COLUMNS.items())
    return f"unknown columns; accepted: {known}"
