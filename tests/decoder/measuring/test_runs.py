"""A run over prompts: timing beside plain decoding and `generate`, conversations, repetition."""

from __future__ import annotations

from pathlib import Path

import pytest

from fakes import FakeTokenizer, random_drafter, random_target
from gumiho_decoder.config import GenerationConfig
from gumiho_decoder.cycle import Generation
from gumiho_decoder.logging.recorder import Recorder
from gumiho_decoder.measuring import speed as speed_module
from gumiho_decoder.measuring.lossless import Comparison
from gumiho_decoder.measuring.prompts import Prompt
from gumiho_decoder.measuring.runs import Output, RunConfig, lossless, repeated_share, run, summary
from gumiho_decoder.measuring.speed import busy, speed
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
    assert summary(outputs)["new_tokens"] == 4 * 24


def test_what_is_not_asked_for_is_not_measured(target):
    outputs, _ = go(target, PROMPTS[:1], RunConfig())
    result = summary(outputs)
    assert result["speedup"] is None
    assert result["baseline_tokens_per_second"] is None
    assert result["lossless"]["checked"] == 0


def test_speedups_are_ratios_of_whole_times_over_the_same_prompts():
    def output(seconds, plain, library):
        def made(s):
            return None if s is None else Generation((1,) * 10, "length", s)

        return Output("a", None, 0, (1,), "", made(seconds), made(plain), made(library), None)

    outputs = [output(1.0, 2.0, 4.0), output(3.0, 4.0, None)]
    result = speed(outputs)
    assert result["tokens_per_second"] == pytest.approx(5.0)
    assert result["plain_speedup"] == pytest.approx(6 / 4)
    assert result["library_speedup"] == pytest.approx(4.0)


def test_a_prompt_is_as_good_as_its_worst_turn():
    def output(prompt, verdict):
        return Output(prompt, None, 0, (1,), "", Generation((1,), "length", 1.0), None, None, Comparison(verdict))

    outputs = [output("a", "equal"), output("a", "tie"), output("b", "different"), output("b", "equal")]
    assert lossless(outputs) == {"checked": 2, "equal": 0, "ties": 1, "different": 1}


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


def test_repeated_four_grams_are_counted_within_each_output():
    def output(ids):
        return Output("a", None, 0, (1,), "", Generation(ids, "length", 1.0), None, None, None)

    assert repeated_share([output((1, 2, 3, 4) * 2)]) == pytest.approx(1 / 5)
    assert repeated_share([output((1, 2, 3, 4)), output((1, 2, 3, 4))]) == 0
    assert repeated_share([output((1, 2))]) is None


def test_the_speedups_interval_resamples_prompts():
    def output(prompt, seconds, plain):
        ours, theirs = Generation((1,) * 10, "length", seconds), Generation((1,) * 10, "length", plain)
        return Output(prompt, None, 0, (1,), "", ours, theirs, None, None)

    alike = speed([output(str(i), 1.0, 2.0) for i in range(9)])
    assert alike["plain_speedup_ci"] == pytest.approx([2.0, 2.0])
    varied = speed([output(str(i), 1.0 + i, 5.0) for i in range(9)])
    low, high = varied["plain_speedup_ci"]
    assert 0.5 < low < varied["plain_speedup"] < high < 2.5
    # Turns of one prompt are no prompts of their own.
    assert speed([output("a", 1.0 + i, 5.0) for i in range(9)])["plain_speedup_ci"] is None


def test_a_busy_machine_is_told_from_a_quiet_one(monkeypatch):
    for running, wanted in ((0.0, False), (0.4, False), (0.6, True), (3.0, True)):
        monkeypatch.setattr(speed_module, "_running", lambda running=running: running)
        assert (busy() is not None) == wanted


@pytest.mark.skipif(not Path("/proc/loadavg").exists(), reason="Linux says how many threads run")
def test_threads_that_run_beside_this_one_are_counted():
    import subprocess
    import sys

    spinning = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        for _ in range(50):
            if speed_module._running() >= 0.5:
                break
        else:
            raise AssertionError("a spinning process was never seen")
    finally:
        spinning.kill()
        spinning.wait()
