"""The rows of the every-position log: what is in them, what is null, and what they are made from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from fakes import VOCAB, random_drafter, random_target
from gumiho_decoder.acceptance.rules import Greedy
from gumiho_decoder.config import GenerationConfig
from gumiho_decoder.draft import DraftOptions
from gumiho_decoder.drafters.ngram import NgramDrafter
from gumiho_decoder.logging.collector import Collector
from gumiho_decoder.logging.every_position import (
    Beyond,
    Log,
    every_position,
    lookahead,
)
from gumiho_decoder.loop import generate
from gumiho_theory import AutoStructure, ChainStructure, EveryPositionLog, InputError, StaticTree, Structure
from logged import PROMPT, STATIC, STRUCTURES, chain_cycles, collected, logged, scripted, text
from scripted import mixed


def test_ranks_probabilities_and_candidates_are_the_drafters_behind_the_true_prefix():
    target, drafter = random_target(), scripted()
    _, _, log = logged(target, drafter, GenerationConfig(30, ChainStructure(3)), top_k=5)
    tokens = [*PROMPT, *text(0, 80)]
    p_target = target.model(torch.tensor([tokens])).logits[0].softmax(-1)
    for row, place in enumerate(log.position.tolist()):
        for depth in range(1, 7):
            true, at = tokens[place + depth], (row, depth - 1)
            log_q = drafter.log_q(place + depth, True)
            assert log.true_token[at] == true
            assert log.rank[at] == (mixed(place + depth) or 41)
            assert log.q_draft[at] == pytest.approx(float(log_q[true].exp()), rel=1e-5)
            assert log.p_target[at] == pytest.approx(float(p_target[place + depth - 1, true]), abs=1e-4)
            assert log.top_ids[at].tolist() == log_q.argsort(descending=True)[:5].tolist()
            assert log.top_q[at].tolist() == pytest.approx(log_q.exp().sort(descending=True).values[:5].tolist())
    assert log.provenance["sampling_top_k"] is None
    assert log.provenance["depth"] == log.depth == 6


@torch.inference_mode()
def test_a_random_drafters_distributions_are_those_of_a_draft_along_the_text():
    target = random_target()
    drafter = random_drafter(target)
    _, out, log = logged(target, drafter, GenerationConfig(24, ChainStructure(3)), top_k=VOCAB)
    assert np.allclose(log.top_q.sum(axis=2), 1.0, atol=1e-5)
    assert (np.diff(log.top_q, axis=2) <= 0).all()
    hit = log.top_ids == log.true_token[:, :, None]
    assert (hit.argmax(axis=2) + 1 == log.rank).all()
    assert np.array_equal(log.top_q[hit].reshape(log.rank.shape), log.q_draft)
    tokens = torch.tensor([*PROMPT, *out.token_ids])
    features = target.prefill(tokens.tolist()).features
    for row in range(0, 17, 4):
        place = int(log.position[row])
        drafter.start(tokens[: place + 1], features[:place])
        branches = drafter.branches(6)
        log_q = branches.root()[0, 0]
        for depth in range(1, 7):
            if depth > 1:
                here = tokens[None, place + depth - 1 : place + depth]
                table, at = branches.deeper(depth - 1, here, torch.zeros_like(here))
                log_q = table[0, at[0, 0]]
            assert log.q_draft[row, depth - 1] == pytest.approx(float(log_q[tokens[place + depth]].exp()), rel=1e-3)
            assert int(log_q.argmax()) == log.top_ids[row, depth - 1, 0]
        drafter.release()


def test_a_chain_is_accepted_as_far_as_ranks_are_one():
    _, _, log = logged(random_target(), random_drafter(random_target()), GenerationConfig(40, ChainStructure(6)))
    ones = np.cumprod(log.rank == 1, axis=1).sum(axis=1)
    assert log.accepted_by("chain:6").tolist() == ones.tolist()
    assert log.accepted_by("chain:1").tolist() == np.minimum(ones, 1).tolist()


def test_what_prompt_lookup_does_not_find_has_no_rank_and_no_probability():
    target = random_target(2, spread=0.4)
    drafter = NgramDrafter(target)
    _, _, log = logged(target, drafter, GenerationConfig(40, ChainStructure(3)))
    nothing = (log.top_ids == -1).all(axis=2)
    assert nothing.any() and not nothing.all()
    assert np.array_equal(nothing, np.isnan(log.q_draft))
    assert (log.rank[nothing] == 0).all()
    missed = ~nothing & (log.rank == 0)
    assert (log.q_draft[missed] == 0).all()
    assert np.array_equal(log.top_ids == -1, np.isnan(log.top_q))


def test_without_text_behind_the_output_lengths_near_its_end_are_lower_bounds():
    target, drafter = random_target(), scripted(rank=lambda place: 1)
    out, collector = collected(target, drafter, GenerationConfig(10, ChainStructure(1)))
    short = Beyond(out.beyond, (), False)
    settings = {"depth": 4, "top_k": 2, "beyond": short}
    rows = every_position(target, drafter, PROMPT, out, collector, [ChainStructure(4)], **settings)
    known = [min(4, 9 + len(out.beyond) - i) for i in range(10)]
    assert [row["accepted"] for row in rows] == [[k] for k in known]
    assert [row["censored"] for row in rows] == [[int(k < 4)] for k in known]
    names = ("true_token", "rank", "q_draft", "p_target", "top_ids", "top_q")
    for row, k in zip(rows, known, strict=True):
        assert row["drafted"] == 4
        for name in names:
            assert [value is None for value in row[name]] == [depth > k for depth in range(1, 5)]
    provenance = {"top_k": 2, "structures": ["chain:4"]}
    log = EveryPositionLog.from_rows([{"prompt_id": "a", "task": None, "turn": 0} | row for row in rows], provenance)
    assert (log.true_token[-1] >= 0).sum() == known[-1]


def test_a_leaf_that_the_known_text_ends_with_is_decided():
    """A bound only where the draft goes on behind the last known token."""
    target, drafter = random_target(), scripted(rank=lambda place: 1)
    out, collector = collected(target, drafter, GenerationConfig(10, ChainStructure(1)))
    out = replace(out, beyond=())
    tree = StaticTree(((1,), (2,), (2, 1), (2, 1, 1)))  # right only at (1,), which is a leaf
    settings = {"depth": 1, "top_k": 0, "beyond": Beyond((), (), False)}
    rows = every_position(target, drafter, PROMPT, out, collector, [tree, ChainStructure(2)], **settings)
    assert [row["accepted"] for row in rows[-3:]] == [[1, 2], [1, 1], [0, 0]]
    assert [row["censored"] for row in rows[-3:]] == [[0, 0], [0, 1], [1, 1]]


def test_where_a_draft_has_no_candidates_a_length_is_decided_without_a_text():
    """Places of candidates that prompt lookup did not find are no draft that goes on."""
    target = random_target(2)
    drafter = NgramDrafter(target)
    at = next(n for n in range(5, 40) if text(2, 80)[n] not in [*PROMPT, *text(2, 80)[:n]])
    out, collector = collected(target, drafter, GenerationConfig(at + 1, ChainStructure(1)))
    out = replace(out, beyond=())
    settings = {"depth": 2, "top_k": 1, "beyond": Beyond((), (), False)}
    rows = every_position(target, drafter, PROMPT, out, collector, [ChainStructure(2), STATIC], **settings)
    assert rows[-1]["accepted"] == rows[-1]["censored"] == [0, 0]


@pytest.mark.parametrize("limit", [1, 5, 12])
def test_plain_steps_behind_the_end_go_on_with_the_targets_own_text(limit):
    target = random_target()
    out, _ = collected(target, scripted(), GenerationConfig(limit, ChainStructure(4)))
    beyond = lookahead(target, out, 9, Greedy(), frozenset())
    assert out.token_ids + beyond.tokens == text(0, 80)[: limit + 9]
    tokens = [*PROMPT, *text(0, 80)]
    p_target = random_target().model(torch.tensor([tokens])).logits[0].softmax(-1)
    stepped = range(len(PROMPT) + limit + len(out.beyond), len(PROMPT) + limit + 9)
    assert beyond.p_target == pytest.approx([float(p_target[i - 1, tokens[i]]) for i in stepped], abs=1e-4)
    assert not beyond.ended


def test_plain_steps_end_at_a_stop_id_and_with_the_context():
    tokens = text(0, 80)
    at = next(n for n in range(14, 70) if tokens[n] not in tokens[:n] and n % 7 == 3)
    cycles = ChainStructure(6)
    for limit in range(at - 5, at + 1):  # the stop id comes among what the last cycle, of seven, verified, or behind
        target = random_target()
        out, _ = collected(target, scripted(rank=lambda place: 1), GenerationConfig(limit, cycles))
        beyond = lookahead(target, out, 9, Greedy(), frozenset({tokens[at]}))
        assert (beyond.tokens, beyond.ended) == (tokens[limit : at + 1], True)
    target = random_target(positions=20)
    out, _ = collected(target, scripted(), GenerationConfig(10, ChainStructure(1)))
    assert lookahead(target, out, 9, Greedy(), frozenset()).tokens == tokens[10:12]
    target = random_target(eos=tokens[at])
    out, _ = collected(target, scripted(), GenerationConfig(80, ChainStructure(3)))
    assert lookahead(target, out, 9, Greedy(), target.eos_token_ids) == Beyond((), (), True)


def test_gathering_reads_what_the_target_would_read_anew():
    target = random_target()
    out, collector = collected(target, scripted(), GenerationConfig(30, STATIC))
    tokens = [*PROMPT, *out.token_ids, *out.beyond]
    read = target.prefill(tokens[:-1])
    torch.testing.assert_close(collector.features, read.features, atol=1e-4, rtol=1e-4)
    assert len(collector.p_target) == len(tokens) - len(PROMPT) - 1
    seen = []
    generate(target, scripted(), PROMPT, GenerationConfig(30, STATIC), wrapping := Collector(seen.append))
    assert seen[0].position == len(PROMPT)
    assert wrapping and not Collector()


def test_the_target_reads_nothing_but_the_steps_behind_the_end(monkeypatch):
    target, drafter = random_target(), scripted()
    config = GenerationConfig(30, ChainStructure(3))
    log = Log(drafter, config, STRUCTURES, 3)
    collector = log.collector()
    out = generate(target, drafter, PROMPT, config, collector)
    read, forward = [], target.model.forward
    monkeypatch.setattr(target.model, "forward", lambda **kw: read.append(kw["input_ids"].numel()) or forward(**kw))
    log.add(target, drafter, PROMPT, out, collector, "a", None, 0)
    assert read == [1] * (6 - len(out.beyond))


def test_an_output_of_one_token_had_no_cycle_and_has_no_rows():
    trace, _, log = logged(random_target(), scripted(), GenerationConfig(1, ChainStructure(3)))
    assert log.n_rows == trace.n_cycles == 0
    assert list(chain_cycles([], 1)) == []


def test_the_log_survives_its_file(tmp_path: Path):
    STATIC.write(tmp_path / "tree.json")
    filed = Structure.parse(f"static:{tmp_path / 'tree.json'}")
    eos = text(3, 80)[20]
    config = GenerationConfig(40, ChainStructure(2))
    _, _, log = logged(random_target(3, eos=eos), scripted(3), config, [filed, ChainStructure(6)])
    log.write(tmp_path / "log.parquet")
    (tmp_path / "tree.json").unlink()
    again = EveryPositionLog.read(tmp_path / "log.parquet")
    assert again.structures == (str(STATIC), "chain:6")
    for name in ("position", "true_token", "rank", "q_draft", "p_target", "top_ids", "top_q", "accepted", "censored"):
        assert np.array_equal(getattr(again, name), getattr(log, name), equal_nan=name[:2] in ("q_", "p_", "to"))
    assert again.task.tolist() == ["task"] * log.n_rows


def test_what_cannot_be_logged_is_refused_before_anything_is_decoded():
    target, drafter = random_target(), random_drafter(random_target())

    def request(structures=(STATIC,), top_k=3, using=drafter, **settings):
        config = GenerationConfig(8, ChainStructure(3), **settings)
        return Log(using, config, tuple(structures), top_k)

    assert request().made({}).n_rows == 0
    for match, arguments in {
        "sampled": {"temperature": 1.0, "candidates": "sampled"},
        "exact": {"temperature": 1.0, "acceptance": "typical"},
        "depth 8": {"structures": [ChainStructure(3), ChainStructure(8)]},
        "auto": {"structures": [AutoStructure()]},
        "chain:3' twice": {"structures": [ChainStructure(3), STATIC, ChainStructure(3)]},
        "structures: .*none": {"structures": []},
        "depth: .*0": {"structures": [ChainStructure(0)]},
        "top_k: .*513": {"top_k": 513},
        "top_k: .*True": {"top_k": True},
    }.items():
        with pytest.raises(InputError, match=match):
            request(**arguments)

    class AtTheEnd:
        name = "other"

    with pytest.raises(InputError, match="'other'"):
        request(using=AtTheEnd())
    out, collector = collected(target, drafter, GenerationConfig(8, ChainStructure(3)))
    settings = {"depth": 3, "beyond": Beyond((), (), False)}
    with pytest.raises(InputError, match="top_k"):
        every_position(target, drafter, PROMPT, out, collector, [], top_k=VOCAB + 1, **settings)
    random = DraftOptions(random=torch.Generator())
    with pytest.raises(InputError, match="sampled"):
        every_position(target, drafter, PROMPT, out, collector, [], top_k=1, options=random, **settings)


def test_a_target_that_has_read_another_text_since_is_refused():
    target, drafter = random_target(), scripted()
    config = GenerationConfig(12, ChainStructure(3))
    log = Log(drafter, config, [ChainStructure(3)], 1)
    collector = log.collector()
    out = generate(target, drafter, PROMPT, config, collector)
    target.prefill([1, 2, 3])
    with pytest.raises(InputError, match="3 tokens in its cache"):
        log.add(target, drafter, PROMPT, out, collector, "a", None, 0)
