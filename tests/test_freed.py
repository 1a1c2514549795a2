"""Memory that was freed between what is still in use goes back to the system."""

import sys
from pathlib import Path

import pytest

from service.freed import give_back_freed

MEGABYTE = 1 << 20


def resident_bytes() -> int:
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) << 10


@pytest.mark.skipif(sys.platform != "linux", reason="only glibc keeps what was freed")
def test_what_was_freed_between_pieces_in_use_goes_back() -> None:
    pieces = [bytes(8_000) for _ in range(12_000)]  # 96 MB, each a piece of its own of the C library's
    in_use = pieces[::600]
    pieces.clear()
    before = resident_bytes()
    give_back_freed()

    assert resident_bytes() < before - 40 * MEGABYTE
    assert len(in_use) == 20
