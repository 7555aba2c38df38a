"""Who shares a tokenizer with whom, and one model's distribution in another's vocabulary."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes import FakeTokenizer
from gumiho_decoder.drafters.draft_model.vocabulary import Alignment, check_tokenizers
from gumiho_decoder.tiny.making.stream import train_tokenizer
from gumiho_theory import InputError

WORDS = {"<s>": 0, "a": 1, "b": 2, "ab": 3}


@dataclass
class Words:
    """A tokenizer that tells its vocabulary."""

    vocab: dict[str, int] = field(default_factory=lambda: dict(WORDS))

    def get_vocab(self) -> dict[str, int]:
        return dict(self.vocab)

    def __call__(self, text: str) -> dict[str, list[int]]:
        raise AssertionError("where both tell their vocabulary, no text is tried")


@dataclass
class Shifted(FakeTokenizer):
    """Differs from FakeTokenizer in the texts that hold `odd`."""

    odd: str = "é"

    def __call__(self, text: str, **_: object) -> dict[str, list[int]]:
        ids = super().__call__(text)["input_ids"]
        return {"input_ids": [*ids, 0] if self.odd in text else ids}


def test_one_tokenizer_loaded_twice_is_one_tokenizer():
    check_tokenizers(*(train_tokenizer(["some text"], 270) for _ in range(2)), "x")
    check_tokenizers(FakeTokenizer(), FakeTokenizer(), "x")


@pytest.mark.parametrize("flip", [False, True])
def test_more_tokens_in_one_of_them_do_no_harm(flip):
    """Padding or added tokens behind, and what stands in a gap."""
    both = [Words(), Words(WORDS | {"<pad>": 4, "<tool>": 9})]
    check_tokenizers(*(reversed(both) if flip else both), "x")
    one, other = (train_tokenizer(["some text"], 270) for _ in range(2))
    other.add_tokens(["<extra>"])
    assert len(other) > len(one)
    check_tokenizers(*((other, one) if flip else (one, other)), "x")


@pytest.mark.parametrize(
    ("target", "draft", "words"),
    [
        (WORDS, WORDS | {"a": 2, "b": 1}, ["'a' is token 2", "'a' is token 1"]),
        (WORDS, {"<s>": 0, "a": 1, "c": 2}, ["'c' is token 2", "'c' is no token"]),
        ({"<s>": 0, "a": 1, "c": 2}, WORDS, ["'c' is no token", "'c' is token 2"]),
        (WORDS | {"<pad>": 4}, WORDS | {"[PAD]": 4}, ["is no token", "is token 4"]),
        (WORDS | {"<pad>": 4}, WORDS | {"<pad>": 7, "<x>": 5}, ["'<pad>' is token 7", "'<pad>' is token 4"]),
    ],
)
def test_ids_that_mean_something_else_are_refused_by_name(target, draft, words):
    with pytest.raises(InputError) as error:
        check_tokenizers(Words(target), Words(draft), "draft model 'd', tokenizer")
    assert error.value.place == "draft model 'd', tokenizer"
    assert words[0] in error.value.found
    assert words[1] in error.value.wanted


def test_tokenizers_trained_on_different_texts_are_refused():
    with pytest.raises(InputError, match="tokenizer"):
        check_tokenizers(train_tokenizer(["def f(x): pass"] * 9, 270), train_tokenizer(["ὦ ἄνδρες"] * 9, 270), "x")


@pytest.mark.parametrize("odd", ["1", "\t", "İ", "e\u0301", "九", "구", "\U0001f98a", "\u200d", "   ", "\r\n"])
def test_without_vocabularies_texts_tell_tokenizers_apart(odd):
    with pytest.raises(InputError, match="the target's tokenizer"):
        check_tokenizers(FakeTokenizer(), Shifted(odd=odd), "x")
    with pytest.raises(InputError, match="the target's tokenizer"):
        check_tokenizers(Shifted(odd=odd), FakeTokenizer(), "x")


@given(
    st.integers(1, 9),
    st.lists(st.lists(st.floats(-30, 30, width=32), min_size=5, max_size=5), min_size=1, max_size=3),
    st.sampled_from([torch.float32, torch.bfloat16]),
)
@settings(deadline=None)
def test_distributions_are_those_over_the_common_ids(rows, logits, dtype):
    given_ = torch.tensor(logits, dtype=dtype)
    found = Alignment(rows, 5, 5, 0).log_probabilities(given_)
    assert found.shape == (len(logits), rows)
    assert found.dtype == torch.float32
    for row, one in zip(found.tolist(), given_.double().tolist(), strict=True):
        common = one[: min(rows, 5)]
        total = math.log(sum(math.exp(x - max(common)) for x in common)) + max(common)
        wanted = [x - total for x in common] + [-math.inf] * (rows - 5)
        assert row == pytest.approx(wanted, abs=1e-4)


def test_tokens_unknown_to_the_draft_model_are_read_as_the_substitute():
    tokens = torch.tensor([[0, 4, 5], [9, 2, 6]])
    assert Alignment(10, 5, 6, 3).read(tokens).tolist() == [[0, 4, 5], [3, 2, 3]]
    assert Alignment(6, 5, 6, 3).read(tokens) is tokens
