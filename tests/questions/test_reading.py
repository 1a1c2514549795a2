"""JSON with a name stated twice."""

import pytest

from service.questions.reading import read_json


@pytest.mark.parametrize(
    ("text", "twice"),
    [
        ('{"a": 1, "b": 2}', ()),
        ('{"a": 1, "b": 2, "a": 3}', ("a",)),
        ('{"a": {"c": 1, "c": 2}, "b": [{"d": 1, "d": 2, "d": 3}]}', ("c", "d")),
        ("[1, 1]", ()),
    ],
)
def test_what_is_stated_twice_in_one_object_is_told(text: str, twice: tuple[str, ...]) -> None:
    assert read_json(text)[1] == twice


def test_the_same_name_in_two_objects_is_stated_once_in_each() -> None:
    assert read_json(b'[{"a": 1}, {"a": {"a": 2}}]') == ([{"a": 1}, {"a": {"a": 2}}], ())


def test_what_is_not_json_is_refused() -> None:
    with pytest.raises(ValueError, match="property name"):
        read_json("{a: 1}")
