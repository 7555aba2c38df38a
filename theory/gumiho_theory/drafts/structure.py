"""What a drafter is asked for: a chain, a dynamic tree, a static tree, or its own choice."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy.typing as npt

from gumiho_theory.drafts.tree import DraftTree
from gumiho_theory.errors import InputError, check_integer, within
from gumiho_theory.files import PathLike, Schema, given_fields, read_json, write_json
from gumiho_theory.rates import MAX_DEPTH

STATIC_TREE = Schema("gumiho.static_tree", 1)
# The attention mask over the nodes is square.
MAX_NODES = 4096

_FORMS = "chain:K, tree:total=64,top_k=14,depth=7,mlp_topk=35, static:FILE or auto"


@dataclass(frozen=True)
class Structure(ABC):
    """A draft structure. `str()` gives its canonical text, which `Structure.parse` reads back."""

    kind: ClassVar[str]

    @property
    @abstractmethod
    def depth(self) -> int | None:
        """Deepest draft position; None where the drafter chooses."""

    def to_json(self) -> dict[str, Any]:
        """Return the structure as JSON values, with its ``kind``."""
        return {"kind": self.kind, **{f.name: getattr(self, f.name) for f in fields(self)}}

    def cut(self, room: int) -> Structure:
        """Return the structure limited to `room` draft positions: itself where it is no deeper.

        Raises
        ------
        InputError
            For a negative room, or some room for a depth that is yet to be chosen.
        """
        check_integer("room", room, 0)
        if room == 0:
            return ChainStructure(0)
        if self.depth is None:
            raise InputError("structure", self, "a structure of settled depth")
        if self.depth <= room:
            return self
        if isinstance(self, DynamicTree):
            return replace(self, depth=room)
        if isinstance(self, StaticTree):
            # Without its source: the file holds the whole tree.
            return StaticTree(tuple(path for path in self.paths if len(path) <= room))
        return ChainStructure(room)

    @staticmethod
    def parse(text: str) -> Structure:
        """Read a structure from its text: ``chain:K``, ``tree:key=value,...``, ``static:FILE`` or ``auto``.

        Parameters
        ----------
        text : str
            A tree may give any of total, top_k, depth, mlp_topk, pruning; the others keep their defaults. A
            static tree is a file, or its rank paths themselves (``static:[[1],[1,1]]``).

        Raises
        ------
        InputError
            For any other text, values out of range, or a static tree file that cannot be used.
        """
        kind, _, rest = text.strip().partition(":")
        if kind == "chain":
            return ChainStructure(_integer("structure, chain", rest))
        if kind == "tree":
            return DynamicTree(**_settings(rest))
        if kind == "static":
            return _parse_static(rest)
        if text.strip() == "auto":
            return AutoStructure()
        raise InputError("structure", repr(text), _FORMS)

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Structure:
        """Read what `to_json` returned; unknown keys are ignored.

        Raises
        ------
        InputError
            For an unknown kind, a missing key or a bad value.
        """
        kind = data.get("kind")
        for structure in (ChainStructure, DynamicTree, StaticTree, AutoStructure):
            if kind == structure.kind:
                return structure(**given_fields(structure, data, "structure, "))
        raise InputError("structure, kind", repr(kind), "chain, tree, static or auto")


@dataclass(frozen=True)
class ChainStructure(Structure):
    """One path of `length` draft tokens, each the drafter's best."""

    length: int
    kind: ClassVar[str] = "chain"

    def __post_init__(self) -> None:
        check_integer("structure, chain", self.length, 0, MAX_DEPTH)

    @property
    def depth(self) -> int:
        """Deepest draft position: the length."""
        return self.length

    @property
    def paths(self) -> tuple[tuple[int, ...], ...]:
        """Rank paths of its nodes but the root, ((1,), (1, 1), ...), as a static tree has them."""
        return tuple((1,) * depth for depth in range(1, self.length + 1))

    def __str__(self) -> str:
        """Return ``chain:K``."""
        return f"chain:{self.length}"


