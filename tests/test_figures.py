"""Files and functions stay small; the figures are printed beside those of the house before."""

import ast

import pytest

from benchmarks.figures import BEFORE, Figures, bodies_of, measured, percentile


@pytest.fixture(scope="module")
def figures() -> Figures:
    return measured()


def test_files_are_short(figures: Figures) -> None:
    lines = [count for count, _ in figures.files]

    assert percentile(lines, 50) <= 110
    assert [name for count, name in figures.files if count > 300] == []


def test_bodies_are_short(figures: Figures) -> None:
    assert percentile([count for count, _ in figures.bodies], 95) <= 25
    assert [name for count, name in figures.bodies if count > 50] == []


def test_every_figure_stands_beside_the_one_before(figures: Figures) -> None:
    assert figures.named().keys() == BEFORE.keys()
    for name, value in figures.named().items():
        assert any(line.split() == [*name.split(), BEFORE[name], value] for line in figures.text().splitlines()), name


def test_a_body_is_what_follows_the_docstring() -> None:
    module = ast.parse(
        'def rule():\n    """Say.\n\n    More.\n    """\n    a = 1\n\n    return a\n\ndef words():\n    """Say."""\n'
    )

    assert list(bodies_of(module)) == [("rule", 3), ("words", 0)]
