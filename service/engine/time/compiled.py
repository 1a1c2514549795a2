"""Functions over arrays, compiled to machine code: the same numbers as in plain Python, to the last bit.

`NUMBA_DISABLE_JIT=1` leaves them plain, for debuggers and coverage.
"""

from collections.abc import Callable
from typing import Any, Final, TypeVar, cast

import numba
from numba.core import config

Function = TypeVar("Function", bound=Callable[..., Any])

# Code for any processor of an architecture: what was compiled into an image runs everywhere, and sums come out alike.
vars(config).update(CPU_NAME="generic", CPU_FEATURES="")
IS_PLAIN: Final = bool(vars(config)["DISABLE_JIT"])
# Without the interpreter's lock, and without counting references: nothing is allocated on the way.
OPTIONS: Final[dict[str, Any]] = {"nogil": True, "_nrt": False}


def compiled(function: Function) -> Function:
    """Return a function that is compiled on its first call, and kept on disk where any folder can be written to."""
    try:
        return cast("Function", numba.njit(cache=True, **OPTIONS)(function))
    except RuntimeError:  # "cannot cache function": neither beside the source, nor in NUMBA_CACHE_DIR, nor at home
        return cast("Function", numba.njit(**OPTIONS)(function))
