"""Names of GPUs that the seed files have and a catalog does not, and of all that was written and deleted since.

By its words such a name may come close to another GPU or model, which it never meant: `h100-sxm` is no H100 NVL.
"""

import re
from collections.abc import Container, Iterable, Mapping
from functools import lru_cache
from typing import Final

from service.catalog.catalog_entries import TakenOut
from service.catalog.names.labels import bare_name
from service.catalog.names.words import plain
from service.catalog.seed_files import seeded_gpu_names

GAPS: Final = re.compile(r"[ _-]+")


def is_taken_out(key: str, kept: Container[str], deleted: Container[str] = ()) -> bool:
    """Return whether a name is one of a GPU that is not kept any more.

    Args:
        key: the name, in lower case.
        kept: ids of GPUs that are there.
        deleted: names of those that were written and deleted, as `deleted_names` returns them.

    >>> is_taken_out("h100 sxm", ("h100-nvl-94gb",)), is_taken_out("h100 sxm", ("h100-sxm-80gb",))
    (True, False)
    """
    name = _joined(key)
    gpu_id = _seeded().get(name)
    return name in deleted or (gpu_id is not None and gpu_id not in kept)


def deleted_names(taken_out: Iterable[TakenOut], kind: str) -> frozenset[str]:
    """Return what GPUs or models were called that somebody deleted.

    >>> sorted(deleted_names([TakenOut(number=1, kind="gpu", id="x1", names=("x1", "Acme X1"))], "gpu"))
    ['acme-x1', 'x1']
    """
    names = {plain(name) for each in taken_out if each.kind == kind for name in each.names}
    return frozenset(_joined(written) for name in names for written in (name, bare_name(name)))


def is_deleted(key: str, deleted: Container[str]) -> bool:
    """Return whether a name, in lower case, is one of those that `deleted_names` returns."""
    return _joined(key) in deleted


def make_ready() -> None:
    """Read the names, a fifth of a second, before anybody asks for one that is read by its words."""
    _seeded()


@lru_cache(maxsize=1)
def _seeded() -> Mapping[str, str]:
    """Return the id behind every name of the seed files, as words that are joined by dashes."""
    named = {_joined(plain(name)): gpu_id for name, gpu_id in seeded_gpu_names()}
    bare = {_joined(bare_name(plain(name))): gpu_id for name, gpu_id in seeded_gpu_names()}
    return bare | named


def _joined(key: str) -> str:
    return GAPS.sub("-", key.strip(" ()-_"))
