"""Two models that share a tokenizer: whether they do, and how one's distribution reads in the other's vocabulary.

An lm_head often has more rows than the tokenizer has tokens, padded to a round number that differs between the sizes
of one family (Qwen2.5: 151,936 and 152,064 rows).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile

import torch
from torch.nn.functional import pad

from gumiho_decoder.target import Target
from gumiho_theory import InputError

# Where tokenizers part ways: numbers and indentation, capitals, accents (composed and not), other scripts, emoji,
# and what a byte fallback or an unknown token stands for.
_PROBES = (
    "The quick brown fox jumps over 13 lazy dogs, 3.14159 times.",
    "def f(x: int) -> str:\n    return f'{x!r}'  # 0x1F\n\n\tif x:\n",
    "Ærøskøbing, naïve café, cafe\u0301, Straße, İstanbul, ﬁne",
    "狐狸有九条尾巴。キツネは九つの尾を持つ。구미호",
    "\U0001f98a\U0001f469\u200d\U0001f4bb \U0001f1f3\U0001f1f4 \u2028 \ufffd",
    "  two spaces  \r\n\n   three\u00a0spaces \t\t",
)


@dataclass(frozen=True)
class Alignment:
    """A draft model's tokens and logits in terms of a target that has the same tokenizer.

    Attributes
    ----------
    target_rows, draft_rows : int
        Rows of the lm_heads: the ids below both are common.
    embedded : int
        Rows of the draft model's embedding: the ids it can read.
    substitute : int
        What it reads in place of any other id. A text cannot be conditioned on a token that a model does not have;
        the draft may turn out worse, and what is decoded stays the target's, which verifies it.
    """

    target_rows: int
    draft_rows: int
    embedded: int
    substitute: int

    @classmethod
    def of(cls, target: Target, draft: Target) -> Alignment:
        """Return the alignment of two models; the substitute is the unknown token, the padding token or token 0."""
        embedded = draft.model.get_input_embeddings().weight.shape[0]
        special = (getattr(draft.tokenizer, name, None) for name in ("unk_token_id", "pad_token_id"))
        substitute = next((i for i in special if i is not None and i < embedded), 0)
        return cls(target.vocab_size, draft.vocab_size, embedded, substitute)

    def read(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return tokens as the draft model reads them, (...) -> (...)."""
        return tokens if self.target_rows <= self.embedded else tokens.where(tokens < self.embedded, self.substitute)

    def log_probabilities(self, logits: torch.Tensor) -> torch.Tensor:
        """Return log-probabilities in the target's vocabulary, (..., draft_rows) -> (..., target_rows), float32.

        They are normalised over the common ids; ids that only the target has are -inf.
        """
        common = min(self.target_rows, self.draft_rows)
        log_q = torch.log_softmax(logits[..., :common].float(), dim=-1)
        return pad(log_q, (0, self.target_rows - common), value=-torch.inf)


def check_tokenizers(target_tokenizer, draft_tokenizer, place: str) -> None:
    """Refuse a draft model whose token ids mean something else than the target's.

    All tokens of the smaller vocabulary have to be in the larger one under the same ids; more tokens in one of them
    (padding, added ones) do no harm. How a text is cut into tokens is the target's business alone. Of tokenizers that
    do not tell their vocabulary, the ids of a few texts are compared.

    `place`: What is refused, for the error. Raises InputError: The tokenizers differ: names the first token, or the
    text, where they do.
    """
    if hasattr(target_tokenizer, "get_vocab") and hasattr(draft_tokenizer, "get_vocab"):
        target, draft = target_tokenizer.get_vocab(), draft_tokenizer.get_vocab()
        smaller, larger = sorted((target, draft), key=len)
        wrong = [token for token, index in smaller.items() if larger.get(token) != index]
        if wrong:
            token = min(wrong, key=smaller.__getitem__)
            found, wanted = (
                f"{token!r} is {'no token' if token not in ids else f'token {ids[token]}'}" for ids in (draft, target)
            )
            raise InputError(place, found, f"the target's tokenizer, where {wanted}")
        return
    for text in _PROBES:
        found, wanted = (list(tokenizer(text)["input_ids"]) for tokenizer in (draft_tokenizer, target_tokenizer))
        if found != wanted:
            at = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(found, wanted, strict=False)))
            raise InputError(
                place,
                f"{text!r}, from token {at} on, is {found[at:][:4]}",
                f"the target's tokenizer: {wanted[at:][:4]}",
            )
