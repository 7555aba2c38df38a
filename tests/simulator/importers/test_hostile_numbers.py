"""Several files are one log, and numbers that no engine can have written are refused, not summed."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from gumiho_simulator.importers import import_logs
from gumiho_theory import AcceptanceCounts, InputError

HUGE = int("1" + "0" * 400)


def sglang(name: str, histogram: list[int]) -> dict[str, Any]:
    cycles, drafts = sum(histogram), sum(i * n for i, n in enumerate(histogram))
    fields = {"id": name, "completion_tokens": cycles + drafts, "spec_verify_ct": cycles}
    return {"text": "", "meta_info": fields | {"spec_num_correct_drafts": drafts, "spec_accept_histogram": histogram}}


def spec_bench(number: int, lengths: list[int]) -> dict[str, Any]:
    choice = {"index": 0, "turns": ["a"], "decoding_steps": [len(lengths)], "new_tokens": [sum(lengths)]}
    choice |= {"wall_time": [1.0], "accept_lengths": lengths}
    return {"question_id": number, "category": "c", "model_id": "m", "choices": [choice], "tstamp": 0.0}


@pytest.mark.parametrize(
    "records",
    [
        [sglang("a", [4, 2, 1]), sglang("b", [1, 1, 1, 3, 2]), sglang("c", [5])],
        [spec_bench(1, [1, 2, 1]), spec_bench(2, [5, 4, 1])],
    ],
)
def test_files_of_one_log_say_what_their_concatenation_says(tmp_path, records) -> None:
    """Unknown draft depths are the longest accepted draft of all files, not of each."""
    paths = []
    for number, record in enumerate(records):
        paths.append(tmp_path / f"{number}.jsonl")
        paths[-1].write_text(json.dumps(record) + "\n")
    together = tmp_path / "together.jsonl"
    together.write_text("".join(path.read_text() for path in paths))
    split, whole = (
        log if isinstance(log, AcceptanceCounts) else log.counts_by_prompt()
        for log in (import_logs(paths).log, import_logs([together]).log)
    )
    assert split.groups == whole.groups
    assert split.at_risk is not None and whole.at_risk is not None
    assert np.array_equal(split.at_risk, whole.at_risk)
    assert split.survival() == pytest.approx(whole.survival())


@pytest.mark.parametrize(
    "entry",
    [
        {"id": "a", "num_spec_steps": 1, "num_accepted_draft_tokens": 10**12, "acceptance_histogram": None},
        {
            **{"id": "a", "num_spec_steps": 10, "num_accepted_draft_tokens": 50, "acceptance_histogram": None},
            **{"num_draft_tokens": 30, "num_spec_tokens": 3},
        },
        {"id": "a", "acceptance_histogram": [9007199254740991] * 128, "num_spec_steps": 5},
        {"id": "a", "acceptance_histogram": [3, 2, 1], "num_spec_steps": 6, "mean_acceptance_length": HUGE},
        {"question_id": 1, "choices": [{"index": 0, "turns": ["a"], "idxs": [3], "new_tokens": [2**53 - 1]}]},
    ],
)
def test_numbers_that_cannot_be_are_an_error(read_text, entry) -> None:
    with pytest.raises(InputError):
        read_text(entry, form="eagle" if "choices" in entry else "vllm-request")


def test_a_server_that_restarted_between_scrapes_loses_nothing(read_text) -> None:
    def scrape(drafts: int, positions: list[int]) -> list[str]:
        name = 'vllm:spec_decode_num_{}_total{{engine="0"{}}} {}'
        lines = [name.format("drafts", "", drafts), name.format("accepted_tokens", "", sum(positions))]
        return lines + [name.format("accepted_tokens_per_pos", f',position="{i}"', n) for i, n in enumerate(positions)]

    reading = read_text(*scrape(1000, [800, 600, 300]), *scrape(10, [8, 4]))
    assert isinstance(reading.log, AcceptanceCounts)
    assert sorted(reading.log.cycles.tolist()) == [10, 1000]
    assert reading.log.tau() == pytest.approx(1 + (1700 + 12) / 1010)
    assert "restarted" in reading.warnings[0]
