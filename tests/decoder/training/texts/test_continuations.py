"""The target's own texts: what `generate` writes behind each prompt; a file that an interruption leaves usable."""

from __future__ import annotations

import json

import pytest
import torch

from fakes import VOCAB, random_target
from gumiho_decoder.config import GenerationConfig
from gumiho_decoder.loop import plain
from gumiho_decoder.training.texts.continuations import _groups, continue_texts, write_continuations
from gumiho_decoder.training.texts.documents import Document, Report, Turn, read_documents
from gumiho_theory import InputError

PROMPTS = [[5, 17, 3], [44, 20], [8, 8, 31], [1], [9, 2, 7], [50, 51], [3, 3, 3]]
SOURCES = [f"prompt {i}" for i in range(len(PROMPTS))]
ASKED = {"new_tokens": 6, "temperature": 1.0, "seed": 3, "batch": 2}


def continued(target, prompts=PROMPTS, **changes) -> list[list[int]]:
    return list(continue_texts(target, prompts, **{**ASKED, **changes}))


def test_greedy_continuations_are_those_of_plain_decoding_in_the_order_of_the_prompts(target):
    config = GenerationConfig(max_new_tokens=6)
    wanted = [list(plain(target, prompt, config).token_ids) for prompt in PROMPTS]
    for batch in (1, 2, 10):
        assert continued(target, temperature=0.0, batch=batch) == wanted


def test_the_checkpoints_own_generation_settings_add_nothing():
    target = random_target()
    wanted, sampled = continued(target, temperature=0.0), continued(target)
    target.model.generation_config.update(repetition_penalty=9.0, top_k=1, top_p=0.1)
    assert continued(target, temperature=0.0) == wanted
    assert continued(target) == sampled != wanted


def test_a_continuation_ends_with_its_end_token():
    """Others of its batch go on; what pads it meanwhile is no part of it."""
    free = continued(random_target(), new_tokens=12, batch=4)
    eos = free[0][2]
    target = random_target(eos=eos)
    cut = continued(target, new_tokens=12, batch=4)
    assert len({len(tokens) for tokens in cut}) > 1
    assert all(tokens.count(eos) == (tokens[-1] == eos) for tokens in cut)
    assert all(len(tokens) == 12 or tokens[-1] == eos for tokens in cut)
    assert cut[0] == free[0][: free[0].index(eos) + 1]


def test_what_is_drawn_depends_on_the_seed_and_not_on_the_generator_of_others(target):
    first = continued(target)
    torch.manual_seed(123)
    before = torch.random.get_rng_state()
    assert continued(target) == first
    assert torch.equal(torch.random.get_rng_state(), before)
    assert continued(target, seed=4) != first
    assert all(len(tokens) == 6 and all(0 <= token < VOCAB for token in tokens) for tokens in first)


def test_low_temperatures_come_to_greedy_and_draws_follow_the_targets_distribution(target):
    assert continued(target, temperature=1e-6) == continued(target, temperature=0.0)
    drawn = continued(target, [[5, 17, 3]] * 400, new_tokens=1, temperature=2.0, batch=400)
    p = torch.softmax(target.prefill([5, 17, 3]).logits[0] / 2.0, -1)
    counts = torch.bincount(torch.tensor(drawn)[:, 0], minlength=VOCAB)
    assert (counts / 400 - p).abs().max() < 5 * (0.25 / 400) ** 0.5


@pytest.mark.parametrize("start", range(len(PROMPTS) + 1))
def test_a_later_start_yields_the_same_rest(start, target):
    assert continued(target, start=start) == continued(target)[start:]


