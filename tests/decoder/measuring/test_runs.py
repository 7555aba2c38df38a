"""A run over prompts: timing beside plain decoding and `generate`, conversations."""

from __future__ import annotations

import pytest

from fakes import FakeTokenizer, random_drafter, random_target
from gumiho_decoder.config import GenerationConfig
from gumiho_decoder.logging.recorder import Recorder
from gumiho_decoder.measuring.prompts import Prompt
from gumiho_decoder.measuring.runs import Output, RunConfig, run
from gumiho_decoder.measuring.summary import lossless, summarize
from gumiho_theory import ChainStructure, InputError

PROMPTS = [Prompt(f"p{i}", "t", (text,), False) for i, text in enumerate(["hello", "speculate", "draft!", "verify"])]


def go(target, prompts, config):
    recorder = Recorder()
    seen: list[Output] = []
    drafter = random_drafter(target)
    outputs = run(target, drafter, prompts, GenerationConfig(24, ChainStructure(4)), config, recorder, seen.append)
    assert seen == outputs
    return outputs, recorder.trace({})


def test_outputs_are_compared_and_timed(target):
    outputs, trace = go(target, PROMPTS, RunConfig(plain=True, check=True, library=2))
    assert lossless(outputs) == {"checked": 4, "equal": 4, "ties": 0, "different": 0}
    assert [o.library is not None for o in outputs] == [True, False, False, True]
    assert all(o.library.token_ids == o.plain.token_ids for o in outputs if o.library)
    assert set(trace.prompts) == {p.prompt_id for p in PROMPTS}
    assert summarize(outputs)["new_tokens"] == 4 * 24


def test_what_is_not_asked_for_is_not_measured(target):
    outputs, _ = go(target, PROMPTS[:1], RunConfig())
    result = summarize(outputs)
    assert result["speedup"] is None
    assert result["baseline_tokens_per_second"] is None
    assert result["lossless"]["checked"] == 0


def test_a_prompt_too_long_for_the_model_is_found_before_anything_is_decoded():
    target = random_target(positions=32)
    recorder = Recorder()
    prompts = [*PROMPTS, Prompt("long", None, ("x" * 32,), False)]
    with pytest.raises(InputError, match=r"'long', turn 0: found 32 tokens, wanted 1 to 31"):
        run(target, random_drafter(target), prompts, GenerationConfig(4), RunConfig(), recorder, lambda _: None)
    assert not recorder


def test_later_turns_continue_the_conversation(target):
    outputs, trace = go(target, [Prompt("c", None, ("hi", "more"), True)], RunConfig(check=True))
    first, second = outputs
    assert [o.turn for o in outputs] == [0, 1]
    expected = FakeTokenizer()(f"hi\n{first.text}\nmore")["input_ids"]
    assert list(second.prompt) == expected
    assert set(trace.turn.tolist()) == {0, 1}
    assert lossless(outputs)["equal"] == 1


def test_a_chat_template_is_applied_where_the_tokenizer_has_one():
    class Chat(FakeTokenizer):
        def apply_chat_template(self, said, **_: object) -> str:
            return "|".join(f"{m['role'][0]}:{m['content']}" for m in said) + "|a:"

    target = random_target()
    target.tokenizer = Chat(chat_template="yes")
    outputs, _ = go(target, [Prompt("c", None, ("hi", "more"), True), Prompt("p", None, ("hi",), False)], RunConfig())
    assert list(outputs[0].prompt) == FakeTokenizer()("u:hi|a:")["input_ids"]
    assert list(outputs[1].prompt) == FakeTokenizer()(f"u:hi|a:{outputs[0].text}|u:more|a:")["input_ids"]
    assert list(outputs[2].prompt) == FakeTokenizer()("hi")["input_ids"]
