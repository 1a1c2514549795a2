"""Names of GPUs that the seed files have and a catalog does not: somebody deleted them.

By its words such a name may come close to another GPU, which it never meant: `h100-sxm` is no H100 NVL.
"""

import re
from collections.abc import Container, Mapping
from functools import lru_cache
from typing import Final

from service.catalog.names.labels import bare_name
from service.catalog.names.words import plain
from service.catalog.seed_files import seeded_gpu_names

GAPS: Final = re.compile(r"[ _-]+")


def is_taken_out(key: str, kept: Container[str]) -> bool:
    """Return whether a name is one of a GPU of the seed files that is not kept any more.

    >>> is_taken_out("h100 sxm", ("h100-nvl-94gb",)), is_taken_out("h100 sxm", ("h100-sxm-80gb",))
    (True, False)
    """
    gpu_id = _seeded().get(_joined(key))
    return gpu_id is not None and gpu_id not in kept


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
