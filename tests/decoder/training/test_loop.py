"""Training a target: resumable to the same weights; the blocks it reads; Muon."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from fakes import FakeTokenizer
from gumiho_decoder.target import Target
from gumiho_decoder.tiny.making.stream import Blocks, evenly, load_stream, save_stream, token_stream, train_tokenizer
from gumiho_decoder.tiny.making.target import TargetConfig, heldout_loss, train_target
from gumiho_decoder.training.loop import LoopConfig
from gumiho_decoder.training.muon import Muon, orthogonal

SHAPE = TargetConfig(
    hidden_size=32,
    intermediate_size=48,
    layers=2,
    heads=2,
    vocab_size=32,
    positions=128,
    tokens_per_step=512,
    lengths=((0.5, 32), (1.0, 64)),
)
# A text whose next token depends on the phase in a period of 11, some tokens occurring twice in it.
PERIOD = [3, 7, 1, 9, 3, 12, 30, 1, 22, 5, 17]
STREAM = np.array(list(itertools.islice(itertools.cycle(PERIOD), 6000)), dtype=np.uint16)


def silent(step: int, loss: float, seconds: float) -> None:
    pass


class CutError(Exception):
    """The session ends in the middle."""


def interrupted_at(last: int):
    def log(step: int, loss: float, seconds: float) -> None:
        if step == last:
            raise CutError

    return log


def equal_weights(a: torch.nn.Module, b: torch.nn.Module) -> bool:
    return all(torch.equal(x, y) for x, y in zip(a.state_dict().values(), b.state_dict().values(), strict=True))


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Target:
    folder = tmp_path_factory.mktemp("target")
    model, _ = train_target(SHAPE, LoopConfig(60, warmup=5), STREAM, folder, silent, resume=False)
    return Target(model, FakeTokenizer(), "periodic")


def test_a_resumed_target_training_ends_at_the_uninterrupted_weights(tmp_path):
    loop = LoopConfig(12, warmup=2, checkpoint_every=5)
    whole, _ = train_target(SHAPE, loop, STREAM, tmp_path / "a", silent, resume=False)
    with pytest.raises(CutError):
        train_target(SHAPE, loop, STREAM, tmp_path / "b", interrupted_at(8), resume=False)
    resumed, _ = train_target(SHAPE, loop, STREAM, tmp_path / "b", silent, resume=True)
    assert equal_weights(whole, resumed)
    shorter, _ = train_target(SHAPE, LoopConfig(11, warmup=2), STREAM, tmp_path / "c", silent, resume=False)
    assert not equal_weights(whole, shorter)


def test_training_lowers_the_heldout_loss(trained):
    assert heldout_loss(trained.model, STREAM, length=64, count=4) < 0.3  # untrained: ln 32 = 3.47


def test_every_epoch_visits_every_block_once():
    blocks = Blocks(np.arange(1000, dtype=np.uint16), length=10, batch=3, seed=1)
    assert blocks.per_epoch == 99
    first = torch.cat([blocks(step) for step in range(33)])
    assert len(set(first[:, 0].tolist())) == 99
    assert (first[:, 1:] - first[:, :-1] == 1).all()
    again = Blocks(np.arange(1000, dtype=np.uint16), length=10, batch=3, seed=1)
    assert torch.equal(again(20), first[60:63])
    assert not torch.equal(blocks(33), first[:3])


def test_evenly_spread_blocks_reach_both_ends():
    rows = evenly(np.arange(100, dtype=np.uint16), length=10, count=4)
    assert rows[0, 0] == 0
    assert rows[-1, -1] == 99


def test_the_tokenizer_gives_back_any_text_and_the_stream_ends_each_document(tmp_path):
    texts = ["def f(x):\n\treturn x  # é\n", "class A: pass\n"] * 20
    tokenizer = train_tokenizer(texts, 300)
    for text in [*texts[:2], "never seen: ☃ \x00 \r\n"]:
        assert tokenizer.decode(tokenizer(text)["input_ids"]) == text
    stream = token_stream(tokenizer, texts)
    assert (stream == tokenizer.eos_token_id).sum() == len(texts)
    assert stream[-1] == tokenizer.eos_token_id
    save_stream(tmp_path / "new" / "s.npy", stream)
    assert np.array_equal(load_stream(tmp_path / "new" / "s.npy"), stream)


def test_orthogonalised_matrices_keep_their_singular_vectors_and_bring_the_values_near_1():
    random = torch.Generator().manual_seed(0)
    for shape in ((3, 8, 24), (2, 16, 40), (2, 40, 16)):
        matrices = torch.randn(shape, generator=random)
        for matrix, made in zip(matrices, orthogonal(matrices), strict=True):
            u, _, v = torch.linalg.svd(matrix, full_matrices=False)
            inside = u.T @ made @ v.T
            assert torch.allclose(inside, torch.diag(inside.diag()), atol=1e-3)
            assert (inside.diag() > 0.3).all() and (inside.diag() < 1.3).all()


def test_a_step_is_that_of_torch_but_for_its_rounding_to_bfloat16():
    random = torch.Generator().manual_seed(1)
    start = [torch.randn(24, 40, generator=random), torch.randn(24, 40, generator=random), torch.randn(40, 8)]
    own, theirs = ([torch.nn.Parameter(w.clone()) for w in start] for _ in range(2))
    settings = dict(lr=0.1, weight_decay=0.1, momentum=0.9)
    ours = Muon(own, **settings)
    torchs = torch.optim.Muon(theirs, **settings, adjust_lr_fn="match_rms_adamw")
    for _ in range(3):
        for a, b in zip(own, theirs, strict=True):
            a.grad = torch.randn(a.shape, generator=random)
            b.grad = a.grad.clone()
        ours.step()
        torchs.step()
    for a, b, w in zip(own, theirs, start, strict=True):
        assert (a - b).norm() < 0.02 * (a - w).norm()
