"""A conversation's tokens as the tokenizer's chat template makes them, and which of them are the assistant's own."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumiho_decoder.training.texts.documents import Turn
from gumiho_theory import InputError

NO_TEMPLATE = "no chat template: turns joined as `role: content`"
LAST_ONLY = "template rewrites earlier turns: only one answer counts, the last that begins within the length"
BROKEN = "left out: the template changes what stands before an answer"
REFUSED = "left out: the template refuses the conversation"
_OTHER = "\ue000"  # an answer that no prompt begins
_TAGGED = re.compile(r"\{%-?\s*generation\s*-?%\}")
# Some templates write today's date, in one of these forms; the same data would be other tokens tomorrow.
_ONE_DAY = "{%- macro strftime_now(form) -%}{{ '2024-07-26' if '-' in form else '26 Jul 2024' }}{%- endmacro -%}"


class Chat(NamedTuple):
    """A conversation's tokens.

    Attributes
    ----------
    ids : list of int
        None of them where the conversation cannot be used.
    mask : bool ndarray, shape (len(ids),)
        True where the assistant says the token: its content, and what ends its turn.
    note : str or None
        What is to be counted: `NO_TEMPLATE`, `LAST_ONLY`, `BROKEN` or `REFUSED`.
    """

    ids: list[int]
    mask: NDArray[np.bool_]
    note: str | None


class ChatTokens:
    """Makes tokens of conversations, of which the first `length` will be used; beyond that the mask may be False.

    An answer is what the template adds to the prompt for it, up to the token that ends the turn (white space behind
    that is nobody's). Where the template itself marks what is generated, that is it.
    """

    def __init__(self, tokenizer, length: int) -> None:
        self.tokenizer, self.length = tokenizer, length
        try:
            self.template = tokenizer.get_chat_template() if tokenizer.chat_template else ""
            self.tagged = _TAGGED.search(self.template) is not None
        except (TypeError, ValueError) as error:
            found = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
            raise InputError("tokenizer, chat template", found, "one template, a text") from error
        if "strftime_now" in self.template:
            self.template = _ONE_DAY + self.template
        self.special = frozenset(tokenizer.all_special_ids) | frozenset(tokenizer.added_tokens_decoder)

    def __call__(self, turns: Sequence[Turn]) -> Chat:
        """Return the tokens of a conversation."""
        if not self.template:
            return self._plain(turns)
        said = [{"role": turn.role, "content": turn.content} for turn in turns]
        answers = [index for index, turn in enumerate(turns) if turn.role == "assistant"]
        try:
            if self.tagged:
                settings = {"chat_template": self.template, "return_assistant_tokens_mask": True}
                out = self.tokenizer.apply_chat_template(said, **settings)
                return Chat(out["input_ids"], np.array(out["assistant_masks"], dtype=bool), None)
            return self._by_prefix(said, answers)
        except InputError:
            raise
        except Exception as error:  # a template is a program, which fails as it likes
            # One that cannot be run at all is no fault of this conversation's.
            if type(error).__name__ == "TemplateSyntaxError":
                raise InputError("tokenizer, chat template", error, "a Jinja template") from error
            return _unusable(REFUSED)

    def _render(self, said: list[dict[str, str]], *, prompt: bool = False) -> str:
        settings = {"chat_template": self.template, "tokenize": False}
        return self.tokenizer.apply_chat_template(said, add_generation_prompt=prompt, **settings)

    def _by_prefix(self, said: list[dict[str, str]], answers: list[int]) -> Chat:
        whole = _Encoded(self.tokenizer, self._render(said))
        if self._mark(whole, said, answers):
            return Chat(whole.ids, whole.mask, None)
        # What decoding would see before the last answer is the template's rendering up to there, whatever it made of
        # earlier answers (reasoning models' templates drop their thoughts).
        for answer in reversed(answers):
            part = _Encoded(self.tokenizer, self._render(said[: answer + 1]))
            if not self._mark(part, said, [answer]):
                return _unusable(BROKEN)
            if part.mask[: self.length].any():
                break
        return Chat(part.ids, part.mask, LAST_ONLY)

    def _mark(self, encoded: _Encoded, said: list[dict[str, str]], answers: list[int]) -> bool:
        """Mark the answers that begin within the length; return whether each stands there behind its prompt."""
        for answer in answers:
            prompt, behind = self._render(said[:answer], prompt=True), self._render(said[: answer + 1])
            if not encoded.text.startswith(behind):
                return False
            start = len(prompt)
            if not behind.startswith(prompt):
                # The prompt begins the answer itself (`<think>`): the answer starts where any other would part from it.
                other = self._render([*said[:answer], {"role": "assistant", "content": _OTHER}])
                start = _common(prompt, other)
                if start < len(self._render(said[:answer])) or not behind.startswith(prompt[:start]):
                    return False
            if encoded.mark(start, self._end(encoded, start, len(behind))) >= self.length:
                break
        return True

    def _end(self, encoded: _Encoded, start: int, end: int) -> int:
        """Return where the turn's end token ends, if only white space follows it; else `end`."""
        stripped = start + len(encoded.text[start:end].rstrip())
        last = encoded.before(stripped) - 1
        return stripped if last >= 0 and encoded.ids[last] in self.special else end

    def _plain(self, turns: Sequence[Turn]) -> Chat:
        text, spans = "", []
        for turn in turns:
            text += f"{turn.role}:"
            start = len(text)
            text += f" {turn.content}\n"
            if turn.role == "assistant":
                spans.append((start, len(text)))
        encoded = _Encoded(self.tokenizer, text, add_special_tokens=True)
        for start, end in spans:
            encoded.mark(start, end)
        eos = self.tokenizer.eos_token_id
        if turns[-1].role == "assistant" and eos not in (None, encoded.ids[-1]):
            return Chat([*encoded.ids, eos], np.append(encoded.mask, True), NO_TEMPLATE)
        return Chat(encoded.ids, encoded.mask, NO_TEMPLATE)


def _unusable(note: str) -> Chat:
    return Chat([], np.zeros(0, dtype=bool), note)


def _common(one: Sequence, other: Sequence) -> int:
    """Return in how many of their first elements two sequences agree."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((index for index, (a, b) in pairs if a != b), min(len(one), len(other)))


class _Encoded:
    """A text and its tokens, none of them marked yet."""

    def __init__(self, tokenizer, text: str, *, add_special_tokens: bool = False) -> None:
        self.text = text
        self._encode = lambda text, **more: tokenizer(
            text, add_special_tokens=add_special_tokens, verbose=False, **more
        )
        out = self._encode(text, **({"return_offsets_mapping": True} if tokenizer.is_fast else {}))
        self.ids: list[int] = out["input_ids"]
        self.mask = np.zeros(len(self.ids), dtype=bool)
        # A token that the tokenizer adds of itself has no place, which reads as (0, 0).
        ends = [end for _, end in out["offset_mapping"]] if tokenizer.is_fast else None
        self._ends = None if ends is None else np.maximum.accumulate(np.array(ends, dtype=np.int64))

    def before(self, place: int) -> int:
        """Return how many tokens end at or before a character."""
        if self._ends is not None:
            return int(np.searchsorted(self._ends, place, side="right"))
        ids = self._encode(self.text[:place])["input_ids"]
        return _common(ids, self.ids)

    def mark(self, start: int, end: int) -> int:
        """Mark the tokens of the characters from `start` to `end`; return the number of the first.

        A token that reaches into them from before is taken as theirs: it holds what they begin with.
        """
        first = self.before(start)
        self.mask[first : self.before(end)] = True
        return first