def test_groups_are_of_one_length_and_hold_each_prompt_once():
    groups = _groups([3, 2, 3, 1, 3, 2, 3], 3)
    assert groups == [[0, 2, 4], [1, 5], [3], [6]]


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"new_tokens": 0}, "new_tokens"),
        ({"batch": 0}, "batch"),
        ({"temperature": -1.0}, "temperature"),
        ({"temperature": float("nan")}, "temperature"),
        ({"temperature": float("inf")}, "temperature"),
        ({"seed": -1}, "seed"),
        ({"new_tokens": 254}, "prompt 1"),
        ({"prompts": [[1], []]}, "prompt 2"),
    ],
)
def test_what_cannot_be_continued_is_refused(change, place, target):
    with pytest.raises(InputError, match=place):
        continued(target, **change)


def test_an_interrupted_file_is_taken_up_and_ends_as_if_it_had_not_been(target, tmp_path):
    whole, path = tmp_path / "whole.jsonl", tmp_path / "c.jsonl"
    part = tmp_path / "c.jsonl.part"
    write_continuations(target, PROMPTS, SOURCES, whole, **ASKED)
    for stop in (0, 1, 4):

        def kill(done, stop=stop):
            if done == stop:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            write_continuations(target, PROMPTS, SOURCES, path, **ASKED, progress=kill)
        assert not path.exists()
        assert len(part.read_bytes().splitlines()) == 1 + stop
        with part.open("ab") as file:
            file.write(b'{"text": "half of a li')
    seen = []
    write_continuations(target, PROMPTS, SOURCES, path, **ASKED, progress=seen.append)
    assert seen == [4, 5, 6, 7]  # nothing was made twice
    assert path.read_bytes() == whole.read_bytes() and not part.exists()


def test_the_file_is_training_data(target, tmp_path):
    path = tmp_path / "c.jsonl"
    write_continuations(target, PROMPTS, SOURCES, path, **ASKED)
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert [row["source"] for row in rows] == SOURCES
    made = [target.decode(prompt + tokens) for prompt, tokens in zip(PROMPTS, continued(target), strict=True)]
    documents = list(read_documents([str(path)], Report()))
    assert documents == [Document((Turn("text", content),)) for content in made]


def test_a_part_of_another_call_or_of_something_else_is_left_alone(target, tmp_path):
    path, part = tmp_path / "c.jsonl", tmp_path / "c.jsonl.part"

    def kill(done):
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_continuations(target, PROMPTS, SOURCES, path, **ASKED, progress=kill)
    kept = part.read_bytes()
    other = random_target(1)
    calls = [
        (target, PROMPTS, SOURCES, {"seed": 4}),
        (target, PROMPTS, SOURCES, {"temperature": 0.5}),
        (target, PROMPTS[::-1], SOURCES, {}),
        (target, PROMPTS, SOURCES[::-1], {}),
        (other, PROMPTS, SOURCES, {}),
    ]
    for by, prompts, sources, changes in calls:
        with pytest.raises(InputError, match=r"c\.jsonl\.part: found another call's"):
            write_continuations(by, prompts, sources, path, **{**ASKED, **changes})
        assert part.read_bytes() == kept
    for data in (b"something\n", kept + b"{}\n", kept + b"no\n", kept + b'{"source": "prompt 5"}\n'):
        part.write_bytes(data)
        with pytest.raises(InputError, match="another call's"):
            write_continuations(target, PROMPTS, SOURCES, path, **ASKED)
        assert part.read_bytes() == data


def test_a_file_that_is_there_is_not_written_over(target, tmp_path):
    (tmp_path / "c.jsonl").write_text("mine")
    with pytest.raises(InputError, match="there already"):
        write_continuations(target, PROMPTS, SOURCES, tmp_path / "c.jsonl", **ASKED)
    assert [path.name for path in tmp_path.iterdir()] == ["c.jsonl"]
    with pytest.raises(InputError, match="sources"):
        write_continuations(target, PROMPTS, SOURCES[1:], tmp_path / "d.jsonl", **ASKED)
    with pytest.raises(InputError, match="no/d"):
        write_continuations(target, PROMPTS, SOURCES, tmp_path / "no" / "d.jsonl", **ASKED)
