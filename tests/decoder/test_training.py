"""Training: resumable to the same weights, and aligned: what a head learns is the position at which it drafts."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from fakes import FakeTokenizer
from gumiho_decoder.config import GenerationConfig
from gumiho_decoder.data import Blocks, evenly, load_stream, save_stream, token_stream, train_tokenizer
from gumiho_decoder.drafters.gumiho import GumihoDrafter
from gumiho_decoder.drafters.gumiho_model import GumihoConfig
from gumiho_decoder.loop import generate, plain
from gumiho_decoder.recorder import Recorder
from gumiho_decoder.target import Target
from gumiho_decoder.train_drafter import DrafterTraining, heldout_accuracy, train_gumiho
from gumiho_decoder.train_target import TargetConfig, heldout_loss, train_target
from gumiho_decoder.training import LoopConfig
from gumiho_theory import ChainStructure

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


def test_a_resumed_drafter_training_ends_at_the_uninterrupted_weights(trained, tmp_path):
    loop, training = LoopConfig(8, warmup=2, checkpoint_every=3), DrafterTraining(length=32, batch=4)
    shape = GumihoConfig.for_target(trained)
    whole, _ = train_gumiho(trained, shape, training, loop, STREAM, tmp_path / "a", silent, resume=False)
    with pytest.raises(CutError):
        train_gumiho(trained, shape, training, loop, STREAM, tmp_path / "b", interrupted_at(5), resume=False)
    resumed, _ = train_gumiho(trained, shape, training, loop, STREAM, tmp_path / "b", silent, resume=True)
    assert equal_weights(whole, resumed)


@pytest.mark.parametrize(("serial", "parallel"), [(2, 5), (1, 3)])
def test_heads_learn_the_position_at_which_they_draft(serial, parallel, trained, tmp_path):
    """Trained on a periodic text, every position of the draft is accepted: one index off, and none of its head's is."""
    assert plain(trained, PERIOD * 2, GenerationConfig(22)).token_ids == tuple(PERIOD * 2)
    shape = GumihoConfig.for_target(trained, serial_steps=serial, parallel_heads=parallel)
    training = DrafterTraining(length=64, batch=8)
    loop = LoopConfig(250, warmup=5)
    model, _ = train_gumiho(trained, shape, training, loop, STREAM, tmp_path, silent, resume=False)
    accuracy = heldout_accuracy(trained, model, STREAM, length=64, count=8)
    assert len(accuracy) == serial + parallel
    assert min(accuracy) > 0.9
    recorder = Recorder()
    depth = serial + parallel
    drafter = GumihoDrafter(model, trained, "periodic")
    config = GenerationConfig(60, ChainStructure(depth))
    generate(trained, drafter, PERIOD * 2, config, recorder.prompt("a", None, 0))
    assert recorder.trace({}).tau() > 0.75 * (depth + 1)


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
