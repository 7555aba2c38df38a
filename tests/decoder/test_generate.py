"""Exactness: every structure gives plain greedy decoding's tokens, and stops where it stops."""

from __future__ import annotations

from dataclasses import fields

import pytest
import torch

from fakes import VOCAB, random_drafter, random_target
from gumiho_decoder.acceptance.rules import follow, path_to
from gumiho_decoder.config import GenerationConfig
from gumiho_decoder.draft import Draft
from gumiho_decoder.logging.recorder import Recorder
from gumiho_decoder.loop import generate, plain
from gumiho_theory import ChainStructure, DynamicTree, InputError, ScoreCalibration, Structure, TemperatureMap
from scripted import ScriptedDrafter, mixed

STRUCTURES = [
    "chain:1",
    "chain:3",
    "chain:7",
    "tree:total=8,top_k=1,depth=7,mlp_topk=1",
    "tree:total=20,top_k=4,depth=7,mlp_topk=6",
    "tree:total=64,top_k=14,depth=7,mlp_topk=35",
    "tree:total=3,top_k=9,depth=5,mlp_topk=9",
    "tree:total=12,top_k=5,depth=1,mlp_topk=5",
    "tree:total=30,top_k=4,depth=7,mlp_topk=9,pruning=3",
    "static:[[1],[2],[3],[1,1],[1,2],[2,1],[3,2],[1,1,1],[1,2,1],[1,1,1,1],[1,1,1,2],[1,1,1,1,1]]",
    "static:[[2],[2,3],[2,3,1]]",
]


def scripted(sequence, wrong=1000):
    """A drafter that is right but for every `wrong`-th token of the sequence."""
    return ScriptedDrafter(sequence, VOCAB, lambda place: 0 if place % wrong == 0 else 1)


def reference(target, prompt, count):
    """The slow twin: no cache, the whole text read anew for each token."""
    tokens = list(prompt)
    for _ in range(count):
        tokens.append(int(target.model(torch.tensor([tokens])).logits[0, -1].argmax()))
    return tuple(tokens[len(prompt) :])


def test_plain_decoding_equals_reading_the_whole_text_for_each_token(target, prompt):
    assert plain(target, prompt, GenerationConfig(40)).token_ids == reference(target, prompt, 40)


def test_plain_decoding_equals_transformers_generate(target, prompt):
    ids = torch.tensor([prompt])
    out = target.model.generate(
        ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=40, pad_token_id=0
    )
    assert plain(target, prompt, GenerationConfig(40)).token_ids == tuple(out[0, len(prompt) :].tolist())


@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("seed", range(3))
def test_every_structure_gives_the_plain_tokens(structure, seed, prompt):
    target = random_target(seed)
    drafter = random_drafter(target, seed)
    config = GenerationConfig(50, Structure.parse(structure))
    assert generate(target, drafter, prompt, config).token_ids == plain(target, prompt, GenerationConfig(50)).token_ids


@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("serial", [1, 2, None])
def test_long_accepted_paths_along_every_branch_give_the_plain_tokens(structure, serial, target, prompt):
    expected = plain(target, prompt, GenerationConfig(90)).token_ids
    drafter = ScriptedDrafter([*prompt, *expected], VOCAB, mixed, serial)
    cycles = []
    out = generate(target, drafter, prompt, GenerationConfig(70, Structure.parse(structure)), cycles.append)
    assert out.token_ids == expected[:70]
    if structure.startswith(("tree:total=20", "tree:total=64", "static:[[1]")):
        assert max(cycle.accepted for cycle in cycles) >= 4
        # Not only first children: the cache is compacted for real.
        assert sum(cycle.path != list(range(len(cycle.path))) for cycle in cycles) >= 3


