"""What is on disk is the last good catalog, or nothing."""

import json
import os
from pathlib import Path
from typing import Final

import pytest

from service.catalog.disk import KeptCatalog, SnapshotFile
from service.catalog.snapshot import Snapshot
from tests.catalog.samples import of_another_release

MARKS: Final = {"gpu": {"h100-sxm-80gb": "what its row was"}}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "kept" / "snapshot.json"


def test_what_was_written_is_read_with_the_time_it_was_current(catalog: Snapshot, path: Path) -> None:
    SnapshotFile(path).write(catalog.entries, MARKS)
    os.utime(path, (1_000_000, 1_000_000))

    assert SnapshotFile(path).read() == KeptCatalog(
        entries=catalog.entries, marks=MARKS, confirmed_at=1_000_000, is_of_this_release=True
    )

    SnapshotFile(path).touch()
    read = SnapshotFile(path).read()
    assert read is not None
    assert read.confirmed_at > 1_000_000


def test_what_another_release_wrote_is_told_apart(catalog: Snapshot, path: Path) -> None:
    SnapshotFile(path).write(catalog.entries, MARKS)
    of_another_release(path)

    read = SnapshotFile(path).read()

    assert read is not None
    assert not read.is_of_this_release


@pytest.mark.parametrize("position", [0, 40, 200, -1])
def test_a_file_in_which_a_byte_is_wrong_is_not_used(catalog: Snapshot, path: Path, position: int) -> None:
    SnapshotFile(path).write(catalog.entries, MARKS)
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(content)

    assert SnapshotFile(path).read() is None


@pytest.mark.parametrize("content", [b"", b"{}", b"[]\n[]", b"\xff\xfe", b'{"revision": 1, "models": []}'])
def test_what_is_no_snapshot_is_not_used(path: Path, content: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(content)

    assert SnapshotFile(path).read() is None


def test_another_version_of_the_format_is_not_used(catalog: Snapshot, path: Path) -> None:
    SnapshotFile(path).write(catalog.entries, MARKS)
    head, _, body = path.read_bytes().partition(b"\n")
    path.write_bytes(json.dumps({**json.loads(head), "schema": 1}).encode() + b"\n" + body)

    assert SnapshotFile(path).read() is None


def test_a_disk_that_takes_nothing_changes_nothing(
    catalog: Snapshot, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    SnapshotFile(path).write(catalog.entries, MARKS)
    before = path.read_bytes()
    path.parent.rename(path.parent.with_name("elsewhere"))
    path.parent.write_text("a file where the folder was")

    file = SnapshotFile(path)
    for _ in range(3):
        file.write(catalog.entries, MARKS)

    assert caplog.text.count("not kept on disk") == 1  # it is tried every few seconds
    assert (path.parent.with_name("elsewhere") / path.name).read_bytes() == before


def test_nothing_is_left_beside_the_file(catalog: Snapshot, path: Path) -> None:
    for _ in range(3):
        SnapshotFile(path).write(catalog.entries, MARKS)

    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_without_a_path_nothing_is_kept(catalog: Snapshot) -> None:
    SnapshotFile(None).write(catalog.entries, MARKS)
    SnapshotFile(None).touch()

    assert SnapshotFile(None).read() is None