@dataclass(frozen=True)
class DynamicTree(Structure):
    """A tree chosen anew each cycle by the drafter's scores, as in EAGLE-2 (arXiv 2406.16858).

    Parameters
    ----------
    total : int
        Nodes verified, root included (EAGLE-2's total_tokens).
    top_k : int
        Beams kept at a serial level, and candidates opened from each.
    depth : int
        Deepest draft position.
    mlp_topk : int
        Candidates of each parallel head (Gumiho, arXiv 2503.10135).
    pruning : int, optional
        Nodes kept at a parallel level (the released Gumiho's setting of that name); None keeps mlp_topk.
    """

    total: int = 64
    top_k: int = 14
    depth: int = 7
    mlp_topk: int = 35
    pruning: int | None = None
    kind: ClassVar[str] = "tree"

    def __post_init__(self) -> None:
        check_integer("structure, total", self.total, 2, MAX_NODES)
        check_integer("structure, top_k", self.top_k, 1, MAX_NODES)
        check_integer("structure, depth", self.depth, 1, MAX_DEPTH)
        check_integer("structure, mlp_topk", self.mlp_topk, 1, MAX_NODES)
        if self.pruning is not None:
            check_integer("structure, pruning", self.pruning, 1, MAX_NODES)

    def __str__(self) -> str:
        """Return the text with every setting; pruning only where it is given."""
        pruning = "" if self.pruning is None else f",pruning={self.pruning}"
        return f"tree:total={self.total},top_k={self.top_k},depth={self.depth},mlp_topk={self.mlp_topk}{pruning}"


