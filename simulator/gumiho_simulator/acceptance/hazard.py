"""One free conditional rate a draft position: the Kaplan-Meier estimate of the accepted length."""

from __future__ import annotations

from typing import Any

from gumiho_simulator.acceptance.model import AcceptanceModel
from gumiho_theory.types import FloatArray


class HazardModel(AcceptanceModel):
    """The measured rates themselves; see `KaplanMeier`.

    Nothing is assumed about a position that no cycle reached, so the model refuses to go beyond `support`.
    """

    name = "hazard"

    @property
    def parameters(self) -> dict[str, Any]:
        """The conditional rates of positions 1..support."""
        return {"conditional": self.conditional(self.support).tolist()}

    def _refitted(self, weights: FloatArray, depth: int) -> FloatArray:
        return self.measured.refitted(weights, depth)
