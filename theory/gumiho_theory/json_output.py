"""The JSON that commands print: numpy turned to plain values, numbers finite or null."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np


def plain(value: Any) -> Any:
    """Turn numpy values, tuples and mappings into what ``json`` writes, with every non-finite float as None.

    Parameters
    ----------
    value
        Any nesting of mappings, sequences, numpy arrays and scalars.

    Returns
    -------
    Any
        The same nesting of dict, list, str, int, float, bool and None.
    """
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def dumps(value: Any) -> str:
    """Write one JSON object whose numbers are finite or null.

    `value`: Anything that `plain` understands. Returns JSON text, one line.
    """
    return json.dumps(plain(value), allow_nan=False, ensure_ascii=False)
