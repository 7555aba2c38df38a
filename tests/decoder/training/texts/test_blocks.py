"""Rows of tokens: no token of a text lost, a conversation a row, a fixed split, an order that follows from the step."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chats import CHATML, COUNTING, tokenizer_with
from gumiho_decoder.training.texts import blocks as train_blocks
from gumiho_decoder.training.texts.blocks import BY_PLACE, Order, TokenBlocks, is_heldout, make_blocks, split_blocks
from gumiho_decoder.training.texts.chat import BROKEN, NO_TEMPLATE
from gumiho_decoder.training.texts.documents import Document, Report, Turn
from gumiho_theory import InputError

END = "<|endoftext|>"


def text(content: str) -> Document:
    return Document((Turn("text", content),))


def talk(*contents: str) -> Document:
    return Document(tuple(Turn(("user", "assistant")[i % 2], content) for i, content in enumerate(contents)))


def ids(content: str) -> list[int]:
    return tokenizer_with(None)(content, add_special_tokens=False)["input_ids"]


def counted(blocks: TokenBlocks) -> list[int]:
    return blocks.tokens[blocks.mask].tolist()


CONTENT = st.text(st.sampled_from("the answer is\n é"), min_size=1, max_size=30).filter(str.strip)


@settings(deadline=None)
@given(st.lists(CONTENT, min_size=1, max_size=5), st.integers(2, 9), st.sampled_from([4, 10**6]))
def test_packing_texts_loses_no_token_and_adds_none_but_what_ends_them(contents, length, part):
    """Slow twin: every text's tokens one after another; the parts of a long one end with a line."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(train_blocks, "_PART", part)
        blocks = make_blocks(map(text, contents), tokenizer_with(CHATML), length, Report())
        parts = [list(train_blocks._parts(content)) for content in contents]
    assert ["".join(some) for some in parts] == contents
    assert all(0 < len(piece) <= part for some in parts for piece in some)
    stream = [token for some in parts for piece in some for token in ids(piece)]
    if part > 30:
        stream = [token for content in contents for token in ids(content + END)]
        left = len(stream) % length
        # A row of a single token has nothing to predict.
        assert counted(blocks) == (stream[:-1] if left == 1 else stream)
        assert blocks.tokens.shape == (len(stream) // length + (left > 1), length)
        assert blocks.mask.reshape(-1)[: len(stream) - (left == 1)].all()
        assert not blocks.tokens[~blocks.mask].any()
    else:
        kept = [token for token in counted(blocks) if token != ids(END)[0]]
        assert kept == stream[: len(kept)] and len(stream) - len(kept) <= 1


def test_a_long_text_is_cut_behind_a_line_or_where_it_must(monkeypatch):
    monkeypatch.setattr(train_blocks, "_PART", 5)
    assert list(train_blocks._parts("ab\nc\ndefghijk\nl")) == ["ab\nc\n", "defgh", "ijk\nl"]


def test_a_beginning_that_the_tokenizer_adds_does_not_count():
    class Begins:
        bos_token_id, eos_token_id, chat_template, is_fast = 7, 8, None, True

        def __call__(self, content, *, add_special_tokens=True, **_):
            return {"input_ids": [7] * add_special_tokens + [ord(c) for c in content]}

    blocks = make_blocks([text("ab"), text("c")], Begins(), 4, Report())
    assert blocks.tokens.tolist() == [[7, 97, 98, 8], [7, 99, 8, 0]]
    assert blocks.mask.tolist() == [[False, True, True, True], [False, True, True, False]]


def test_a_conversation_has_a_row_of_its_own_and_only_its_answers_count():
    tokenizer, report = tokenizer_with(CHATML), Report()
    documents = [talk("q", "it is so", "r", "the sum"), text("the answer"), talk("q" * 60, "too late"), talk("q")]
    blocks = make_blocks(documents, tokenizer, 40, report)
    assert [tokenizer.decode(row[mask]) for row, mask in zip(blocks.tokens, blocks.mask, strict=True)] == [
        "it is so<|im_end|>the sum<|im_end|>",
        "the answer" + END,
    ]
    whole = "<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\nit is so<|im_end|>\n"
    assert tokenizer.decode(blocks.tokens[0]).startswith(whole)
    assert report.counts["left out: nothing of an assistant within 40 tokens"] == 2
    assert report.places["left out: nothing of an assistant within 40 tokens"] == ["document 3", "document 4"]
    assert (report.counts["conversation"], report.counts["text"]) == (1, 1)


def test_a_conversation_longer_than_a_row_is_cut_and_counted():
    tokenizer, report = tokenizer_with(CHATML), Report()
    whole = make_blocks([talk("q", "it is so " * 20)], tokenizer, 200, Report())
    cut = make_blocks([talk("q", "it is so " * 20)], tokenizer, 30, report)
    assert (cut.tokens[0] == whole.tokens[0, :30]).all() and (cut.mask[0] == whole.mask[0, :30]).all()
    assert report.counts["conversation cut at 30 tokens"] == 1


def test_conversations_that_a_template_breaks_or_that_have_none_are_counted():
    report = Report()
    with pytest.raises(InputError, match="no token that counts"):
        make_blocks([talk("q", "a")], tokenizer_with(COUNTING), 40, report)
    assert report.places[BROKEN] == ["document 1"]
    make_blocks([talk("q", "a"), talk("r", "b")], tokenizer_with(None), 40, report)
    assert report.counts[NO_TEMPLATE] == 2


@pytest.mark.parametrize("length", [1, 0, -3])
def test_rows_without_room_for_a_prediction_are_refused(length):
    with pytest.raises(InputError, match="length"):
        make_blocks([text("a")], tokenizer_with(None), length, Report())


@pytest.mark.parametrize("share", [-0.1, 1.0, float("nan")])
def test_a_share_that_is_none_is_refused(share):
    with pytest.raises(InputError, match="heldout_share"):
        split_blocks([text("a")], tokenizer_with(None), 4, Report(), share)


def test_no_document_is_refused():
    with pytest.raises(InputError, match="no document"):
        make_blocks([], tokenizer_with(None), 4, Report())


MANY = [talk(f"question {i}", f"answer {i}") for i in range(400)]


def test_the_split_is_by_document_the_same_in_any_order_and_a_copy_is_on_the_same_side():
    tokenizer, report = tokenizer_with(CHATML), Report()
    train, heldout = split_blocks(MANY, tokenizer, 64, report, 0.1)
    assert len(train) + len(heldout) == 400 and 20 <= len(heldout) <= 65
    wanted = {f"answer {i}<|im_end|>" for i in range(400) if is_heldout(MANY[i], 0.1)}
    rows = zip(heldout.tokens, heldout.mask, strict=True)
    assert {tokenizer.decode(row[mask]) for row, mask in rows} == wanted
    again = split_blocks([*MANY[::-1], *MANY], tokenizer, 64, Report(), 0.1)
    for side, twice in zip((train, heldout), again, strict=True):
        assert {row.tobytes() for row in side.tokens} == {row.tobytes() for row in twice.tokens}
        assert len(twice) == 2 * len(side)
    assert BY_PLACE not in report.counts


def test_a_smaller_share_holds_out_a_part_of_what_a_larger_one_does():
    sets = [{i for i, document in enumerate(MANY) if is_heldout(document, share)} for share in (0.0, 0.02, 0.1, 0.5)]
    assert not sets[0] and sets[0] < sets[1] < sets[2] < sets[3]


def test_one_text_is_held_out_by_its_last_rows_and_the_report_says_so():
    report = Report()
    document = text("the answer is that it is so " * 100)
    train, heldout = split_blocks([document], tokenizer_with(None), 16, report, 0.1)
    whole = make_blocks([document], tokenizer_with(None), 16, Report())
    assert len(heldout) == round(0.1 * len(whole)) > 1
    assert (np.concatenate([train.tokens, heldout.tokens]) == whole.tokens).all()
    assert (np.concatenate([train.mask, heldout.mask]) == whole.mask).all()
    assert report.counts[BY_PLACE] == 1


def test_the_larger_part_is_never_held_out():
    """Of two texts the long one happens to be."""
    found = (text(f"{i} the answer " * 50) for i in range(1000))
    long = next(document for document in found if is_heldout(document, 0.02))
    short = next(document for document in map(text, "abcdef") if not is_heldout(document, 0.02))
    train, heldout = split_blocks([short, long], tokenizer_with(None), 8, Report())
    assert len(heldout) < len(train)


def test_a_single_row_cannot_be_split():
    with pytest.raises(InputError, match="one is held out"):
        split_blocks([text("the answer")], tokenizer_with(None), 64, Report())


def test_blocks_come_back_from_their_file(tmp_path):
    blocks = make_blocks([talk("q", "a"), text("the sum")], tokenizer_with(CHATML), 12, Report())
    blocks.save(tmp_path / "b.npz")
    back = TokenBlocks.load(tmp_path / "b.npz")
    assert (back.tokens == blocks.tokens).all() and (back.mask == blocks.mask).all()
    assert (back.tokens.dtype, back.mask.dtype) == (np.uint32, np.bool_)


def test_a_file_of_something_else_is_refused_by_name(tmp_path):
    rows, mask = np.zeros((2, 4), dtype=np.uint32), np.ones((2, 4), dtype=bool)
    files = {
        "missing": {"tokens": rows},
        "shapes": {"tokens": rows, "mask": mask[:1]},
        "dtype": {"tokens": rows.astype(np.int64), "mask": mask},
        "flat": {"tokens": rows[0], "mask": mask[0]},
        "pickle": {"tokens": np.array([[{}]]), "mask": mask},
    }
    for name, arrays in files.items():
        np.savez(tmp_path / f"{name}.npz", **arrays)
    TokenBlocks(rows, mask).save(tmp_path / "whole.npz")
    (tmp_path / "cut.npz").write_bytes((tmp_path / "whole.npz").read_bytes()[:-30])
    (tmp_path / "text.npz").write_bytes(b"text")
    (tmp_path / "empty.npz").write_bytes(b"")
    np.save(tmp_path / "one.npz.npy", rows)
    (tmp_path / "one.npz.npy").rename(tmp_path / "one.npz")
    for name in (*files, "cut", "text", "empty", "one", "none"):
        with pytest.raises(InputError, match=rf"{name}\.npz"):
            TokenBlocks.load(tmp_path / f"{name}.npz")


@given(st.integers(1, 40), st.integers(1, 12), st.integers(0, 2**40), st.integers(0, 6))
def test_every_row_is_read_once_in_each_epoch(n, batch, seed, epoch):
    order = Order(n, batch, seed)
    steps = range(epoch * n // batch, -(-(epoch + 1) * n // batch))
    rows = np.concatenate([order(step) for step in steps])
    first = epoch * n - steps.start * batch
    assert sorted(rows[first : first + n]) == list(range(n))


@given(st.integers(1, 40), st.integers(1, 4), st.sampled_from([1, 2, 3]), st.integers(0, 50))
def test_several_processes_read_the_batch_of_one(n, share, world, step):
    order = Order(n, share * world, 3)
    parts = [Order(n, share * world, 3)(step, process, world) for process in range(world)]
    assert np.concatenate(parts).tolist() == order(step).tolist()
    assert all(part.shape == (share,) and part.dtype == np.int64 for part in parts)


def test_the_order_follows_from_step_and_seed_alone():
    one, other = Order(50, 8, 1), Order(50, 8, 1)
    forward = [one(step).tolist() for step in range(30)]
    assert [other(step).tolist() for step in reversed(range(30))] == forward[::-1]
    assert forward != [Order(50, 8, 2)(step).tolist() for step in range(30)]
    assert forward[0] != forward[7]  # another epoch, another order


@pytest.mark.parametrize(("n", "batch"), [(0, 4), (4, 0)])
def test_an_order_of_nothing_is_refused(n, batch):
    with pytest.raises(InputError, match="at least 1"):
        Order(n, batch, 0)


def test_a_batch_that_cannot_be_shared_out_is_refused():
    with pytest.raises(InputError, match="multiple"):
        Order(10, 5, 0)(0, 0, 2)
