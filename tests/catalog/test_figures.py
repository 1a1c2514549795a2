"""Figures that no GPU can have are refused, with the bounds; every real one lies within them."""

from math import inf

import pytest

from service.catalog.figures import BOUNDS, USABLE, check_figures
from service.catalog.seed_files import seed_entries

REAL = {"memory_bytes": 85_520_809_984, "memory_bandwidth_bytes_per_s": 3.35e12}  # H100, by driver and data sheet


def test_the_figures_of_every_gpu_on_sale_lie_well_within_the_bounds() -> None:
    for gpu in seed_entries()[1]:
        for name, figure in gpu.figures.items():
            low, high, _ = BOUNDS[name]
            assert 2 * low < figure.value < high / 2, (gpu.id, name)


@pytest.mark.parametrize("name", BOUNDS)
@pytest.mark.parametrize("value", [1e-300, 0.0, -1.0, 1.0e-3, 1e300, float("inf"), float("nan")])
def test_a_figure_out_of_bounds_is_refused_with_the_bounds(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=rf"{name} is .*; accepted: .* to .* \w+"):
        check_figures({**REAL, name: value})


def test_what_is_missing_and_what_is_unknown_is_named() -> None:
    with pytest.raises(ValueError, match="memory_bandwidth_bytes_per_s"):
        check_figures({"memory_bytes": 85_520_809_984})
    with pytest.raises(ValueError, match=r"unknown figures \['memory'\]"):
        check_figures({**REAL, "memory": 1.0})


def test_no_more_memory_is_usable_than_there_is() -> None:
    with pytest.raises(ValueError, match="usable_memory_bytes is more"):
        check_figures({**REAL, "usable_memory_bytes": REAL["memory_bytes"] + 1})


def test_memory_is_not_altered_beside_the_usable_memory_of_another() -> None:
    """Who copied H100 and stated 160 GB went on planning with the 79 GiB that are usable of its own."""
    copy = {**REAL, "memory_bytes": 160_000_000_000, "usable_memory_bytes": REAL["memory_bytes"]}
    with pytest.raises(ValueError, match=r"usable_memory_bytes is 0\.53 of memory_bytes, .* or no usable_memory_bytes"):
        check_figures(copy)
    check_figures({**copy, "usable_memory_bytes": 157_000_000_000})


def test_of_every_gpu_on_sale_most_memory_is_usable() -> None:
    for gpu in seed_entries()[1]:
        figures = {name: figure.value for name, figure in gpu.figures.items()}
        assert figures.get("usable_memory_bytes", inf) > 1.1 * USABLE * figures["memory_bytes"], gpu.id
