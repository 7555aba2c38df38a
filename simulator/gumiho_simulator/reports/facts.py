"""What the report needs beside the trace and the validation: one plain object for the caller to fill."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gumiho_theory import DraftTree


@dataclass(frozen=True)
class NearTie:
    """A place where two decodings differ because the target's two best tokens are nearly equal.

    Parameters
    ----------
    prompt_id
        The prompt.
    position
        0-based index, in the output, of the first token that differs.
    gap
        Difference of the two best logits there.
    """

    prompt_id: str
    position: int
    gap: float


@dataclass(frozen=True)
class TreeDrawing:
    """One draft tree to draw.

    Parameters
    ----------
    tree
        The tree of N nodes, root included.
    labels
        N token texts.
    accepted
        Indices of the accepted nodes, without the root.
    q_draft : ndarray [N] or None
        Draft probability of each node given its parent; the root's is ignored.
    caption
        Which cycle this is, such as "prompt csv-07, cycle 12".
    """

    tree: DraftTree
    labels: tuple[str, ...]
    accepted: tuple[int, ...]
    q_draft: NDArray[np.float64] | None = None
    caption: str = ""


@dataclass(frozen=True)
class DemoSummary:
    """Headline numbers of one run.

    Every tau has the bonus token included, is micro, and is over complete cycles.

    Parameters
    ----------
    title
        Heading of the page.
    target, drafter, structure
        Names of the two models and canonical text of the draft structure.
    prompts
        Number of prompts decoded.
    lossless
        Prompts "checked", "equal", "ties", "different" against plain greedy decoding.
    near_ties
        The ties, one by one.
    tau, tau_ci
        Of all prompts, with 95 % limits clustered by prompt.
    tau_first_32
        Over the cycles that start within the first 32 new tokens, before repetition sets in; None when
        unknown.
    speedup_plain, speedup_generate
        Wall-clock ratio to the plain loop of this toolkit, and to the ``generate`` method of transformers;
        None when not measured.
    speedup_plain_ci, speedup_generate_ci
        95 % limits over prompts; None when unknown.
    busy
        Warning that other work took the machine's cores meanwhile; None when it did not.
    tokens_per_second, plain_tokens_per_second
        New tokens a second, speculative and plain; None when not measured.
    plain_step_ms
        One step of the plain loop, milliseconds, without the reading of the prompt; None when not measured.
    repeated_4gram_share
        Share of the outputs' 4-grams that occurred before in the same output; None when unknown. Repetition
        inflates tau.
    drawing
        A draft tree to draw; None to leave the figure out.
    provenance
        Versions, commit, arguments, device: shown as a table.
    """

    title: str
    target: str
    drafter: str
    structure: str
    prompts: int
    lossless: Mapping[str, int]
    tau: float | None
    tau_ci: tuple[float, float] | None
    near_ties: tuple[NearTie, ...] = ()
    tau_first_32: float | None = None
    speedup_plain: float | None = None
    speedup_generate: float | None = None
    speedup_plain_ci: Sequence[float] | None = None
    speedup_generate_ci: Sequence[float] | None = None
    busy: str | None = None
    tokens_per_second: float | None = None
    plain_tokens_per_second: float | None = None
    plain_step_ms: float | None = None
    repeated_4gram_share: float | None = None
    drawing: TreeDrawing | None = None
    provenance: Mapping[str, Any] = field(default_factory=dict)
