"""What a step costs by its size: a line or a stair in the tokens read, whichever predicts a size left out better.

A processor that waits for its memory reads a few tokens in the time of one; kernels work in tiles, so that the time
climbs in steps; and past the memory's speed every token counts. A line and a stair cover these; which one holds for a
machine is decided by leaving out each size in turn and predicting its time from the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gumiho_theory import InputError
from gumiho_theory.types import FloatArray

Kind = Literal["line", "stair"]

KINDS: tuple[Kind, ...] = ("line", "stair")
# Rows of a matrix product that kernels take at once.
_WIDTHS = (2, 4, 8, 16, 32, 64, 128)
FEWEST_SIZES = 3  # sizes below which leaving one out says nothing


@dataclass(frozen=True)
class LengthError:
    """How well a kind of model predicts the times of sizes that it was not fitted to.

    Parameters
    ----------
    kind
        line or stair.
    mean, rms, worst
        Of the relative errors (predicted - measured) / measured: mean and largest absolute one, root mean square.
    sizes
        Sizes left out in turn.
    """

    kind: Kind
    mean: float
    rms: float
    worst: float
    sizes: int

    @classmethod
    def of(cls, kind: Kind, errors: ArrayLike) -> LengthError:
        """Sum up signed relative errors, one a size."""
        values = np.abs(np.asarray(errors, dtype=np.float64))
        return cls(kind, float(values.mean()), float(np.sqrt((values**2).mean())), float(values.max()), values.size)


@dataclass(frozen=True)
class StepTime:
    """Seconds of a step that reads n tokens behind a context of c tokens.

    fixed + first [n > 1] + each (ceil(n / width) - 1) + context_each c: a line for width 1, else a stair.

    Parameters
    ----------
    width
        Tokens that a stair's step holds; 1 for a line.
    fixed, first, each, context_each
        Seconds, at least 0: of any step, of leaving the kernel for a single token, of each further tile (of each
        further token of a line), of each token of context.
    """

    width: int
    fixed: float
    first: float
    each: float
    context_each: float

    @property
    def kind(self) -> Kind:
        """Line or stair."""
        return "line" if self.width == 1 else "stair"

    def seconds(self, nodes: ArrayLike, context: ArrayLike = 0.0) -> FloatArray:
        """Time of steps.

        `nodes` (array_like [...]): Tokens read (root included), at least 1. `context` (array_like [...]): Tokens before
        them. Returns ndarray [...]: Seconds.
        """
        weights = np.array([self.fixed, self.first, self.each, self.context_each])
        seconds: FloatArray = _columns(np.asarray(nodes), np.asarray(context), self.width) @ weights
        return seconds

    def to_json(self) -> dict[str, Any]:
        """Return the kind, the width, and the parts of the time in milliseconds."""
        return {
            "kind": self.kind,
            "width": self.width,
            "verify_fixed_ms": 1000 * self.fixed,
            "verify_first_ms": 1000 * self.first,
            "verify_each_ms": 1000 * self.each,
            "verify_context_ms": 1000 * self.context_each,
        }


@dataclass(frozen=True)
class StepTimeFit:
    """A step's time, fitted, and what spoke for its kind.

    Parameters
    ----------
    time
        The fit to all sizes.
    errors
        Of each kind, sizes left out in turn; empty with fewer than three sizes, when a line is taken.
    """

    time: StepTime
    errors: tuple[LengthError, ...]

    @property
    def error(self) -> LengthError | None:
        """Of the kind taken."""
        return error_of(self.time.kind, self.errors)

    def to_json(self) -> dict[str, Any]:
        """Return what ``gumiho cost PROFILE --json`` prints: `StepTime.to_json`, and the errors."""
        return {**self.time.to_json(), "errors": [vars(one) for one in self.errors]}


def error_of(kind: Kind, errors: Sequence[LengthError]) -> LengthError | None:
    """Return the errors of a kind; None where there are none."""
    return next((one for one in errors if one.kind == kind), None)


def better_kind(left_out: Callable[[Kind], FloatArray]) -> tuple[Kind, tuple[LengthError, ...]]:
    """Choose between line and stair.

    `left_out`: Signed relative errors of a kind, one a size left out; none where there are too few sizes. Returns kind:
    Of the smaller mean error; a line where there are none. Returns errors, tuple of LengthError: Of each kind.
    """
    errors = {kind: left_out(kind) for kind in KINDS}
    scored = tuple(LengthError.of(kind, values) for kind, values in errors.items() if values.size)
    return (min(scored, key=lambda one: one.mean).kind if scored else "line"), scored


def fit_step_time(nodes: ArrayLike, seconds: ArrayLike, context: ArrayLike | None = None) -> StepTimeFit:
    """Fit a step's time and choose between line and stair by leaving out one size at a time.

    The fit minimises relative errors over non-negative coefficients. One token alone is never left out: no other size
    says what a single token takes.

    Parameters
    ----------
    nodes : array_like [M]
        Tokens read (root included), at least 1. For whole cycles of chains, the draft length + 1.
    seconds : array_like [M]
        Above 0.
    context : array_like [M], optional
        Tokens before them.

    Returns
    -------
    StepTimeFit
        The kind of the smaller mean error.

    Raises
    ------
    InputError
        Fewer than two sizes, unequal numbers of values, or values out of range.
    """
    sizes, times, behind = _checked(nodes, seconds, context)
    kind, errors = better_kind(lambda kind: left_out_errors(sizes, times, behind, kind))
    return StepTimeFit(fit_kind(sizes, times, behind, kind), errors)


def left_out_errors(nodes: FloatArray, seconds: FloatArray, context: FloatArray, kind: Kind) -> FloatArray:
    """Relative errors of each size's mean time, predicted from the other sizes.

    `nodes`, `seconds`, `context` (ndarray [M]): As in `fit_step_time`. `kind`: line or stair. Returns ndarray [S]:
    (predicted - measured) / measured, sizes ascending, a size of 1 left out; empty with fewer than three.
    """
    sizes = np.unique(nodes)
    if sizes.size < FEWEST_SIZES:
        return np.zeros(0)
    errors = []
    for size in sizes[sizes > 1]:
        out = nodes == size
        fitted = fit_kind(nodes[~out], seconds[~out], context[~out], kind)
        errors.append(fitted.seconds(nodes[out], context[out]).mean() / seconds[out].mean() - 1)
    return np.array(errors)


def fit_kind(nodes: FloatArray, seconds: FloatArray, context: FloatArray, kind: Kind) -> StepTime:
    """Fit a line, or a stair of the width that fits best (the widest of equals).

    `nodes`, `seconds`, `context` (ndarray [M]): As in `fit_step_time`. `kind`: line or stair. Returns the fit.
    """
    widths = (1,) if kind == "line" else _WIDTHS
    # One context alone cannot be told from what every step takes.
    context = context if np.ptp(context) > 0 else np.zeros_like(context)
    fits = [(*relative_least_squares(_columns(nodes, context, width), seconds), width) for width in widths]
    least = min(residual for _, residual, _ in fits)
    weights, _, width = [one for one in fits if one[1] <= least + 1e-12][-1]
    fixed, first, each, behind = map(float, weights)
    if (nodes > 1).all():
        # Without a single token among the sizes nothing tells the two apart.
        fixed, first = fixed + first, 0.0
    return StepTime(width, fixed, first, each, behind)


def relative_least_squares(columns: FloatArray, seconds: FloatArray) -> tuple[FloatArray, float]:
    """Non-negative coefficients of the least relative squared error.

    `columns` (ndarray [M, P]): What each coefficient multiplies. `seconds` (ndarray [M]): Above 0. Returns
    coefficients, ndarray [P]: At least 0. Returns residual, float: Root of the sum of squared relative errors.
    """
    from scipy.optimize import nnls

    weights, residual = nnls(columns / seconds[:, None], np.ones_like(seconds))
    return np.asarray(weights, dtype=np.float64), float(residual)


def _columns(nodes: NDArray[np.generic], context: NDArray[np.generic], width: int) -> FloatArray:
    n, c = np.broadcast_arrays(nodes.astype(np.float64), context.astype(np.float64))
    return np.stack([np.ones_like(n), (n > 1).astype(np.float64), np.ceil(n / width) - 1, c], axis=-1)


def _checked(
    nodes: ArrayLike, seconds: ArrayLike, context: ArrayLike | None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    sizes, times = np.asarray(nodes, dtype=np.float64), np.asarray(seconds, dtype=np.float64)
    behind = np.zeros_like(sizes) if context is None else np.asarray(context, dtype=np.float64)
    if sizes.ndim != 1 or sizes.shape != times.shape or sizes.shape != behind.shape:
        raise InputError("nodes, seconds and context", f"{sizes.shape}, {times.shape}, {behind.shape}", "equal lists")
    for name, values, least in (("nodes", sizes, 1.0), ("context", behind, 0.0)):
        if not ((values >= least) & np.isfinite(values)).all():
            raise InputError(name, values.tolist(), f"numbers of at least {least:g}")
    if not ((times > 0) & np.isfinite(times)).all():
        raise InputError("seconds", times.tolist(), "times above 0")
    if np.unique(sizes).size < 2:
        raise InputError("nodes", f"{np.unique(sizes).size} sizes", "at least two")
    return sizes, times, behind