@dataclass(frozen=True)
class StaticTree(Structure):
    """The same tree every cycle, given by the rank paths of its nodes.

    Parameters
    ----------
    paths : sequence of sequences of int
        Path of 1-based sibling ranks to each node but the root; every prefix is present. Kept ordered by
        depth, then by path: the node order of `tree`, whose root comes before them.
    source : str, optional
        File the tree was read from, used in its text; no part of the tree.
    """

    paths: tuple[tuple[int, ...], ...]
    source: str | None = field(default=None, compare=False)
    kind: ClassVar[str] = "static"

    def __post_init__(self) -> None:
        if not isinstance(self.paths, list | tuple) or not 1 <= len(self.paths) < MAX_NODES:
            raise InputError("structure, paths", repr(self.paths), f"a list of 1 to {MAX_NODES - 1} rank paths")
        for index, path in enumerate(self.paths):
            place = f"structure, path {index + 1}"
            if not isinstance(path, list | tuple) or not 1 <= len(path) <= MAX_DEPTH:
                raise InputError(place, repr(path), f"a list of 1 to {MAX_DEPTH} ranks")
            for rank in path:
                check_integer(place, rank, 1, 2**31)
        if self.source is not None and not isinstance(self.source, str):
            raise InputError("structure, source", repr(self.source), "a file name or null")
        ordered = sorted((tuple(path) for path in self.paths), key=lambda path: (len(path), path))
        object.__setattr__(self, "paths", tuple(ordered))
        if self.tree.n_nodes != len(self.paths) + 1:
            raise InputError("structure, paths", len(self.paths), f"{self.tree.n_nodes - 1} nodes")

    @cached_property
    def tree(self) -> DraftTree:
        """The tree itself: node i + 1 is paths[i]."""
        return DraftTree.from_rank_paths(self.paths)

    @property
    def depth(self) -> int:
        """Deepest draft position."""
        return len(self.paths[-1])

    def __str__(self) -> str:
        """Return ``static:FILE``, or the paths themselves when the tree came from no file."""
        if self.source is not None:
            return f"static:{self.source}"
        return "static:" + json.dumps(self.paths, separators=(",", ":"))

    def to_json(self) -> dict[str, Any]:
        """Return the structure as JSON values, with its ``kind``."""
        return {**super().to_json(), "paths": [list(path) for path in self.paths]}

    @classmethod
    def best(cls, rank_rates: npt.ArrayLike, total: int) -> StaticTree:
        """Return the static tree of `total` nodes (root included) with the largest expected accepted length.

        Parameters
        ----------
        rank_rates : array_like [D, R]
            P(the candidate of rank r at depth d is right | its parent is right), as `DraftTree.best_first` takes.
        total : int
            Nodes verified, root included; at least 2.

        Raises
        ------
        InputError
            For rates that are no such probabilities, or more nodes than D levels of R candidates have.
        """
        check_integer("structure, total", total, 2, MAX_NODES)
        tree = DraftTree.best_first(rank_rates, total)
        paths: list[tuple[int, ...]] = [()]
        for parent, rank in zip(tree.parents.tolist()[1:], tree.ranks.tolist()[1:], strict=True):
            paths.append((*paths[parent], rank))
        if (deepest := max(map(len, paths))) > MAX_DEPTH:
            raise InputError("rank rates", f"a best tree {deepest} deep", f"at most {MAX_DEPTH} positions")
        order = sorted(range(1, total), key=lambda node: (len(paths[node]), paths[node]))
        # Paths taken from a tree need none of the checks of paths that somebody wrote.
        made = object.__new__(cls)
        object.__setattr__(made, "paths", tuple(paths[node] for node in order))
        object.__setattr__(made, "source", None)
        return made

    @classmethod
    def read(cls, path: PathLike) -> StaticTree:
        """Read a tree file, ``{"schema": "gumiho.static_tree/1", "paths": [[1], [1, 1], [2]]}``.

        Raises
        ------
        InputError
            Names the file and what is wrong in it.
        """
        data = read_json(path)
        with within(path):
            STATIC_TREE.check(data.get("schema"))
            return cls(data.get("paths"), source=str(Path(path)))  # type: ignore[arg-type]

    def write(self, path: PathLike, made_from: Mapping[str, Any] | None = None) -> None:
        """Write a tree file, atomically; InputError when that fails.

        Parameters
        ----------
        path : path-like
        made_from : mapping, optional
            What the tree was chosen by, kept in the file as JSON; readers of the tree ignore it.
        """
        content: dict[str, Any] = {"schema": STATIC_TREE.tag, "paths": [list(path) for path in self.paths]}
        write_json(path, content if made_from is None else {**content, "made_from": dict(made_from)})


@dataclass(frozen=True)
class AutoStructure(Structure):
    """Whatever the drafter or a cost profile finds best."""

    kind: ClassVar[str] = "auto"

    @property
    def depth(self) -> None:
        """None: not known before it is chosen."""
        return None

    def __str__(self) -> str:
        """Return ``auto``."""
        return "auto"


def _integer(place: str, text: str) -> int:
    # int() alone also takes "1_000", " 7" and other scripts' digits.
    if re.fullmatch(r"[0-9]{1,9}", text) is None:
        raise InputError(place, repr(text), "a whole number")
    return int(text)


def _settings(text: str) -> dict[str, int]:
    settings: dict[str, int] = {}
    names = [f.name for f in fields(DynamicTree)]
    for part in text.split(",") if text else []:
        name, _, value = part.strip().partition("=")
        if name not in names or name in settings:
            raise InputError("structure, tree", repr(part), f"each of {', '.join(names)} at most once, as key=value")
        settings[name] = _integer(f"structure, {name}", value)
    return settings


def _parse_static(text: str) -> StaticTree:
    if not text:
        raise InputError("structure, static", "no file", "static:FILE")
    if not text.startswith("["):
        return StaticTree.read(text)
    try:
        paths = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError("structure, static", f"no JSON ({error})", "a file, or a JSON list of rank paths") from error
    return StaticTree(paths)
