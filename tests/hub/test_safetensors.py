"""Counts in the headers of weight files, by the format's own description."""

from typing import Any

import pytest

from service.hub.safetensors import Counts, UnreadableWeightsError, header_counts, stated_counts, weight_files


def tensor(dtype: str, *shape: int) -> dict[str, Any]:
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [0, 0]}


def test_parameters_and_bytes_are_added_up() -> None:
    header = {"a": tensor("BF16", 2, 3), "b": tensor("F32", 4), "__metadata__": {"format": "pt"}}

    assert header_counts(header) == Counts(10, 12 + 16)


def test_a_scalar_is_one_parameter() -> None:
    assert header_counts({"a": tensor("F32")}) == Counts(1, 4)


def test_two_four_bit_numbers_share_a_byte() -> None:
    assert header_counts({"a": tensor("F4", 6)}) == Counts(6, 3)


def test_an_unknown_width_leaves_the_bytes_unknown() -> None:
    assert header_counts({"a": tensor("F3", 6), "b": tensor("F32", 1)}) == Counts(7, None)


@pytest.mark.parametrize(
    "broken", [5, {}, {"shape": 5}, {"shape": [-1], "dtype": "F32"}, {"shape": ["2"]}, {"shape": [1 << 60, 1 << 60]}]
)
def test_a_tensor_without_a_shape_of_whole_numbers_is_refused(broken: Any) -> None:
    with pytest.raises(UnreadableWeightsError):
        header_counts({"a": broken})


def test_what_a_hub_has_counted_is_taken() -> None:
    assert stated_counts({"safetensors": {"parameters": {"BF16": 8, "F32": 2}}}) == Counts(10, 24)
    assert stated_counts({"safetensors": {}}) is None
    assert stated_counts({}) is None
    with pytest.raises(UnreadableWeightsError):
        stated_counts({"safetensors": {"parameters": {"BF16": True}}})


def test_the_files_of_an_index_are_named_once_and_in_order() -> None:
    assert weight_files({"weight_map": {"x": "b.safetensors", "y": "a.safetensors", "z": "b.safetensors"}}) == (
        "a.safetensors",
        "b.safetensors",
    )


@pytest.mark.parametrize(
    "name", ["../secret", "/etc/passwd", "a/../b", "a//b", "", "a\nb", "https://x.org/a", ".hidden"]
)
def test_a_file_outside_the_model_is_refused(name: str) -> None:
    with pytest.raises(UnreadableWeightsError):
        weight_files({"weight_map": {"x": name}})


@pytest.mark.parametrize("index", [{}, {"weight_map": {}}, {"weight_map": ["a"]}])
def test_an_index_without_a_map_is_refused(index: dict[str, Any]) -> None:
    with pytest.raises(UnreadableWeightsError):
        weight_files(index)
