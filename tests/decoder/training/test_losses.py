"""Training losses: what is masked contributes nothing, and a mask that is all True changes nothing."""

from __future__ import annotations

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import cross_entropy, smooth_l1_loss

from fakes import VOCAB, random_target
from gumiho_decoder.drafters.eagle.drafter import EagleModel
from gumiho_decoder.drafters.eagle.serial import SerialConfig
from gumiho_decoder.drafters.gumiho.model import GumihoConfig, GumihoModel
from gumiho_decoder.drafters.hydra.model import HydraModel
from gumiho_decoder.drafters.medusa import MedusaModel
from gumiho_decoder.training.config import DEFAULTS, EQUAL_HEADS, TrainConfig
from gumiho_decoder.training.losses import (
    HeadWeights,
    Read,
    feature_terms,
    hydra_terms,
    language_terms,
    mean_loss,
    medusa_terms,
    serial,
)
from gumiho_decoder.training.methods import Learner, new_model
from gumiho_theory import InputError

LENGTH = 14
SMALL = {
    "gumiho": dict(serial_steps=2, parallel_heads=3, head_blocks=1, head_share=0.5),
    "eagle": {},
    "medusa": dict(heads=3),
    "hydra": dict(heads=3, layers=2, prefix=True),
    "draft-model": dict(layers=1),
}
TARGET = random_target(spread=0.2)
TOKENS = torch.randint(VOCAB, (4, LENGTH), generator=torch.Generator().manual_seed(5))


def filled(model: torch.nn.Module) -> torch.nn.Module:
    """Random weights everywhere: heads that start at zero would hide what they read."""
    random = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for weight in model.parameters():
            weight.copy_(torch.randn(weight.shape, generator=random) * 0.15)
    return model


def config_of(method: str, **changes) -> TrainConfig:
    return TrainConfig.of(method, **{**SMALL[method], "length": LENGTH, "batch": 4, "steps": 5, **changes})


def learner_of(method: str, **changes) -> Learner:
    config = config_of(method, **changes)
    return Learner(TARGET, filled(new_model(TARGET, config)), config)


def loss_of(learner: Learner, tokens, mask, whole=None, first: int = 0, features=None) -> torch.Tensor:
    if features is None and learner._config.method != "draft-model":
        features = Read.of(TARGET, tokens).features
    return learner(tokens, mask, features, mask if whole is None else whole, 3, first)


def plain_feature_loss(target, model, tokens, noise, places=None):
    """The unmasked loss as the released code has it, written out: means over everything there is."""
    head = target.model.get_output_embeddings()
    read = Read.of(target, tokens)

    def term(predicted, true):
        log_q, p = head(predicted).log_softmax(-1), head(true).softmax(-1)
        return smooth_l1_loss(predicted, true) - 0.1 * (p * log_q).sum(-1).mean()

    predicted, windows = serial(model, read.embedded, read.features + noise)
    loss = term(predicted, read.features[:, 1:])
    heads = getattr(model, "heads", None) or []
    for j in range(len(heads)):
        window = model.config.window
        ahead = model.heads(windows)[j][:, : LENGTH - 1 - window - len(heads)]
        shifted = read.features[:, window + 1 + j :][:, : ahead.shape[1]]
        chosen = slice(None) if places is None else places
        loss = loss + term(ahead[:, chosen], shifted[:, chosen])
    return loss


def plain_medusa_loss(target, model, tokens):
    heads, features = model.config.medusa_heads, Read.of(target, tokens).features
    known = LENGTH - heads - 1
    logits = model(features[:, :known], heads)
    wanted = (tokens[:, i + 2 : i + 2 + known].flatten() for i in range(heads))
    return sum(0.8 ** (i + 1) * cross_entropy(logits[i].flatten(0, 1), right) for i, right in enumerate(wanted))


def plain_hydra_loss(target, model, tokens):
    read, heads = Read.of(target, tokens), model.config.hydra_heads
    p = target.model.get_output_embeddings()(read.features).softmax(-1)
    condition, loss = model.condition(read.features), 0.0
    for i in range(heads):
        rows = []
        for t in range(LENGTH - heads - 1):
            path = torch.cat([condition[:, t], *(read.embedded[:, t + 1 + k] for k in range(i + 1))], dim=-1)
            rows.append(-(p[:, t + 1 + i] * model.heads[i](path).log_softmax(-1)).sum(-1))
        loss = loss + torch.stack(rows).mean()
    return loss


