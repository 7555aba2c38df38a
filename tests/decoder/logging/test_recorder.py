"""What a trace row says is what happened."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fakes import VOCAB, random_drafter
from gumiho_decoder.config import GenerationConfig
from gumiho_decoder.logging.recorder import Recorder, environment
from gumiho_decoder.loop import generate, plain
from gumiho_theory import ChainStructure, ScoreCalibration, Structure, TemperatureMap, Trace
from scripted import ScriptedDrafter, mixed


def record(target, drafter, prompt, structure, count=50):
    recorder = Recorder()
    out = generate(target, drafter, prompt, GenerationConfig(count, structure), recorder.prompt("a", "task", 0))
    return recorder.trace({"structure": str(structure)}), out


@pytest.mark.parametrize("structure", ["chain:7", "tree:total=30,top_k=5,depth=7,mlp_topk=8"])
def test_rows_agree_with_the_text_read_anew(structure, target, prompt):
    trace, out = record(target, random_drafter(target), prompt, Structure.parse(structure))
    tokens = [*prompt, *out.token_ids]
    p_target = target.model(torch.tensor([tokens])).logits[0].softmax(-1)
    assert trace.position.tolist() == (len(prompt) + np.cumsum([0, *trace.committed[:-1]])).tolist()
    assert trace.committed.sum() == len(out.token_ids) - 1
    for row in range(trace.n_cycles):
        reached = min(trace.accepted[row] + 1, trace.drafted[row])
        for depth in range(1, trace.drafted[row] + 1):
            at = trace.position[row] + depth
            if depth > reached:
                assert trace.rank[row, depth - 1] == 0
                assert np.isnan(trace.q_draft[row, depth - 1])
                assert np.isnan(trace.p_target[row, depth - 1])
            elif at < len(tokens):  # the last cycle's verified length may reach behind the cut
                expected = float(p_target[at - 1, tokens[at]])
                assert trace.p_target[row, depth - 1] == pytest.approx(expected, abs=1e-4)
                assert trace.rank[row, depth - 1] >= (1 if structure == "chain:7" else 0)


def test_in_a_chain_what_is_accepted_has_rank_one_and_what_is_refused_has_not(target, prompt):
    trace, _ = record(target, random_drafter(target), prompt, ChainStructure(7), 120)
    risk = trace.at_risk()
    hit = risk & (trace.accepted[:, None] >= np.arange(1, 8))
    assert hit.any()
    assert (trace.rank[hit] == 1).all()
    assert (trace.rank[risk & ~hit] > 1).all()


def test_the_rank_is_the_place_of_the_true_token_among_the_drafters_candidates(target, prompt):
    script = [*prompt, *plain(target, prompt, GenerationConfig(90)).token_ids]
    structure = Structure.parse("static:[[1],[2],[3],[1,1],[1,2],[2,1],[1,1,1],[1,1,2],[1,1,1,1]]")
    trace, _ = record(target, ScriptedDrafter(script, VOCAB, mixed), prompt, structure, 70)
    for row in range(trace.n_cycles):
        for depth in range(1, trace.drafted[row] + 1):
            rank = trace.rank[row, depth - 1]
            place = trace.position[row] + depth
            if rank and place < len(script):
                # The script puts a token that it leaves out at rank 41.
                assert rank == (mixed(place) or 41)
    assert len(set(trace.rank[trace.rank > 0].tolist())) >= 4


def test_behind_a_leaf_nothing_was_ranked(target, prompt):
    """At a static tree's shallow leaf the next position is at risk, but the drafter has no candidates there."""
    script = [*prompt, *plain(target, prompt, GenerationConfig(90)).token_ids]
    structure = Structure.parse("static:[[1],[2],[1,1],[1,1,1]]")
    trace, _ = record(target, ScriptedDrafter(script, VOCAB, lambda _: 2), prompt, structure, 40)
    assert (trace.accepted == 1).all()
    assert (trace.rank[:, 0] == 2).all()
    assert (trace.rank[:, 1] == 0).all()
    assert np.isnan(trace.q_draft[:, 1]).all()
    assert not np.isnan(trace.p_target[:, 1]).any()


@pytest.mark.parametrize("betas", [(1.0,), (2.0, 0.5, 1.5)])
def test_a_dynamic_tree_s_promise_is_the_sum_of_its_calibrated_path_probabilities(betas, target, prompt):
    drafter, structure = random_drafter(target), Structure.parse("tree:total=20,top_k=3,depth=5,mlp_topk=4")
    calibration = ScoreCalibration("own", drafter.fingerprint, tuple(TemperatureMap(beta) for beta in betas))
    recorder, promised = Recorder(), []
    record = recorder.prompt("a", None, 0)

    def look(cycle):
        record(cycle)
        draft, paths = cycle.draft, [1.0]
        for node in range(1, draft.n_nodes):
            parent = int(draft.parents[node])
            log_q = draft.log_q[draft.row[parent]] * calibration.at(int(draft.depths[node])).beta
            paths.append(paths[parent] * float(log_q.softmax(-1)[draft.tokens[node]]))
        promised.append(sum(paths[1:]))

    generate(target, drafter, prompt, GenerationConfig(30, structure, calibration=calibration), look)
    assert len(promised) > 5
    assert recorder.trace({}).expected_accepted.tolist() == pytest.approx(promised, rel=1e-4)


def test_other_structures_promise_nothing(target, prompt):
    trace, _ = record(target, random_drafter(target), prompt, ChainStructure(4), 12)
    assert np.isnan(trace.expected_accepted).all() and not trace.missing


def test_times_are_measured_and_the_trace_survives_its_file(target, prompt, tmp_path):
    script = [*prompt, *plain(target, prompt, GenerationConfig(50)).token_ids]
    trace, _ = record(target, ScriptedDrafter(script, VOCAB, lambda place: place % 4), prompt, ChainStructure(5))
    for part in (trace.draft_seconds, trace.verify_seconds, trace.other_seconds):
        assert (part > 0).all()
    trace.write(tmp_path / "t.parquet")
    again = Trace.read(tmp_path / "t.parquet")
    assert again.tau() == trace.tau()
    assert again.provenance["structure"] == "chain:5"
    assert np.array_equal(again.rank, trace.rank)


def test_provenance_names_versions_device_and_arguments():
    facts = environment(torch.device("cpu"), torch.float32)
    assert facts["torch"] == torch.__version__
    assert facts["dtype"] == "float32"
    for key in ("transformers", "python", "device", "threads", "arguments"):
        assert facts[key] is not None
