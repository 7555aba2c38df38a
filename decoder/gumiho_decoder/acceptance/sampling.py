"""Exact sampled verification: the output follows the target's own distribution, whatever the drafter proposes.

Throughout, a draft tree has N nodes, as in `Draft`: `tokens`, `parents` (-1 at the root), `depths`, all int64 (N,), and
`ancestors`, bool (N, N), whose row i is True at i and its ancestors. Node 0 is the root (the last verified token),
parents come before children, siblings differ in token and are tried in node order. `p_target` (N, V) is the target's
distribution behind each node after temperature, top_k and top_p: warp first, verify afterwards. Everything here is a
pure function of tensors. `parents` may stay on the CPU, where a `DraftTree` has it; the other tensors are on p_target's
device, and nothing waits for that device. Shapes that do not fit together raise InputError.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from gumiho_theory import InputError

# Dividing by less than this may overflow float32. Already here any two logits that differ at all are
# worlds apart, so a colder temperature would choose the same tokens.
COLDEST = 1e-30


@dataclass(frozen=True)
class Warp:
    """Turns logits into the distribution that is sampled: temperature, then top_k, then top_p.

    Ties and boundaries are those of transformers' TemperatureLogitsWarper, TopKLogitsWarper and TopPLogitsWarper.

    Attributes
    ----------
    temperature : float
        Logits are divided by it; 0 puts everything on the largest logit (the first of equals).
    top_k : int or None
        Keep the k largest logits and whatever equals the k-th; None keeps all.
    top_p : float or None
        Keep the smallest set of most probable tokens that reaches top_p, at least one; None keeps all.

    Raises
    ------
    InputError
        temperature is negative or not finite, top_k is below 1 or top_p is outside (0, 1].
    """

    temperature: float = 0.0
    top_k: int | None = None
    top_p: float | None = None

    def __post_init__(self) -> None:
        if not is_number(self.temperature) or not 0 <= self.temperature < math.inf:
            raise InputError("temperature", repr(self.temperature), "a finite number, at least 0")
        if self.top_k is not None and (type(self.top_k) is not int or self.top_k < 1):
            raise InputError("top_k", repr(self.top_k), "a whole number, at least 1")
        if self.top_p is not None and (not is_number(self.top_p) or not 0 < self.top_p <= 1):
            raise InputError("top_p", repr(self.top_p), "a number above 0, at most 1")

    @property
    def greedy(self) -> bool:
        """Whether nothing is left to chance: temperature 0, whatever else is set."""
        return self.temperature == 0

    def __call__(self, logits: torch.Tensor) -> torch.Tensor:
        """Return the probabilities of `logits`, both of shape (..., V); float64 stays, all else becomes float32."""
        scores = logits if logits.dtype == torch.float64 else logits.float()
        if self.greedy:
            return torch.zeros_like(scores).scatter(-1, scores.argmax(-1, keepdim=True), 1.0)
        scores = scores / max(self.temperature, COLDEST)
        if self.top_k is not None:
            smallest = scores.topk(min(self.top_k, scores.shape[-1]), dim=-1).values[..., -1:]
            scores = scores.masked_fill(scores < smallest, -math.inf)
        if self.top_p is not None and self.top_p < 1:
            ascending, order = scores.sort(dim=-1, stable=True)
            cut = ascending.softmax(-1).cumsum(-1) <= 1 - self.top_p
            cut[..., -1] = False
            scores = scores.masked_fill(torch.zeros_like(cut).scatter(-1, order, cut), -math.inf)
        return scores.softmax(-1)


def deterministic(
    tokens: torch.Tensor, parents: torch.Tensor, p_target: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Accept candidates that were chosen without randomness (each drafter's most probable ones, say).

    They are tried one after another against p_target, each refused one removed and the rest renormalised: with c the
    candidate, accept = p(c) / (1 - sum of p over earlier siblings); behind the last refusal, the bonus token follows
    p without the children, renormalised. Any order and any choice is exact, as long as neither depends on the
    target's draw.

    Returns
    -------
    accept : float64 Tensor, shape (N,)
        Probability that a node is accepted once its parent is and its earlier siblings are refused; 1 at the root.
    residual : float64 Tensor, shape (N, V)
        Distribution of the bonus token if the path ends at a node. All 0 where children carry all mass: never reached.
    """
    check_shapes(tokens, parents, p_target)
    parents = parents.to(p_target.device, non_blocking=True)
    behind, own = parents[1:], tokens[1:]
    p_target = p_target.double()
    candidate = p_target[behind, own]
    residual = p_target.index_put((behind, own), candidate.new_zeros(()))
    rest = residual.sum(-1)
    # What is left before a node is summed from what is still there. 1 - sum would lose all digits just where
    # siblings carry nearly all mass; and so the last possible sibling is accepted with exactly 1.
    not_earlier = _same_parent(behind).triu().double()
    left = rest[behind] + not_earlier @ candidate
    accept = torch.where(left > 0, candidate / left, 0.0)
    return torch.cat([accept.new_ones(1), accept]), residual / torch.where(rest > 0, rest, 1.0)[:, None]


