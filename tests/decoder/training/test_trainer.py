"""Training runs: resumable to the same weights, the same in parts and in processes, and nothing written is lost."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from fakes import VOCAB, random_target
from gumiho_decoder.config import GenerationConfig
from gumiho_decoder.drafters.load import load_drafter
from gumiho_decoder.loop import generate, plain
from gumiho_decoder.target import Target, load_target
from gumiho_decoder.tiny.making.stream import train_tokenizer
from gumiho_decoder.training.config import DEFAULTS, TrainConfig
from gumiho_decoder.training.features import FeatureCache
from gumiho_decoder.training.folder import Result
from gumiho_decoder.training.job import train_drafter
from gumiho_decoder.training.methods import drafter_of, heldout_accuracy, new_model
from gumiho_decoder.training.trainer import train
from gumiho_theory import ChainStructure, InputError

LENGTH, BATCH = 16, 4
SMALL = {
    "gumiho": dict(parallel_heads=2, head_blocks=1, head_share=0.5),
    "eagle": {},
    "medusa": dict(heads=3),
    "hydra": dict(heads=3, layers=1),
    "draft-model": dict(layers=1),
}
CYCLE = torch.randperm(VOCAB, generator=torch.Generator().manual_seed(0))


def cyclic_target() -> Target:
    """A target whose next token is that behind the last one in a fixed cycle of all tokens: no layer does anything."""
    target = random_target()
    weights = target.model.state_dict()
    for name, weight in weights.items():
        if name.endswith(("o_proj.weight", "down_proj.weight")):
            weight.zero_()
    table = weights["model.embed_tokens.weight"].normal_(generator=torch.Generator().manual_seed(1))
    weights["lm_head.weight"][CYCLE.roll(-1)] = table[CYCLE]
    return target


TARGET = cyclic_target()


def text(start: int, length: int = LENGTH) -> torch.Tensor:
    return CYCLE[(start + torch.arange(length)) % VOCAB]


def batch_of(step: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Blocks of the cycle, and masks, that depend on the step alone."""
    random = torch.Generator().manual_seed(step)
    tokens = torch.stack([text(int(s)) for s in torch.randint(VOCAB, (BATCH,), generator=random)])
    return tokens, torch.rand(tokens.shape, generator=random) < 0.8


HELDOUT = torch.stack([text(5), text(40)]), torch.ones(2, LENGTH, dtype=torch.bool)


def config_of(method: str = "medusa", **changes) -> TrainConfig:
    values = {"length": LENGTH, "batch": BATCH, "steps": 6, "checkpoint_every": 2, "rate": 1e-3, **SMALL[method]}
    return TrainConfig.of(method, **{**values, **changes})


def run(folder: Path, config: TrainConfig | None = None, *, target: Target = TARGET, **arguments) -> Result:
    return train(target, batch_of, HELDOUT, config or config_of(), folder, **arguments)


def weights(folder: Path) -> bytes:
    return (folder / "model.safetensors").read_bytes()


@pytest.fixture(scope="module")
def saved_target(tmp_path_factory) -> Path:
    """A tiny random target's folder, with a tokenizer."""
    folder = tmp_path_factory.mktemp("target")
    tokenizer = train_tokenizer(LINES, 300)
    tokenizer.save_pretrained(folder)
    shape = dict(hidden_size=32, intermediate_size=48, num_hidden_layers=1, num_attention_heads=2)
    ends = dict(bos_token_id=0, eos_token_id=0)
    torch.manual_seed(0)
    LlamaForCausalLM(LlamaConfig(vocab_size=300, max_position_embeddings=64, **shape, **ends)).save_pretrained(folder)
    return folder


LINES = [f"Line {i} of a text, {'abcdefgh'[i % 8] * (i % 5)} and so on; {i * i} is a square.\n" for i in range(200)]


class Killed(Exception):  # noqa: N818
    """The session ends in the middle, without a word."""


