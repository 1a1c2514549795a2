"""Rows of the engine-rules table as written: read in any order, completed, and refused by name if unusable."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, TypeVar, cast

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from service.engine.engines.registry import ENGINES
from service.engine.engines.rules import EngineRules
from service.engine.engines.versions import Complete, Row, VersionTable, VersionTableError, completed, unstated_of
from service.engine.inputs import EngineName

Values = Mapping[str, Any]
Tables = Mapping[EngineName, VersionTable[EngineRules]]
Checked = TypeVar("Checked", bound=BaseModel)


class Entry(BaseModel):
    """A block of the table; a name that it does not know is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Head(Entry):
    """What a row says of itself; everything else it states is a difference from the version before."""

    engine: EngineName
    first_version: Any  # `engines/versions.py` reads it
    rules_version: Annotated[str, Field(min_length=1)]
    unstated: bool = False


def tables_of(entries: Iterable[Values], rules_of: Callable[[EngineName, Complete[Values]], EngineRules]) -> Tables:
    """Return the versions of every engine from rows in any order.

    Args:
        entries: the rows as written.
        rules_of: what a completed row of an engine says.

    Raises:
        VersionTableError: a row cannot be used as it stands.
    """
    rows: dict[EngineName, list[tuple[Head, Row]]] = {engine: [] for engine in ENGINES}
    for number, entry in enumerate(entries, start=1):
        head, row = _read(entry, number)
        rows[head.engine].append((head, row))
    return {engine: _table(engine, pairs, rules_of) for engine, pairs in rows.items()}


def checked(model: type[Checked], values: Values, name: str) -> Checked:
    """Return validated values; what a library says of a fault is said of the row.

    Raises:
        VersionTableError: a value is missing, unknown or of another kind.
    """
    try:
        return model.model_validate(values)
    except ValidationError as error:
        faults = "; ".join(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors())
        raise VersionTableError(f"{name}: {faults}") from error


class Listed(dict[str, Checked]):
    """Entries that rows refer to by name; a name that is not listed is refused."""

    def __init__(self, entries: Mapping[str, Checked], *, what: str, row: str) -> None:
        """Keep the entries, what they are, and the row that refers to them."""
        super().__init__(entries)
        self.what, self.row = what, row

    def __missing__(self, name: str) -> Checked:
        """Raise VersionTableError with the row's name."""
        raise VersionTableError(f"{self.row}: no {self.what} is named {name}")


class UniqueKeys(yaml.CSafeLoader):
    """A YAML loader that refuses a block which states one name twice, of which the first would be ignored."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002 - as the base's
        """Return a block as a dictionary.

        Raises:
            VersionTableError: a name stands twice.
        """
        names = [key.value for key, _ in node.value]
        for name in names:
            if names.count(name) > 1:
                line = node.start_mark.line + 1
                raise VersionTableError(f"the block on line {line} states {name} twice")
        return super().construct_mapping(node, deep=deep)


def _read(entry: Values, number: int) -> tuple[Head, Row]:
    """Return one row as written, its head apart."""
    own = {name: value for name, value in entry.items() if name in Head.model_fields}
    head = checked(Head, own, str(entry.get("rules_version") or f"row {number}"))
    row = Row(
        name=head.rules_version,
        since=cast("str", head.first_version),
        differences={name: value for name, value in entry.items() if name not in own},
        is_unstated=head.unstated,
    )
    return head, row


def _table(
    engine: EngineName,
    pairs: Sequence[tuple[Head, Row]],
    rules_of: Callable[[EngineName, Complete[Values]], EngineRules],
) -> VersionTable[EngineRules]:
    """Return the versions of one engine."""
    rows = [row for _, row in pairs]
    complete = tuple(Complete(name=row.name, since=row.since, value=rules_of(engine, row)) for row in completed(rows))
    by_name = {row.name: row.value for row in complete}
    unstated = unstated_of(engine, rows)
    return VersionTable(rows=complete, unstated=replace(by_name[unstated], is_version_stated=False))
