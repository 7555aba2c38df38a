"""What of a conversation counts: exactly what the assistant says, whatever the chat template."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chats import (
    ALPACA,
    CHATML,
    COUNTING,
    DATED,
    INST,
    NO_SYSTEM,
    TAGGED,
    THINKING,
    THINKING_PROMPT,
    Slow,
    tokenizer_with,
)
from gumiho_decoder.training.texts.chat import BROKEN, LAST_ONLY, NO_TEMPLATE, REFUSED, Chat, ChatTokens
from gumiho_decoder.training.texts.documents import Turn

TALK = (Turn("system", "be brief"), Turn("user", "what is it?"), Turn("assistant", "it is so"))
LONGER = (*TALK, Turn("user", "the\nsum?"), Turn("assistant", "the answer\n\nis that."), Turn("user", "so?"))
# How an answer ends under each template, and whether its content is trimmed.
ENDS = {CHATML: "<|im_end|>", INST: " <|endoftext|>", ALPACA: "\n\n", TAGGED: "<|im_end|>", None: "\n"}


def chat(template, turns, length: int = 10**6, slow: bool = False) -> Chat:
    tokenizer = tokenizer_with(template)
    return ChatTokens(Slow(tokenizer) if slow else tokenizer, length)(turns)


def said(template, made: Chat) -> list[str]:
    """The texts of the runs of tokens that count."""
    runs, before = [], False
    for token, counts in zip(made.ids, made.mask, strict=True):
        if counts and not before:
            runs.append([])
        if counts:
            runs[-1].append(token)
        before = counts
    return [tokenizer_with(template).decode(run) for run in runs]


@pytest.mark.parametrize(
    ("template", "slow"), [*itertools.product([CHATML, INST, None], [False, True]), (ALPACA, False)]
)
def test_exactly_the_answers_and_what_ends_them_count(template, slow):
    made = chat(template, LONGER, slow=slow)
    lead = " " if template in (INST, None) else ""  # that space belongs to the answer's first token
    assert said(template, made) == [lead + turn.content + ENDS[template] for turn in LONGER if turn.role == "assistant"]
    assert made.note == (NO_TEMPLATE if template is None else None)


def test_a_blank_line_that_ends_a_turn_is_left_out_where_its_token_has_no_place():
    """Encoded alone the prefix ends with other tokens than within the text; the content counts all the same."""
    made = chat(ALPACA, LONGER, slow=True)
    assert [run.rstrip("\n") for run in said(ALPACA, made)] == ["it is so", "the answer\n\nis that."]


def test_the_tokens_are_those_that_decoding_would_make():
    """The whole conversation as the template renders it, encoded at once."""
    tokenizer = tokenizer_with(CHATML)
    rendered = tokenizer.apply_chat_template(
        [{"role": t.role, "content": t.content} for t in LONGER], tokenize=True, return_dict=True
    )
    assert chat(CHATML, LONGER).ids == rendered["input_ids"]


def test_without_a_template_the_turns_are_joined_and_the_end_token_ends_them():
    made = chat(None, TALK)
    tokenizer = tokenizer_with(None)
    text = "system: be brief\nuser: what is it?\nassistant: it is so\n"
    assert tokenizer.decode(made.ids) == text + "<|endoftext|>"
    assert said(None, made) == [" it is so\n<|endoftext|>"]


def test_a_template_that_marks_what_is_generated_is_believed():
    made = chat(TAGGED, LONGER)
    assert said(TAGGED, made) == ["it is so<|im_end|>", "the answer\n\nis that.<|im_end|>"]
    assert (made.ids, made.mask.tolist()) == (chat(CHATML, LONGER).ids, chat(CHATML, LONGER).mask.tolist())


def test_a_template_that_rewrites_earlier_turns_lets_the_last_answer_count():
    thoughts = "<think>\n\n</think>\n\n"
    assert chat(THINKING, TALK).note is None
    made = chat(THINKING, LONGER)
    assert made.note == LAST_ONLY
    assert said(THINKING, made) == [thoughts + "the answer\n\nis that.<|im_end|>"]
    # What stands before it is what decoding would have seen there: the earlier answer without its thoughts.
    assert tokenizer_with(THINKING).decode(made.ids).count("<think>") == 1
    first = chat(THINKING, LONGER, length=len(chat(THINKING, TALK).ids))
    assert first.note == LAST_ONLY and said(THINKING, first) == [thoughts + "it is so<|im_end|>"]


def test_a_prompt_that_begins_the_answer_itself_leaves_all_of_it_to_count():
    made = chat(THINKING_PROMPT, LONGER)
    assert said(THINKING_PROMPT, made) == ["it is so<|im_end|>", "the answer\n\nis that.<|im_end|>"]


def test_a_template_that_changes_what_stands_before_is_said_to():
    made = chat(COUNTING, LONGER)
    assert (made.ids, made.note) == ([], BROKEN)


def test_a_template_that_refuses_a_conversation_is_said_to():
    made = chat(NO_SYSTEM, TALK)
    assert (made.ids, made.note) == ([], REFUSED)
    assert chat(NO_SYSTEM, TALK[1:]).note is None


def test_a_template_that_writes_the_date_writes_the_same_one_every_day():
    assert tokenizer_with(DATED).decode(chat(DATED, TALK).ids).startswith("2024-07-26\n<|im_start|>system")


def test_answers_beyond_the_length_need_not_be_marked():
    whole = chat(CHATML, LONGER)
    cut = chat(CHATML, LONGER, length=20)
    assert cut.ids == whole.ids and (cut.mask[:20] == whole.mask[:20]).all()


CONTENT = st.text(st.sampled_from("the answer\n .<|é🙂"), min_size=1, max_size=12).filter(lambda c: c.strip())


@settings(max_examples=60, deadline=None)
@given(st.sampled_from([CHATML, INST, THINKING, THINKING_PROMPT, None]), st.lists(CONTENT, min_size=1, max_size=4))
def test_with_and_without_places_of_tokens_the_mask_is_the_same_and_holds_the_answers(template, contents):
    """Slow twin: the tokens of each prefix, and how many of them the whole begins with."""
    turns = tuple(Turn(("user", "assistant")[i % 2], content) for i, content in enumerate(contents))
    made, slow = chat(template, turns), chat(template, turns, slow=True)
    assert (made.ids, made.note) == (slow.ids, slow.note)
    if template is not None:  # see above: there a blank line ends the turn
        assert made.mask.tolist() == slow.mask.tolist()
    answers = [turn.content for turn in turns if turn.role == "assistant"]
    found = said(template, made)
    for answer, run in zip(answers[-1:] if made.note == LAST_ONLY else answers, found, strict=True):
        assert answer.strip() in run
        assert len(run) <= len(answer) + len("<think>\n\n</think>\n\n" if template is THINKING else "") + 16
