"""Long tuples that are keys of what is kept: hashed once, not on every look-up."""

from typing import TypeVar

Item = TypeVar("Item")


class Hashed(tuple[Item, ...]):  # noqa: SLOT001 - a tuple of any length has no slots
    """A tuple that remembers its hash."""

    _hash: int | None = None

    def __hash__(self) -> int:
        """Return the hash of an equal tuple."""
        if self._hash is None:
            self._hash = super().__hash__()
        return self._hash
