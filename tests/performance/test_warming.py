"""What many ask for is built before they do."""

from itertools import islice
from pathlib import Path

from service.catalog.keeper import seeded_snapshot
from service.catalog.snapshot import Snapshot, build_snapshot
from service.performance.kernel_tables import InProcess, KernelTables
from service.performance.stored import TableFiles
from service.performance.warming import build_tables
from service.warm import asked_most


def test_words_of_names_are_found_before_step_times_are_built() -> None:
    snapshot = build_snapshot(seeded_snapshot().entries)
    found = len(snapshot.called_models.derived)

    next(asked_most(snapshot))

    assert len(snapshot.called_models.derived) == found + 1


def test_what_is_asked_most_is_built_once(catalog: Snapshot, tmp_path: Path) -> None:
    wanted = tuple(islice(asked_most(catalog), 2))

    built = [build_tables(KernelTables(TableFiles(tmp_path), InProcess()), wanted) for _ in range(2)]

    assert [key.model.id for key in wanted] == ["llama-3.1-8b-instruct"] * 2
    assert built == [2, 0]
