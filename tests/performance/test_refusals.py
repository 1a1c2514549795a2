"""A library's exception never reaches a caller."""

import doctest

import pytest

from service.performance import refusals
from service.performance.refusals import GENERAL, told


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("PerfDatabaseError: GEMM perf data missing for quant_mode fp8", "weight format"),
        ("KeyError: 'moe_quant_mode'", "experts"),
        ("RuntimeError: perf database error: MLA table is empty", "attention"),
        ("OSError: disk on fire", GENERAL),
    ],
)
def test_what_the_library_says_is_told_in_own_words(said: str, words: str) -> None:
    assert words in told(said)
    assert "Error" not in told(said)


def test_examples_hold() -> None:
    assert doctest.testmod(refusals).failed == 0