def ends_with(error: type[BaseException], at: int):
    def progress(step) -> None:
        if step.step == at:
            raise error

    return progress


def curve(folder: Path) -> list[dict]:
    return [json.loads(line) for line in (folder / "curve.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("finished")
    run(folder)
    return folder


@pytest.mark.parametrize("method", DEFAULTS)
def test_a_killed_run_resumes_bit_for_bit_to_the_weights_of_an_uninterrupted_one(method, tmp_path, monkeypatch):
    monkeypatch.setattr("gumiho_decoder.training.methods._save_draft_model", save_weights)
    optimizer = "adamw" if method == "medusa" else "muon"
    config = config_of(method, optimizer=optimizer, eval_every=2)
    whole = run(tmp_path / "a", config)
    with pytest.raises(Killed):
        run(tmp_path / "b", config, progress=ends_with(Killed, 5))
    assert not (tmp_path / "b" / "config.json").exists()
    resumed = run(tmp_path / "b", config, resume=True)
    assert weights(tmp_path / "a") == weights(tmp_path / "b")
    assert (whole.loss, whole.heldout_accuracy) == (resumed.loss, resumed.heldout_accuracy)
    lines = [{k: v for k, v in line.items() if k != "tokens_per_second"} for line in curve(tmp_path / "b")]
    assert [line["step"] for line in lines] == [1, 2, 3, 4, 5, 6]
    assert [line["loss"] for line in lines] == [line["loss"] for line in curve(tmp_path / "a")]
    assert ["heldout_accuracy" in line for line in lines] == [False, True] * 3


def save_weights(target: Target, model: torch.nn.Module, folder: Path) -> None:
    """A draft model's weights without its tokenizer, which these tests' characters do not have."""
    model.save_pretrained(folder)


def test_ctrl_c_saves_a_checkpoint_of_the_last_whole_step_and_says_where(tmp_path, finished, capsys):
    def batches(step: int):
        if step == 2:
            signal.raise_signal(signal.SIGINT)
        return batch_of(step)

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        train(TARGET, batches, HELDOUT, config_of(), tmp_path)
    assert signal.getsignal(signal.SIGINT) is before
    assert f"interrupted after step 3: {tmp_path / 'checkpoint.pt'}" in capsys.readouterr().err
    run(tmp_path, resume=True)
    assert "on from step 3" in capsys.readouterr().err
    assert weights(tmp_path) == weights(finished)


def test_an_interrupt_while_progress_is_shown_saves_too_and_a_second_ctrl_c_leaves_at_once(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, progress=ends_with(KeyboardInterrupt, 3))
    assert torch.load(tmp_path / "checkpoint.pt", weights_only=True)["step"] == 3

    def impatient(step: int):
        for _ in range(2):
            signal.raise_signal(signal.SIGINT)
        raise AssertionError("not reached")

    with pytest.raises(KeyboardInterrupt):
        train(TARGET, impatient, HELDOUT, config_of(), tmp_path / "b")
    assert not (tmp_path / "b" / "checkpoint.pt").exists()


def test_a_folder_that_holds_a_run_is_not_trained_over(finished, tmp_path):
    before = {path.name: path.read_bytes() for path in finished.iterdir()}
    with pytest.raises(InputError, match="a run"):
        run(finished)
    assert {path.name: path.read_bytes() for path in finished.iterdir()} == before
    with pytest.raises(Killed):
        run(tmp_path, progress=ends_with(Killed, 3))
    with pytest.raises(InputError, match=r"a run \(checkpoint.pt, curve.jsonl\)"):
        run(tmp_path)


def test_a_finished_run_resumed_does_nothing_and_says_so(finished, capsys):
    before = {path.name: path.read_bytes() for path in finished.iterdir()}
    result = run(finished, resume=True, progress=ends_with(AssertionError, 1))
    assert "finished: nothing to do" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in finished.iterdir()} == before
    assert result.steps == 6 and result.tokens == 6 * BATCH * LENGTH
    with pytest.raises(InputError, match="training, rate"):
        run(finished, config_of(rate=2e-3), resume=True)


def test_resuming_where_nothing_is_says_so_and_begins(tmp_path, finished, capsys):
    run(tmp_path / "new" / "er", resume=True)
    assert "none, begun from the start" in capsys.readouterr().err
    assert weights(tmp_path / "new" / "er") == weights(finished)


def test_a_run_killed_while_its_weights_were_written_is_not_finished(tmp_path, finished, monkeypatch):
    def fails(*_: object) -> None:
        raise Killed

    monkeypatch.setattr("gumiho_decoder.training.trainer.save", fails)
    with pytest.raises(Killed):
        run(tmp_path)
    monkeypatch.undo()
    run(tmp_path, resume=True)
    assert weights(tmp_path) == weights(finished)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(path.name for path in finished.iterdir())


def test_a_checkpoint_of_other_settings_target_or_data_is_refused_by_the_field(tmp_path):
    with pytest.raises(Killed):
        run(tmp_path, progress=ends_with(Killed, 3), data={"fingerprint": "a"})
    same = {"resume": True, "data": {"fingerprint": "a"}}
    for config, others, field in [
        (config_of(rate=2e-3), {}, "rate"),
        (config_of(steps=7), {}, "steps"),
        (config_of("hydra"), {}, "method"),
        (config_of(heads=2), {}, "heads"),
        (config_of(), {"target": random_target(3)}, "target"),
        (config_of(), {"data": {"fingerprint": "b"}}, "data"),
    ]:
        with pytest.raises(InputError) as refused:
            run(tmp_path, config, **{**same, **others})
        assert refused.value.place.endswith(f", {field}")
    run(tmp_path, config_of(checkpoint_every=3, eval_every=1), **same)  # these change no weight


@pytest.mark.parametrize("harm", ["short", "no checkpoint", "pickle", "list", "fewer", "weights"])
def test_a_checkpoint_that_is_none_is_refused_with_its_name(tmp_path, harm):
    with pytest.raises(Killed):
        run(tmp_path, progress=ends_with(Killed, 3))
    path = tmp_path / "checkpoint.pt"
    state = torch.load(path, weights_only=True)
    match harm:
        case "short":
            path.write_bytes(path.read_bytes()[:-100])
        case "no checkpoint":
            path.write_bytes(b"something else")
        case "pickle":
            torch.save(Path("anything that runs code when loaded"), path)
        case "list":
            torch.save([1], path)
        case "fewer":
            torch.save({k: v for k, v in state.items() if k != "scaler"}, path)
        case "weights":
            torch.save(state | {"model": {}}, path)
    with pytest.raises(InputError, match="checkpoint.pt"):
        run(tmp_path, resume=True)


def test_a_checkpoint_that_cannot_be_written_leaves_the_one_before(tmp_path, monkeypatch):
    real = torch.save

    def full(state, file) -> None:
        if state["step"] == 4:
            file.write(b"half")
            raise OSError(28, "No space left on device")
        real(state, file)

    monkeypatch.setattr("torch.save", full)
    with pytest.raises(InputError, match="No space left"):
        run(tmp_path)
    assert torch.load(tmp_path / "checkpoint.pt", weights_only=True)["step"] == 2


@pytest.mark.parametrize("method", ["gumiho", "draft-model"])
def test_a_batch_read_in_parts_gives_the_same_weights(method, tmp_path, monkeypatch):
    monkeypatch.setattr("gumiho_decoder.training.methods._save_draft_model", save_weights)
    for parts in (1, 4):
        run(tmp_path / str(parts), config_of(method, gradient_accumulation=parts, rate=1e-4))
    assert apart(tmp_path / "1", tmp_path / "4") < 1e-5


def apart(a: Path, b: Path) -> float:
    from safetensors.torch import load_file

    one, other = load_file(a / "model.safetensors"), load_file(b / "model.safetensors")
    return max(float((one[name] - other[name]).abs().max()) for name in one.keys() | other.keys())


PROCESS = """
import sys
from pathlib import Path
sys.path[:0] = {path!r}
import torch
torch.set_num_threads(1)
from test_trainer import batch_of, config_of, run
folder = Path({folder!r})
config = config_of("gumiho", gradient_accumulation=2, rate=1e-4, eval_every=3)
try:
    run(folder, config, progress=lambda step: (_ for _ in ()).throw(KeyboardInterrupt) if step.step == 3 else None)
except KeyboardInterrupt:
    pass
result = run(folder, config, resume=True)
(folder / f"done-{{torch.distributed.get_rank()}}").write_text(str(result.loss))
torch.distributed.destroy_process_group()
"""


def test_two_processes_train_to_the_weights_of_one_and_stop_and_resume_together(tmp_path):
    config = config_of("gumiho", rate=1e-4, eval_every=3)
    alone = run(tmp_path / "one", config)
    script, folder = tmp_path / "process.py", tmp_path / "two"
    script.write_text(PROCESS.format(path=[str(Path(__file__).parent), *sys.path], folder=str(folder)))
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(script)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run([sys.executable, *launch], capture_output=True, text=True, env=environment, timeout=120)
    assert done.returncode == 0, done.stderr
    assert apart(tmp_path / "one", folder) < 1e-5
    assert [float((folder / f"done-{i}").read_text()) for i in (0, 1)] == pytest.approx([alone.loss] * 2, rel=1e-5)
    assert [line["step"] for line in curve(folder)] == [1, 2, 3, 4, 5, 6]
    assert json.loads((folder / "training.json").read_text())["processes"] == 2


def test_cached_features_train_to_the_weights_of_live_ones(tmp_path):
    config = config_of("eagle", steps=3)
    tokens, mask = (torch.cat(parts) for parts in zip(*map(batch_of, range(3)), strict=True))
    cache = FeatureCache(tmp_path / "features", TARGET, tokens.numpy(), mask.numpy(), "float32", shard_rows=5)
    cache.make()

    def features(step: int, rows: slice) -> torch.Tensor:
        return cache.features(np.arange(step * BATCH, (step + 1) * BATCH)[rows])

    run(tmp_path / "live", config)
    run(tmp_path / "cached", config, features=features)
    assert apart(tmp_path / "live", tmp_path / "cached") < 1e-6


@pytest.mark.parametrize("method", DEFAULTS)
def test_every_method_learns_the_positions_at_which_it_drafts(method, tmp_path, monkeypatch):
    """On a cyclic text each draft position has one right token: one index off, and none of its tokens is."""
    monkeypatch.setattr("gumiho_decoder.training.methods._save_draft_model", save_weights)
    steps = {"hydra": 40, "draft-model": 40}.get(method, 120)
    config = config_of(method, steps=steps, rate=1e-2, noise=0.0 if method in ("gumiho", "eagle") else None)
    result = run(tmp_path, config)
    assert len(result.heldout_accuracy) == {"gumiho": 4, "medusa": 3, "hydra": 3}.get(method, 7)
    assert min(result.heldout_accuracy) > 0.9
    assert result.loss < 0.7 * curve(tmp_path)[0]["loss"]


def test_accuracy_is_that_of_drafting_from_each_place_alone():
    """Slow twin: each place started anew on its own prefix, and drafted from one by one."""
    target = random_target(spread=0.3)
    config = config_of("gumiho")
    model = new_model(target, config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.15)
    tokens = torch.randint(VOCAB, (2, LENGTH), generator=torch.Generator().manual_seed(3))
    mask = torch.rand(2, LENGTH, generator=torch.Generator().manual_seed(4)) < 0.5
    drafter, depth = drafter_of(target, model, config), 4
    hits, counted = [0] * depth, [0] * depth
    with torch.inference_mode():
        for text, counts in zip(tokens, mask, strict=True):
            out = target.model(input_ids=text[None], output_hidden_states=True)
            greedy = out.logits[0].argmax(-1)
            for root in range(1, LENGTH - depth):
                drafter.start(text[: root + 1], out.hidden_states[-1][0, :root])
                branches = drafter.branches(depth)
                log_q = branches.root()[0, 0]
                for d in range(1, depth + 1):
                    if d > 1:
                        at = root + d - 1
                        tables, row = branches.deeper(d - 1, text[at : at + 1][None], torch.zeros(1, 1).long())
                        log_q = tables[0, row[0, 0]]
                    if counts[root + d]:
                        counted[d - 1] += 1
                        hits[d - 1] += int(log_q.argmax() == greedy[root + d - 1])
                drafter.release()
    found = heldout_accuracy(target, model, config, tokens, mask)
    assert found == [round(h / n, 4) for h, n in zip(hits, counted, strict=True)]
    assert heldout_accuracy(target, model, config, tokens, torch.zeros_like(mask)) == [None] * depth


def test_measuring_leaves_the_trained_weights_and_a_target_in_half_precision_as_they_are(tmp_path):
    target = cyclic_target()
    target.model.to(torch.bfloat16)
    for method in ("gumiho", "hydra"):
        run(tmp_path / method, config_of(method, eval_every=1), target=target)
        run(tmp_path / f"{method}-seldom", config_of(method), target=target)
        assert weights(tmp_path / method) == weights(tmp_path / f"{method}-seldom")
        assert load_drafter(str(tmp_path / method), target).method == method
    assert target.dtype == torch.bfloat16


def test_bf16_and_full_precision_follow_each_other_in_one_process(tmp_path, finished):
    run(tmp_path / "bf16", config_of(mixed_precision="bf16"))
    run(tmp_path / "no")
    assert weights(tmp_path / "no") == weights(finished)
    assert 0 < apart(tmp_path / "no", tmp_path / "bf16") < 1e-2


def test_the_folder_says_what_was_trained_on_what_and_how(finished):
    record = json.loads((finished / "training.json").read_text())
    assert TrainConfig.from_json(record["config"], "x") == config_of()
    assert record["target"] == json.loads((finished / "config.json").read_text())["target_fingerprint"]
    assert record["result"]["heldout_accuracy"] == run(finished, resume=True).heldout_accuracy
    assert record["environment"]["torch"] == torch.__version__
    assert not (finished / "checkpoint.pt").exists()


def test_what_cannot_be_trained_is_refused_before_anything_is_written(tmp_path):
    folder = tmp_path / "new"
    for config, named in [
        (config_of(mixed_precision="fp16"), "mixed_precision"),
        (config_of(length=300), "length"),
        (TrainConfig.of("medusa", epochs=1), "steps"),
    ]:
        with pytest.raises(InputError, match=f"training, {named}"):
            run(folder, config)
    with pytest.raises(InputError, match="held-out blocks"):
        train(TARGET, batch_of, (HELDOUT[0][:, :5], HELDOUT[1]), config_of(), folder)
    tmp_path.joinpath("file").write_text("")
    with pytest.raises(InputError, match="file"):
        run(tmp_path / "file" / "new")
    assert not folder.exists()
    with pytest.raises(InputError, match="batch of step 0"):
        train(TARGET, lambda step: (batch_of(step)[0], batch_of(step)[0]), None, config_of(), folder)


def test_a_loss_that_is_no_number_ends_the_run_before_it_reaches_the_weights(tmp_path):
    def features(step: int, rows: slice) -> torch.Tensor:
        return torch.full((BATCH, LENGTH, TARGET.hidden_size), float("nan") if step == 3 else 1.0)

    with pytest.raises(InputError, match="step 3"):
        run(tmp_path, features=features)
    state = torch.load(tmp_path / "checkpoint.pt", weights_only=True)
    assert state["step"] == 2 and all(weight.isfinite().all() for weight in state["model"].values())


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("precision", ["no", "bf16", "fp16"])
@pytest.mark.parametrize("method", DEFAULTS)
def test_every_method_trains_on_cuda_and_resumes_there(method, precision, tmp_path, monkeypatch):
    monkeypatch.setattr("gumiho_decoder.training.methods._save_draft_model", save_weights)
    target, config = cyclic_target(), config_of(method, steps=30, mixed_precision=precision)
    target.model.to("cuda")
    with pytest.raises(Killed):
        run(tmp_path, config, target=target, progress=ends_with(Killed, 21))
    run(tmp_path, config, target=target, resume=True)
    assert curve(tmp_path)[-1]["loss"] < curve(tmp_path)[0]["loss"]


@pytest.mark.parametrize("method", ["gumiho", "draft-model"])
def test_the_command_trains_on_a_text_file_and_what_it_writes_decodes_as_plain_decoding(
    method, saved_target, tmp_path, capsys
):
    tmp_path.joinpath("text.txt").write_text("".join(LINES))
    settings = {"steps": 3, "batch": 4, "eval_every": 2, "length": None}
    asked = {"overrides": settings, "cache_features": method == "gumiho"}
    data, output = [str(tmp_path / "text.txt")], tmp_path / "out"
    result = train_drafter(str(saved_target), method, data, output, **asked).to_json()
    assert json.loads(json.dumps(result, allow_nan=False)) == result
    assert (result["steps"], result["tokens"], result["output"]) == (3, 3 * 4 * 64, str(output))
    assert len(result["heldout_accuracy"]) == 7 and result["heldout_blocks"] >= 1
    assert "held out by place" in (said := capsys.readouterr().err)
    assert ("feature cache: 0.0" in said) == (method == "gumiho")
    target = load_target(str(saved_target))
    drafter = load_drafter(f"{'draft-model:' if method == 'draft-model' else ''}{output}", target)
    prompt, config = target.encode(LINES[7]), GenerationConfig(12, ChainStructure(4))
    assert generate(target, drafter, prompt, config).token_ids == plain(target, prompt, config).token_ids
    assert train_drafter(str(saved_target), method, data, output, resume=True, **asked).to_json() == result
    with pytest.raises(InputError, match="a run"):
        train_drafter(str(saved_target), method, data, output, **asked)


def test_the_command_refuses_what_it_cannot_use_before_the_target_is_loaded(tmp_path):
    for arguments, place in [
        (("nowhere", "gumiho", []), "training data"),
        (("nowhere", "ngram", ["x"]), "training, method"),
        (("nowhere", "gumiho", ["x"], {"overrides": {"heads": 3}}), "training, heads"),
        (("nowhere", "draft-model", ["x"], {"cache_features": True}), "feature cache"),
        (("nowhere", "gumiho", ["x"]), "target 'nowhere'"),
    ]:
        *named, options = arguments if isinstance(arguments[-1], dict) else (*arguments, {})
        with pytest.raises(InputError) as refused:
            train_drafter(*named, tmp_path / "out", **options)
        assert refused.value.place == place
    assert not (tmp_path / "out").exists()


def test_a_token_that_the_model_has_no_row_for_is_refused(saved_target, tmp_path):
    """Such an index would stop a device, or read a stranger's row."""
    folder = tmp_path / "target"
    shutil.copytree(saved_target, folder)
    train_tokenizer(LINES, 400).save_pretrained(folder)
    tmp_path.joinpath("text.txt").write_text("".join(LINES))
    with pytest.raises(InputError, match="tokens below 300"):
        train_drafter(str(folder), "medusa", [str(tmp_path / "text.txt")], tmp_path / "out")