@pytest.mark.parametrize("heads", [(1, 0), (1, 3), (3, 0), (3, 2), (2, 1)])
@pytest.mark.parametrize("tree", [False, True])
def test_every_split_of_serial_and_parallel_positions_gives_the_plain_tokens(heads, tree, target, prompt):
    serial, parallel = heads
    drafter = random_drafter(target, serial_steps=serial, parallel_heads=parallel, serial_layers=1)
    depth = serial + parallel
    structure = DynamicTree(total=16, top_k=3, depth=depth, mlp_topk=4) if tree else ChainStructure(depth)
    out = generate(target, drafter, prompt, GenerationConfig(40, structure))
    assert out.token_ids == plain(target, prompt, GenerationConfig(40)).token_ids


@pytest.mark.parametrize("wrong", [2, 3, 5, 11, 1000])
def test_a_drafter_that_is_often_right_gives_the_plain_tokens_in_fewer_cycles(wrong, target, prompt):
    expected = plain(target, prompt, GenerationConfig(60)).token_ids
    recorder = Recorder()
    drafter = scripted([*prompt, *expected, *[0] * 9], wrong)
    out = generate(target, drafter, prompt, GenerationConfig(60, ChainStructure(7)), recorder.prompt("a", None, 0))
    trace = recorder.trace({})
    assert out.token_ids == expected
    assert trace.committed.sum() == 59  # prefill's token belongs to no cycle
    assert (trace.accepted <= wrong - 1).all()
    if wrong == 1000:
        assert trace.n_cycles == 8  # 59 tokens at 8 a cycle


@pytest.mark.parametrize("at", range(12))
def test_an_accepted_eos_ends_the_output_there_and_censors_the_cycle(at, prompt):
    free = plain(random_target(3), prompt, GenerationConfig(40)).token_ids
    eos = free[at]
    target = random_target(3, eos=eos)
    first = free.index(eos)
    expected = plain(target, prompt, GenerationConfig(40))
    assert (expected.token_ids, expected.stop_reason) == (free[: first + 1], "eos")
    recorder = Recorder()
    drafter = scripted([*prompt, *free])
    out = generate(target, drafter, prompt, GenerationConfig(40, ChainStructure(7)), recorder.prompt("a", None, 0))
    assert (out.token_ids, out.stop_reason) == (expected.token_ids, "eos")
    if first:  # else prefill's own token ended it, before any cycle
        trace = recorder.trace({})
        depth = (first - 1) % 8 + 1  # place of the EOS among the last cycle's up to eight tokens
        assert trace.stop_reason[-1] == "eos"
        assert trace.committed[-1] == depth
        assert trace.censored_at[-1] == (
            depth if depth <= 7 else -1
        )  # as the bonus token it ends a cycle known in full
        assert trace.accepted[-1] == min(depth, 7)


@pytest.mark.parametrize("limit", range(1, 12))
def test_max_new_tokens_cuts_the_output_but_not_the_accepted_length(limit, target, prompt):
    expected = plain(target, prompt, GenerationConfig(30)).token_ids
    recorder = Recorder()
    drafter = scripted([*prompt, *expected])
    out = generate(target, drafter, prompt, GenerationConfig(limit, ChainStructure(7)), recorder.prompt("a", None, 0))
    assert (out.token_ids, out.stop_reason) == (expected[:limit], "length")
    if limit > 1:
        trace = recorder.trace({})
        assert trace.accepted.tolist() == [7] * trace.n_cycles
        assert trace.committed.sum() == limit - 1
        assert (trace.censored_at == -1).all()


def test_an_eos_behind_the_cut_still_censors_the_accepted_length(prompt):
    free = plain(random_target(3), prompt, GenerationConfig(40)).token_ids
    at = next(i for i in range(3, 8) if free[i] not in free[:i])
    target = random_target(3, eos=free[at])
    recorder = Recorder()
    drafter = scripted([*prompt, *free])
    out = generate(target, drafter, prompt, GenerationConfig(2, ChainStructure(7)), recorder.prompt("a", None, 0))
    trace = recorder.trace({})
    assert (out.token_ids, out.stop_reason) == (free[:2], "length")
    assert (trace.accepted[0], trace.censored_at[0], trace.committed[0]) == (at, at, 1)


