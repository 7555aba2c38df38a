"""Where an output ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gumiho_theory import InputError


@dataclass(frozen=True)
class Stops:
    """What ends an output, token by token, in this order: a stop id (`eos`), a stop string, the most tokens.

    Attributes
    ----------
    ids : frozenset of int
        Tokens that end an output, included in it.
    strings : tuple of str
        Texts that end an output with the token that completes one.
    tokens : int
        Most new tokens.
    reason : str
        Why it ends there: `length` (as asked for) or `context` (the model's positions are used up).
    decode : callable
        Token ids to text.
    """

    ids: frozenset[int]
    strings: tuple[str, ...]
    tokens: int
    reason: str
    decode: Callable[[Sequence[int]], str]

    @classmethod
    def of(cls, target, prompt: Sequence[int], config) -> Stops:
        """Return what ends an output of `target` (a `Target`) behind `prompt`, as a `GenerationConfig` asks.

        Raises
        ------
        InputError
            The prompt is empty or leaves no position free.
        """
        if isinstance(prompt, str):
            raise InputError("prompt", "a text", "token ids, as target.encode(text) gives them")
        room = target.positions - len(prompt)
        if not prompt or room < 1:
            raise InputError(
                "prompt", f"{len(prompt)} tokens", f"1 to {target.positions - 1} (the model's positions less one)"
            )
        for token in config.stop_token_ids:
            if not 0 <= token < target.vocab_size:
                raise InputError("stop_token_ids", token, f"token ids from 0 to {target.vocab_size - 1}")
        reason = "length" if config.max_new_tokens <= room else "context"
        ids = target.eos_token_ids | frozenset(config.stop_token_ids)
        return cls(ids, config.stop_strings, min(config.max_new_tokens, room), reason, target.decode)

    def cut(self, output: list[int], new: Sequence[int]) -> str | None:
        """Add to the output what may be added of `new`; return why it ends there, or None."""
        for token in new:
            output.append(token)
            if token in self.ids:
                return "eos"
            if self.strings and self._said(output):
                return "stop_string"
            if len(output) == self.tokens:
                return self.reason
        return None

    def _said(self, output: list[int]) -> bool:
        """Whether the last token completes a stop string."""
        longest = max(len(string) for string in self.strings)
        window, text = longest + 8, ""
        # Usually a few tokens say enough, but some say nothing. A character cut in two reads as another: some to spare.
        while len(text) < longest + 4 and window < 2 * (len(output) + longest + 8):
            text = self.decode(output[-window:])
            window *= 2
        return any(string in text for string in self.strings)
