"""What a model's fields are called by those who write them, and which of them are lists."""

from types import UnionType
from typing import Annotated, Union, get_args, get_origin

from pydantic import BaseModel


def names_of(model: type[BaseModel]) -> tuple[str, ...]:
    """Return the names of every field, as a caller writes them."""
    return tuple(info.alias or name for name, info in model.model_fields.items())


def lists_of(model: type[BaseModel]) -> frozenset[str]:
    """Return the names of the fields that hold a list, and so may be stated more than once."""
    return frozenset(info.alias or name for name, info in model.model_fields.items() if is_list(info.annotation))


def is_list(annotation: object) -> bool:
    """Return whether a type is a list, under whatever it is wrapped in."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return is_list(get_args(annotation)[0])
    if origin in (Union, UnionType):
        return any(is_list(choice) for choice in get_args(annotation))
    return (origin or annotation) is list