def test_with_every_token_counted_the_losses_are_the_plain_means():
    shape = GumihoConfig.for_target(TARGET, parallel_heads=3, head_blocks=1)
    noise = torch.rand((4, LENGTH, TARGET.hidden_size)) - 0.5
    read = Read.of(TARGET, TOKENS)
    for model in (GumihoModel(shape), EagleModel(SerialConfig.for_target(TARGET))):
        for places in (None, torch.tensor([5, 0, 3])):
            terms = feature_terms(TARGET, filled(model), read, noise=noise, places=places, heads=HeadWeights(1.0, 1.0))
            plain = plain_feature_loss(TARGET, model, TOKENS, noise, places)
            assert torch.allclose(mean_loss(terms, read.mask), plain, atol=1e-6)
    medusa = filled(MedusaModel.new(TARGET, medusa_heads=3))
    assert torch.allclose(
        mean_loss(medusa_terms(medusa, read), read.mask), plain_medusa_loss(TARGET, medusa, TOKENS), atol=1e-6
    )
    hydra = filled(HydraModel.new(TARGET, hydra_heads=3, prefix=True))
    assert torch.allclose(
        mean_loss(hydra_terms(TARGET, hydra, read), read.mask), plain_hydra_loss(TARGET, hydra, TOKENS), atol=1e-6
    )
    draft = new_model(TARGET, config_of("draft-model"))
    plain = draft(input_ids=TOKENS, labels=TOKENS, use_cache=False).loss
    assert torch.allclose(mean_loss(language_terms(draft, TOKENS), read.mask), plain, atol=1e-6)


@pytest.mark.parametrize("method", DEFAULTS)
def test_tokens_behind_the_last_counted_one_change_neither_loss_nor_gradient(method):
    """Padding and what follows it: only the predicted token's mask decides, and attention looks back only."""
    learner, end = learner_of(method), 9
    mask = torch.zeros_like(TOKENS, dtype=torch.bool)
    mask[:, 4:end] = True
    other = TOKENS.clone()
    other[:, end:] = (other[:, end:] + 7) % VOCAB
    found = []
    for tokens in (TOKENS, other):
        learner.zero_grad()
        loss = loss_of(learner, tokens, mask)
        loss.backward()
        found.append([loss.detach(), *(w.grad.clone() for w in learner.parameters())])
    assert found[0][0] > 0
    assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))


@pytest.mark.parametrize("method", DEFAULTS)
def test_without_a_counted_token_loss_and_gradient_are_zero_not_nan(method):
    learner = learner_of(method)
    loss = loss_of(learner, TOKENS, torch.zeros_like(TOKENS, dtype=torch.bool))
    loss.backward()
    assert loss == 0
    assert all((w.grad == 0).all() for w in learner.parameters())


@pytest.mark.parametrize("method", DEFAULTS)
def test_the_parts_of_a_batch_add_up_to_its_loss_however_the_mask_is_spread(method):
    """What makes accumulation and several processes exact: parts are sums over the counts of the whole."""
    learner = learner_of(method)
    mask = torch.rand(TOKENS.shape, generator=torch.Generator().manual_seed(2)) < 0.4
    mask[1] = False
    whole = loss_of(learner, TOKENS, mask)
    parts = [loss_of(learner, TOKENS[i : i + 1], mask[i : i + 1], mask, i) for i in range(4)]
    assert torch.allclose(whole, torch.stack(parts).sum(), rtol=1e-5)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.booleans(), min_size=LENGTH * 2, max_size=LENGTH * 2))
def test_a_masked_mean_is_the_mean_over_the_counted_places(flags):
    """Slow twin: of each Medusa head, the counted positions picked out one by one."""
    mask = torch.tensor(flags).view(2, LENGTH)
    tokens = TOKENS[:2]
    model = filled(MedusaModel.new(TARGET, medusa_heads=2))
    read = Read.of(TARGET, tokens, mask)
    logits, expected = model(read.features, 2), 0.0
    for head in range(2):
        losses = [
            cross_entropy(logits[head, row, t], tokens[row, t + head + 2])
            for row in range(2)
            for t in range(LENGTH - 3)
            if mask[row, t + head + 2]
        ]
        if losses:
            expected += 0.8 ** (head + 1) * torch.stack(losses).mean()
    loss = mean_loss(medusa_terms(model, read), mask)
    assert torch.allclose(loss, torch.as_tensor(expected), atol=1e-5)


