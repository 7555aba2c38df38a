"""What outputs sum up to: speedups and their limits, losslessness, repetition."""

from __future__ import annotations

import pytest

from gumiho_decoder.cycle import Generation
from gumiho_decoder.measuring.lossless import Comparison
from gumiho_decoder.measuring.runs import Output
from gumiho_decoder.measuring.summary import lossless, repeated_share, speed


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
