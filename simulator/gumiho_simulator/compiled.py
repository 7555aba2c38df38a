"""Machine code by numba, made once and kept: imported only where a kernel is called, since numba starts slowly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """Compile a function on its first call, in double precision as written: no reordering of sums, no fast maths.

    `function`: Of arrays, numbers and `numpy.random.Generator`. Returns the same, compiled. The machine code is kept
    beside the package, or in the user's cache where that cannot be written, or else in memory alone.
    """
    made: Any
    try:
        made = numba.njit(cache=True)(function)
    except RuntimeError:  # no folder for the code
        made = numba.njit(function)
    return cast(Function, made)
