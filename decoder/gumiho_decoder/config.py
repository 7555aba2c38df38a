"""What is asked of one output: structure, temperature, candidates, acceptance, stops."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import torch

from gumiho_decoder.acceptance.fta import FullTreeAttention
from gumiho_decoder.acceptance.rules import Greedy, Rule, Sampling, Typical
from gumiho_decoder.acceptance.sampling import Warp
from gumiho_decoder.draft import DraftOptions
from gumiho_theory import (
    AutoStructure,
    ChainStructure,
    CostProfile,
    DynamicTree,
    InputError,
    ScoreCalibration,
    Structure,
)

FTA = ("off", "released", "literal")
CANDIDATES = ("top", "sampled")
ACCEPTANCE = ("exact", "typical")


@dataclass(frozen=True)
class GenerationConfig:
    """What is asked of one output.

    Attributes
    ----------
    max_new_tokens : int
        Most tokens in the output (EOS included). It cuts the output, never a draft.
    structure : Structure
        What the drafter is asked for in each cycle.
    temperature : float
        0: greedy, whatever `top_k` and `top_p` say.
    top_k, top_p
        Applied to the target's distribution after the temperature, before anything is accepted.
    seed : int
        All that is drawn comes from one generator with this seed.
    candidates : str
        `top`: the drafter's most probable tokens; `sampled`: drawn from its distributions (chains and static trees,
        temperature above 0).
    acceptance : str
        `exact`, or `typical`: Medusa's rule, LOSSY.
    fta : str
        `off`; `released` or `literal`: full tree attention as in the official code, LOSSY, dynamic trees, greedy.
    calibration : ScoreCalibration or None
        Ranks a dynamic tree's nodes by acceptance rather than draft probabilities.
    budget : CostProfile or None
        Dynamic trees have as many nodes, up to their total, as pay for their verification.
    stop_token_ids : tuple of int
        Tokens that end an output beside the target's own.
    stop_strings : tuple of str
        Texts that end an output with the token that completes one.

    Raises
    ------
    InputError
        A value out of range, or two that do not go together.
    """

    max_new_tokens: int = 128
    structure: Structure = field(default_factory=lambda: ChainStructure(7))
    temperature: float = 0.0
    top_k: int | None = None
    top_p: float | None = None
    seed: int = 0
    candidates: Literal["top", "sampled"] = "top"
    acceptance: Literal["exact", "typical"] = "exact"
    fta: Literal["off", "released", "literal"] = "off"
    calibration: ScoreCalibration | None = None
    budget: CostProfile | None = None
    stop_token_ids: tuple[int, ...] = ()
    stop_strings: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.max_new_tokens < 1:
            raise InputError("max_new_tokens", self.max_new_tokens, "at least 1")
        if not isinstance(self.structure, Structure):
            wanted = "a Structure, such as Structure.parse('chain:7') or StaticTree.read(path)"
            raise InputError("structure", repr(self.structure), wanted)
        if isinstance(self.structure, ChainStructure) and self.structure.length < 1:
            raise InputError("structure", str(self.structure), "at least one draft position")
        for name, known in (("candidates", CANDIDATES), ("acceptance", ACCEPTANCE), ("fta", FTA)):
            if getattr(self, name) not in known:
                raise InputError(name, repr(getattr(self, name)), ", ".join(known))
        if not 0 <= self.seed < 2**63:
            raise InputError("seed", self.seed, "0 to 2^63 - 1")
        if isinstance(self.stop_strings, str) or not all(isinstance(s, str) and s for s in self.stop_strings):
            raise InputError("stop_strings", repr(self.stop_strings), "a tuple of texts that are not empty")
        self._check_pairs()

    def _check_pairs(self) -> None:
        greedy, tree = self.warp.greedy, isinstance(self.structure, DynamicTree)
        if greedy and self.candidates == "sampled":
            raise InputError("candidates", "'sampled' at temperature 0", "a temperature above 0, or 'top'")
        if greedy and self.acceptance == "typical":
            raise InputError("acceptance", "'typical' at temperature 0", "a temperature above 0, or 'exact'")
        if self.candidates == "sampled" and (tree or self.acceptance == "typical"):
            raise InputError(
                "candidates", f"'sampled' for {self.structure}", "a chain or static tree, accepted exactly, or 'top'"
            )
        for name in ("calibration", "budget"):
            if getattr(self, name) is not None and not isinstance(self.structure, DynamicTree | AutoStructure):
                raise InputError(name, f"one for {self.structure}", "a dynamic tree, whose nodes it chooses")
        if self.fta != "off" and not (greedy and tree):
            raise InputError(
                "fta", f"{self.fta!r} with {self.structure} at temperature {self.temperature}", "a dynamic tree, greedy"
            )

    @property
    def warp(self) -> Warp:
        """What the target's distribution goes through."""
        return Warp(self.temperature, self.top_k, self.top_p)

    @property
    def lossless(self) -> bool:
        """Whether the output is the target's own: its greedy text, or a draw from its distribution."""
        return self.acceptance == "exact" and self.fta == "off"

    @property
    def mode(self) -> str:
        """How tokens are chosen and drafts accepted, with `(lossy)` where that is so."""
        return self.rule(torch.Generator()).name

    def generator(self, device: torch.device) -> torch.Generator:
        """Return a new generator with this seed."""
        return torch.Generator(device).manual_seed(self.seed)

    def rule(self, random: torch.Generator) -> Rule:
        """Return the rule by which tokens are chosen and drafts accepted."""
        if self.fta != "off":
            return FullTreeAttention(self.fta)
        if self.warp.greedy:
            return Greedy()
        return (Typical if self.acceptance == "typical" else Sampling)(self.warp, random)

    def options(self, random: torch.Generator) -> DraftOptions:
        """Return how the drafter chooses candidates."""
        drawn = random if self.candidates == "sampled" else None
        return DraftOptions(drawn, self.temperature or 1.0, self.calibration, self.budget)