def test_a_draft_position_counts_by_the_token_that_it_predicts():
    """With one token counted, each term holds the one position that predicts it: t, of tokens t + 1 and on."""
    mask = torch.zeros((1, LENGTH), dtype=torch.bool)
    mask[0, 8] = True
    read = Read.of(TARGET, TOKENS[:1], mask)
    model = filled(MedusaModel.new(TARGET, medusa_heads=3))
    for term, before in zip(medusa_terms(model, read), (2, 3, 4), strict=True):
        assert mask[:, term.at].nonzero().tolist() == [[0, 8 - before]]
    gumiho = filled(new_model(TARGET, config_of("gumiho")))
    serial_term, _, *heads = feature_terms(TARGET, gumiho, read)
    places = torch.cat([mask, mask[:, -1:]], 1)[:, serial_term.at].nonzero().tolist()
    assert places == [[0, 6]]  # predicted feature 6 stands for feature 7, behind which is token 8
    # Window t ends with token t + 3; head j predicts the token j + 2 behind the last of its two serial tokens.
    assert [mask[:, term.at].nonzero().tolist() for term in heads[::2]] == [[[0, 4]], [[0, 3]], [[0, 2]]]


def test_noise_and_places_depend_on_seed_step_and_row_alone():
    learner = learner_of("gumiho")
    mask = torch.ones_like(TOKENS, dtype=torch.bool)
    torch.manual_seed(1)
    first = loss_of(learner, TOKENS, mask)
    torch.manual_seed(2)
    assert torch.equal(first, loss_of(learner, TOKENS, mask))
    features = Read.of(TARGET, TOKENS).features
    assert not torch.equal(first, learner(TOKENS, mask, features, mask, 4, 0))


def test_detached_heads_leave_the_serial_part_to_its_own_loss_and_learn_the_same():
    mask = torch.ones_like(TOKENS, dtype=torch.bool)

    def gradients(**changes) -> dict[str, torch.Tensor]:
        learner = learner_of("gumiho", **changes)
        if learner.model.heads is not None:  # the serial part of all three has the same weights
            learner.model.load_state_dict(joint.state_dict())
        else:
            learner.model.load_state_dict({k: v for k, v in joint.state_dict().items() if not k.startswith("heads.")})
        loss_of(learner, TOKENS, mask).backward()
        return {name: weight.grad for name, weight in learner.model.named_parameters()}

    joint = learner_of("gumiho").model
    together, apart, alone = gradients(), gradients(detach_heads=True), gradients(parallel_heads=0)
    for name, gradient in apart.items():
        if name.startswith("heads."):
            assert torch.allclose(gradient, together[name])
            assert gradient.abs().max() > 0
        else:
            assert torch.allclose(gradient, alone[name], atol=1e-7)
    assert not torch.allclose(apart["fc.weight"], together["fc.weight"], rtol=0.01)