def sampled(
    tokens: torch.Tensor, parents: torch.Tensor, p_target: torch.Tensor, q_draft: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Accept candidates drawn from q_draft, siblings one after another without replacement.

    Recursive rejection (SpecInfer, arXiv 2305.09781; without replacement as in arXiv 2402.14160): the j-th child x is
    accepted with min(1, p_j(x) / q_j(x)). On refusal p_{j+1} = norm(max(p_j - q_j, 0)), and q_{j+1} is q_j without x,
    renormalised. Siblings must stand in the order of their drawing: sorted by probability afterwards, say, they
    would no longer be draws from q_j. A child that q_j cannot have given (q_j is exhausted: fewer tokens than
    children) is refused and changes nothing, which is exact however it was chosen.

    All in float64, float32 input included: p - q of nearly equal distributions, summed over a vocabulary, is small.

    Parameters
    ----------
    parents : int64 Tensor, shape (N,)
        Read on the host: on an accelerator, that waits once.
    q_draft : Tensor, shape (N, V)
        Distribution that each node's children were drawn from; not read where there are none.

    Returns
    -------
    accept, residual : float64 Tensor, shapes (N,) and (N, V)
        As `deterministic` returns them. Where p_j = q_j, and no refusal is possible, p_j.
    """
    check_shapes(tokens, parents, p_target, q_draft)
    p = p_target.double()
    p = p / p.sum(-1, keepdim=True)
    q = q_draft.to(torch.float64, copy=True)
    accept = p.new_ones(len(p))
    for nodes, behind in _rounds(parents, p.device):
        own = tokens[nodes, None]
        p_j, q_j = p[behind], q[behind]
        q[behind, own[:, 0]] = 0.0
        mass = q_j.sum(-1, keepdim=True)
        q_j = q_j / torch.where(mass > 0, mass, 1.0)
        p_own, q_own = p_j.gather(1, own), q_j.gather(1, own)
        drawn = q_own > 0
        accept[nodes] = torch.where(drawn, (p_own / q_own).clamp(max=1), 0.0)[:, 0]
        excess = (p_j - q_j).clamp(min=0)
        total = excess.sum(-1, keepdim=True)
        p[behind] = torch.where(drawn & (total > 0), excess / total, p_j)
    return accept, p


def walk(
    accept: torch.Tensor, parents: torch.Tensor, ancestors: torch.Tensor, depths: torch.Tensor, uniforms: torch.Tensor
) -> torch.Tensor:
    """Go down the tree by chance and return the deepest accepted node, int64, 0-d.

    Parameters
    ----------
    accept : Tensor, shape (N,)
        See `sampled`; the root's is not read.
    uniforms : Tensor, shape (N,)
        In [0, 1): a node's own decides about it, and is read only if its parent is taken and no earlier sibling is.
    """
    willing = uniforms < accept
    earlier = _same_parent(parents.to(accept.device, non_blocking=True)).tril(-1)
    taken = willing & ~(earlier & willing).any(1)
    taken[0] = True
    on_path = (taken | ~ancestors).all(1)
    return torch.where(on_path, depths, -1).argmax()


def draw(probabilities: torch.Tensor, uniform: torch.Tensor) -> torch.Tensor:
    """Draw one token by the inverse of the cumulative distribution.

    Parameters
    ----------
    probabilities : Tensor, shape (V,)
        Need not be normalised.
    uniform : Tensor, 0-d
        In [0, 1).

    Returns
    -------
    int64 Tensor, 0-d
        A token of positive probability; -1 where there is none, which is no distribution (all nan, say).
    """
    cumulative = probabilities.double().cumsum(-1)
    index = torch.arange(len(probabilities), device=probabilities.device)
    # A parallel cumulative sum may step at a token of probability 0, or end short of uniform x total: so only
    # positive tokens are looked at, and the last of them takes what is beyond.
    positive = probabilities > 0
    beyond = positive & (cumulative > uniform * cumulative[-1])
    first = torch.where(beyond, index, len(index)).amin()
    return torch.minimum(first, torch.where(positive, index, -1).amax())


def verify_sampled(
    tokens: torch.Tensor,
    parents: torch.Tensor,
    ancestors: torch.Tensor,
    depths: torch.Tensor,
    p_target: torch.Tensor,
    q_draft: torch.Tensor | None,
    random: torch.Generator,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Verify a draft tree so that what is emitted follows the target's distribution exactly.

    Parameters
    ----------
    q_draft : Tensor, shape (N, V), or None
        See `sampled`; None for candidates chosen without randomness, see `deterministic`.
    random : torch.Generator
        On p_target's device. N + 1 uniforms are drawn, in one call.

    Returns
    -------
    node, bonus : int64 Tensor, 0-d
        Deepest accepted node, and the token behind it.
    """
    uniforms = torch.rand(len(tokens) + 1, generator=random, dtype=torch.float64, device=p_target.device)
    if q_draft is None:
        accept, residual = deterministic(tokens, parents, p_target)
    else:
        accept, residual = sampled(tokens, parents, p_target, q_draft)
    node = walk(accept, parents, ancestors, depths, uniforms[:-1])
    # Not residual[node]: an index of no dimension is read on the host.
    return node, draw(residual.index_select(0, node[None])[0], uniforms[-1])


def is_number(value: object) -> bool:
    """Return whether `value` is a real number, which a bool is not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def check_shapes(tokens: torch.Tensor, parents: torch.Tensor, p_target: torch.Tensor, *q_draft: torch.Tensor) -> None:
    """Raise InputError unless there is a row of `p_target`, and of `q_draft`, for each token and each parent."""
    shape = tuple(p_target.shape)
    if len(shape) != 2 or tokens.shape != shape[:1] or parents.shape != shape[:1]:
        found = f"{tuple(tokens.shape)}, {tuple(parents.shape)} and {shape}"
        raise InputError("shapes of tokens, parents, p_target", found, "(N,), (N,) and (N, V)")
    for q in q_draft:
        if q.shape != shape:
            raise InputError("q_draft", f"shape {tuple(q.shape)}", f"p_target's shape {shape}")


def _same_parent(parents: torch.Tensor) -> torch.Tensor:
    """Bool (n, n): whether two nodes are siblings or one; above the diagonal later ones, below it earlier ones."""
    return parents[:, None] == parents[None, :]


def _rounds(parents: torch.Tensor, device: torch.device) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Yield (first children, their parents), (second children, their parents), ..., on `device`."""
    host = parents.cpu()
    number = _same_parent(host).tril(-1).sum(1)[1:]
    nodes = number.argsort(stable=True) + 1
    sizes = number.bincount().tolist()
    both = torch.stack([nodes, host[nodes]]).to(device, non_blocking=True)
    for part in both.split(sizes, dim=1):
        yield part[0], part[1]