@pytest.mark.parametrize("positions", range(9, 30))
@pytest.mark.parametrize("tree", [False, True])
def test_the_end_of_the_context_ends_the_output_and_shrinks_the_draft(positions, tree, prompt):
    target = random_target(1, positions=positions)
    structure = DynamicTree(total=20, top_k=4, depth=7, mlp_topk=6) if tree else ChainStructure(7)
    recorder = Recorder()
    out = generate(
        target, random_drafter(target), prompt, GenerationConfig(100, structure), recorder.prompt("a", None, 0)
    )
    expected = plain(target, prompt, GenerationConfig(100))
    assert out.token_ids == expected.token_ids
    assert len(out.token_ids) == positions - len(prompt)
    assert (out.stop_reason, expected.stop_reason) == ("context", "context")
    if positions > 9:
        trace = recorder.trace({})
        assert (trace.position + trace.drafted < positions).all()
        shrunk_rows = trace.drafted < 7
        assert (trace.censored_at[shrunk_rows] == trace.drafted[shrunk_rows]).all()
        assert (trace.censored_at[~shrunk_rows] == -1).all()


def test_a_prompt_that_leaves_no_position_free_is_refused():
    target = random_target(positions=8)
    for prompt in ([], [1] * 8, [1] * 9):
        with pytest.raises(InputError, match="prompt"):
            generate(target, random_drafter(target), prompt, GenerationConfig(4))


def test_structures_that_the_decoder_does_not_know_are_refused():
    with pytest.raises(InputError, match="chain:0"):
        GenerationConfig(4, ChainStructure(0))
    target = random_target()
    with pytest.raises(InputError, match="depth 8"):
        generate(target, random_drafter(target), [1, 2], GenerationConfig(4, ChainStructure(8)))


def test_vocabulary_is_used_by_the_random_target(prompt):
    """The exactness tests mean little if the text settles on one token."""
    assert len(set(plain(random_target(), prompt, GenerationConfig(50)).token_ids)) > 10
    assert VOCAB > 50


def test_another_drafters_calibration_is_refused_and_its_own_changes_no_output(target, prompt):
    drafter = random_drafter(target)
    tree = Structure.parse("tree:total=20,top_k=4,depth=7,mlp_topk=6")
    maps = (TemperatureMap(3.0), TemperatureMap(0.2))
    own = ScoreCalibration("own", drafter.fingerprint, maps)
    other = ScoreCalibration("other", random_drafter(target, 1).fingerprint, maps)
    config = GenerationConfig(40, tree, calibration=own)
    assert generate(target, drafter, prompt, config).token_ids == plain(target, prompt, GenerationConfig(40)).token_ids
    with pytest.raises(InputError, match="calibration, drafter"):
        generate(target, drafter, prompt, GenerationConfig(40, tree, calibration=other))


def test_following_a_draft_reads_nothing_back_before_the_one_wait(target, prompt):
    """Tensors of the meta device have no contents: whatever the host read of them would fail."""
    with torch.inference_mode():
        drafter = random_drafter(target)
        drafter.start(torch.tensor([*prompt, 5]), target.prefill(prompt).features)
        for text in ("chain:7", "tree:total=20,top_k=4,depth=7,mlp_topk=6"):
            draft = drafter.propose(Structure.parse(text))
            bare = {f.name: getattr(draft, f.name) for f in fields(draft)}
            bare = Draft(**{k: v.to("meta") if isinstance(v, torch.Tensor) else v for k, v in bare.items()})
            node, bonus = follow(bare, torch.empty(bare.n_nodes, VOCAB, device="meta"))
            path, depth = path_to(bare, node)
            assert (node.shape, bonus.shape, depth.shape, len(path)) == ((), (), (), draft.depth + 1)