def test_parallel_heads_weigh_as_in_the_released_training_program():
    """The loss of one small batch, written out: main_deepspeed.py, compute_loss and the line that sums it up."""
    config = config_of("gumiho", noise=0.0, head_share=1.0, regression=1.0, cross_entropy=0.1)
    assert (config.head_weight, config.head_decay, config.head_cross_entropy_from) == (1 / 9, 0.8, 0.1)
    model = filled(new_model(TARGET, config))
    read = Read.of(TARGET, TOKENS)
    predicted, windows = serial(model, read.embedded, read.features)
    p_target = TARGET.log_probabilities(read.features).exp()

    def both(made: torch.Tensor, first: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Smooth-L1 and soft cross-entropy of features that stand for true features first, first + 1, ..."""
        true = slice(first, first + made.shape[1])
        logs = TARGET.log_probabilities(made)
        return smooth_l1_loss(made, read.features[:, true]), -(p_target[:, true] * logs).sum(-1).mean()

    count = windows.shape[1] - 3  # windows with a true feature for each of the three heads
    heads = [both(ahead, 3 + j) for j, ahead in enumerate(model.heads(windows[:, :count]))]
    vloss, ploss = both(predicted, 1)
    vloss_mlp = sum(v * 0.8 ** (idx + 1) for idx, (v, _) in enumerate(heads))
    ploss_mlp = sum(p * 0.8 ** (idx + 1) for idx, (_, p) in enumerate(heads))
    before = vloss + 0.1 * ploss + vloss_mlp / 9
    mask = torch.ones_like(TOKENS, dtype=torch.bool)
    learner = Learner(TARGET, model, config)
    first, later = (learner(TOKENS, mask, read.features, mask, step, 0) for step in (0, 1))  # of five steps
    torch.testing.assert_close(first, before)
    torch.testing.assert_close(later, before + 0.1 * ploss_mlp / 9)
    equal = Learner(TARGET, model, config_of("gumiho", noise=0.0, head_share=1.0, **EQUAL_HEADS))
    wanted = vloss + 0.1 * ploss + sum(v + 0.1 * p for v, p in heads)
    torch.testing.assert_close(equal(TOKENS, mask, read.features, mask, 0, 0), wanted)


@pytest.mark.parametrize("detach", [False, True])
def test_an_input_layer_of_the_heads_own_is_trained_by_their_losses_alone(detach):
    mask = torch.ones_like(TOKENS, dtype=torch.bool)

    def gradient(name: str, **weights) -> torch.Tensor:
        config = config_of("gumiho", head_input="own", detach_heads=detach, **EQUAL_HEADS | weights)
        model = filled(new_model(TARGET, config))
        loss_of(Learner(TARGET, model, config), TOKENS, mask).backward()
        return model.get_parameter(name).grad

    assert gradient("head_fc.weight").abs().max() > 0
    assert gradient("head_fc.weight", head_weight=0.0).abs().max() == 0
    with_heads, without = gradient("fc.weight"), gradient("fc.weight", head_weight=0.0)
    assert torch.equal(with_heads, without) == detach  # else through the Transformer's features


def test_five_heads_weigh_three_tenths_of_the_serial_part():
    config = TrainConfig.of("gumiho")
    assert sum(config.head_weight * config.head_decay**i for i in range(1, 6)) == pytest.approx(0.2988, abs=1e-4)


def test_a_run_begun_before_heads_had_weights_goes_on_with_equal_ones():
    now = TrainConfig.of("gumiho", steps=5).to_json()
    old = {name: value for name, value in now.items() if name not in EQUAL_HEADS}
    assert TrainConfig.from_json(old, "file") == TrainConfig.of("gumiho", steps=5, **EQUAL_HEADS)


def test_settings_that_a_method_does_not_have_or_that_are_absurd_are_refused_by_name():
    for method, changes, named in [
        ("medusa", {"noise": 0.1}, "noise"),
        ("gumiho", {"heads": 3}, "heads"),
        ("eagle", {"rate": float("nan")}, "rate"),
        ("eagle", {"batch": True}, "batch"),
        ("eagle", {"batch": 6, "gradient_accumulation": 4}, "gradient_accumulation"),
        ("hydra", {"prefix": 1}, "prefix"),
        ("gumiho", {"detach_heads": 1}, "detach_heads"),
        ("eagle", {"detach_heads": False}, "detach_heads"),
        ("eagle", {"head_weight": 1.0}, "head_weight"),
        ("gumiho", {"head_cross_entropy_from": 2}, "head_cross_entropy_from"),
        ("eagle", {"betas": (0.9, 1.0)}, "betas"),
        ("eagle", {"steps": 5, "epochs": 2.0}, "steps"),
        ("medusa", {"optimizer": "muon"}, "optimizer"),
        ("eagle", {"muon_rate": 0.1}, "muon_rate"),
        ("medusa", {"length": 6}, "length"),
        ("eagle", {"speed": 1}, "speed"),
        ("ngram", {}, "method"),
    ]:
        with pytest.raises(InputError) as refused:
            TrainConfig.of(method, **changes)
        assert refused.value.place == f"training, {named}"


@pytest.mark.parametrize("method", DEFAULTS)
def test_a_config_comes_back_from_json_and_every_schedule_rises_and_falls(method):
    config = TrainConfig.of(method, optimizer=None if method == "medusa" else "muon", warmup=0.2).over(50)
    assert TrainConfig.from_json(config.to_json(), "file") == config
    for schedule in ("linear", "cosine", "constant"):
        rates = [TrainConfig.of(method, steps=20, warmup=0.2, schedule=schedule).rate_at(s) for s in range(20)]
        assert rates[:4] == [0.25, 0.5, 0.75, 1.0]
        assert all(0 < b <= a for a, b in itertools.pairwise(rates[4:]))
    with pytest.raises(InputError, match="file: training, rate"):
        TrainConfig.from_json(config.to_json() | {"rate": "fast"}, "file")
