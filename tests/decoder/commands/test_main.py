"""`gumiho decode` as its user meets it, on a small random pair in folders; and every kind of bad input."""

from __future__ import annotations

import json

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from gumiho_decoder.commands.main import main
from gumiho_decoder.drafters.gumiho.model import GumihoConfig, GumihoModel
from gumiho_decoder.target import load_target
from gumiho_decoder.tiny.making.stream import train_tokenizer
from gumiho_theory import EveryPositionLog, ScoreCalibration, StaticTree, TemperatureMap, Trace


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pair")
    tokenizer = train_tokenizer(["def f(x):\n    return x\n"] * 5, 280)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=128,
        initializer_range=0.5,
        bos_token_id=None,
        eos_token_id=0,
        pad_token_id=None,
    )
    LlamaForCausalLM(config).save_pretrained(folder / "target")
    tokenizer.save_pretrained(folder / "target")
    target = load_target(str(folder / "target"))
    for name, changes in (("drafter", {}), ("wide", {"hidden_size": 64}), ("words", {"vocab_size": 99})):
        GumihoModel(GumihoConfig.for_target(target, **changes)).save_pretrained(folder / name)
    (folder / "prompts.jsonl").write_text('{"prompt": "def f("}\n{"prompt": "return", "task": "t"}\n')
    (folder / "long.jsonl").write_text(json.dumps({"prompt": "é" * 100}) + "\n")
    (folder / "empty.jsonl").write_text("")
    ScoreCalibration("other", "f" * 64, (TemperatureMap(2.0),)).write(folder / "foreign.json")
    return folder


@pytest.fixture
def call(pair, monkeypatch, capsys):
    """Run `gumiho` in the pair's folder; returns exit status, stdout, stderr."""

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.chdir(pair)
        monkeypatch.setattr("sys.argv", ["gumiho", *arguments])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        return ended.value.code, out, err

    return run


PAIR = ("decode", "--target", "target", "--drafter", "drafter")


@pytest.mark.parametrize("structure", ["chain:7", "tree:total=16,top_k=3,mlp_topk=4"])
def test_decode_prints_the_contracts_keys_and_writes_the_trace(structure, call, tmp_path):
    trace = tmp_path / "t.parquet"
    code, out, _ = call(
        *(*PAIR, "--prompts", "prompts.jsonl", "--max-new-tokens", "30", "--structure", structure),
        *("--check-lossless", "--outputs", "--json", "-o", str(trace)),
    )
    result = json.loads(out)
    assert code == 0
    assert result["lossless"] == {"checked": 2, "equal": 2, "ties": 0, "different": 0}
    assert result["tau"] == Trace.read(trace).tau()
    assert result["cycles"] == Trace.read(trace).n_cycles
    assert result["new_tokens"] == sum(len(o["token_ids"]) for o in result["outputs"])
    assert result["speedup"] == pytest.approx(result["tokens_per_second"] / result["baseline_tokens_per_second"])
    assert {"prompt_id", "token_ids", "text", "stop_reason"} <= result["outputs"][0].keys()
    assert "micro" in result["tau_convention"]
    assert Trace.read(trace).provenance["target"] == "target"


def test_decode_without_baseline_leaves_speed_out(call):
    code, out, _ = call(*PAIR, "--prompts", "prompts.jsonl", "--max-new-tokens", "5", "--limit", "1", "--json")
    result = json.loads(out)
    assert code == 0
    assert result["speedup"] is None
    assert result["baseline_tokens_per_second"] is None
    assert result["lossless"]["checked"] == 0
    assert "outputs" not in result


def test_decode_prints_a_table_for_people(call):
    code, out, _ = call(*PAIR, "--prompts", "prompts.jsonl", "--max-new-tokens", "5", "--outputs")
    assert code == 0
    assert "tau convention" in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--prompts", "empty.jsonl"), ("empty.jsonl", "no prompt")),
        (("--prompts", "none.jsonl"), ("none.jsonl",)),
        (("--prompts", "long.jsonl"), ("prompt '1'", "200 tokens", "1 to 127")),
        (("--prompts", "prompts.jsonl", "--drafter", "wide"), ("hidden_size", "64", "32")),
        (("--prompts", "prompts.jsonl", "--drafter", "words"), ("vocab_size", "99")),
        (("--prompts", "prompts.jsonl", "--drafter", "nowhere"), ("nowhere",)),
        (("--prompts", "prompts.jsonl", "--drafter", "tiny:medusa"), ("tiny:medusa",)),
        (("--prompts", "prompts.jsonl", "--target", "nowhere"), ("nowhere",)),
        (("--prompts", "prompts.jsonl", "--structure", "ring:3"), ("ring:3",)),
        (("--prompts", "prompts.jsonl", "--structure", "chain:8"), ("chain:8", "at most 7")),
        (("--prompts", "prompts.jsonl", "--structure", "chain:0"), ("chain:0", "draft position")),
        (("--prompts", "prompts.jsonl", "--structure", "static:none.json"), ("none.json",)),
        (("--prompts", "prompts.jsonl", "--structure", "static:[[2,1]]"), ("[2]",)),
        (("--prompts", "prompts.jsonl", "--temperature", "-1"), ("temperature", "-1")),
        (("--prompts", "prompts.jsonl", "--temperature", "0.7", "--check-lossless"), ("--check-lossless", "0.7")),
        (("--prompts", "prompts.jsonl", "--temperature", "1", "--top-p", "0"), ("top_p", "0")),
        (("--prompts", "prompts.jsonl", "--candidates", "sampled"), ("candidates", "temperature 0")),
        (("--prompts", "prompts.jsonl", "--acceptance", "typical"), ("acceptance", "temperature 0")),
        (("--prompts", "prompts.jsonl", "--fta", "literal"), ("fta", "chain:7")),
        (("--prompts", "prompts.jsonl", "--calibration", "none.json"), ("none.json",)),
        (
            ("--prompts", "prompts.jsonl", "--calibration", "foreign.json", "--structure", "tree:total=9"),
            ("calibration", "f" * 12),
        ),
        (("--prompts", "prompts.jsonl", "--budget", "prompts.jsonl"), ("prompts.jsonl",)),
        (("--prompts", "prompts.jsonl", "--every-position", "no/such/log.parquet"), ("no/such",)),
        (("--prompts", "prompts.jsonl", "--every-position", "l.parquet", "--log-structure", "ring"), ("ring",)),
        (("--prompts", "prompts.jsonl", "--stop-string", ""), ("stop_strings",)),
        (("--prompts", "prompts.jsonl", "--dtype", "int8"), ("--dtype", "int8")),
        (("--prompts", "prompts.jsonl", "--device", "nowhere"), ("--device", "nowhere")),
        (("--prompts", "prompts.jsonl", "-o", "no/such/folder/t.parquet"), ("no/such/folder",)),
        (("--prompts", "prompts.jsonl", "-o", "target"), ("target", "wanted a file")),
        (("--prompts", "prompts.jsonl", "-o", "x" * 300), ("wanted a file",)),
        (("--prompts", "prompts.jsonl", "--device", "meta"), ("--device", "meta")),
        (("--prompts", "prompts.jsonl", "--max-new-tokens", "0"), ("--max-new-tokens", "0")),
        (("--prompts", "prompts.jsonl", "--limit", "x"), ("--limit", "x")),
        (("--prompts", "prompts.jsonl", "--no-such-option"), ("--no-such-option",)),
        ((), ("--prompts",)),
    ],
)
def test_bad_input_exits_2_with_one_line_that_names_it(arguments, words, call):
    code, out, err = call(*PAIR, *arguments, "--json")
    assert (code, out) == (2, "")
    lines = [line for line in err.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1
    assert "Traceback" not in err
    for word in words:
        assert word in lines[0]


def test_sampled_decoding_is_seeded_and_says_its_mode(call):
    runs = []
    for seed in ("1", "1", "2"):
        code, out, _ = call(
            *(*PAIR, "--prompts", "prompts.jsonl", "--max-new-tokens", "30", "--outputs", "--json"),
            *("--temperature", "1.5", "--top-k", "40", "--top-p", "0.95", "--seed", seed, "--candidates", "sampled"),
        )
        assert code == 0
        runs.append(json.loads(out))
    texts = [[o["token_ids"] for o in run["outputs"]] for run in runs]
    assert texts[0] == texts[1] != texts[2]
    assert (runs[0]["mode"], runs[0]["lossless_mode"]) == ("sampling", True)


@pytest.mark.parametrize("extra", [("--fta", "released"), ("--acceptance", "typical", "--temperature", "1")])
def test_a_lossy_mode_says_so_in_output_and_trace_and_never_fails_the_check(extra, call, tmp_path):
    trace = tmp_path / "t.parquet"
    check = () if "--temperature" in extra else ("--check-lossless",)
    code, out, _ = call(
        *(*PAIR, "--prompts", "prompts.jsonl", "--max-new-tokens", "20", "--json", "-o", str(trace), *check),
        *("--structure", "tree:total=16,top_k=3,mlp_topk=4", *extra),
    )
    assert code == 0
    assert "lossy" in json.loads(out)["mode"]
    assert json.loads(out)["lossless_mode"] is False
    provenance = Trace.read(trace).provenance
    assert provenance["lossless_mode"] is False
    assert "lossy" in provenance["mode"]


def test_a_static_tree_is_built_from_a_trace_and_decoded_and_everything_is_logged(call, tmp_path):
    trace, tree, log = tmp_path / "t.parquet", tmp_path / "tree.json", tmp_path / "log.parquet"
    common = (*PAIR, "--prompts", "prompts.jsonl", "--max-new-tokens", "30", "--json")
    assert call(*common, "-o", str(trace))[0] == 0
    code, out, _ = call("tree", str(trace), "--nodes", "6", "-o", str(tree), "--json")
    assert code == 0
    assert json.loads(out)["nodes"] == 6 == 1 + len(StaticTree.read(tree).paths)
    code, out, _ = call(
        *(*common, "--structure", f"static:{tree}", "--check-lossless", "-o", str(trace)),
        *("--every-position", str(log), "--log-structure", f"static:{tree}", "--log-structure", "chain:3"),
    )
    assert code == 0
    assert json.loads(out)["lossless"]["equal"] == 2
    written = EveryPositionLog.read(log)
    assert written.structures[1] == "chain:3"
    assert written.n_rows == json.loads(out)["new_tokens"]
    # From each output's first token on, chained lengths are the run's own.
    made = Trace.read(trace)
    for prompt in made.prompts:
        lengths = written.accepted[written.prompt_id == prompt, 0]
        start, cycles = 0, []
        while start < len(lengths) - 1:
            cycles.append(int(lengths[start]))
            start += cycles[-1] + 1
        assert cycles == made.accepted[made.prompt_id == prompt].tolist()


def test_stop_strings_and_ids_end_outputs(call):
    code, out, _ = call(*PAIR, "--prompts", "prompts.jsonl", "--max-new-tokens", "30", "--outputs", "--json")
    said = json.loads(out)["outputs"][0]["token_ids"]
    code, out, _ = call(
        *(*PAIR, "--prompts", "prompts.jsonl", "--max-new-tokens", "30", "--outputs", "--json", "--limit", "1"),
        *("--stop-token", str(said[4]), "--check-lossless"),
    )
    result = json.loads(out)
    assert code == 0
    assert result["outputs"][0]["token_ids"] == said[: said.index(said[4]) + 1]
    assert result["outputs"][0]["stop_reason"] == "eos"


@pytest.mark.parametrize("drafter", ["ngram", "draft-model:target"])
def test_drafters_without_heads_decode_too(drafter, call):
    code, out, _ = call(
        *("decode", "--target", "target", "--drafter", drafter, "--prompts", "prompts.jsonl", "--max-new-tokens", "25"),
        *("--structure", "chain:3", "--check-lossless", "--json"),
    )
    result = json.loads(out)
    assert code == 0
    assert result["lossless"]["equal"] == 2
    if drafter != "ngram":
        assert result["tau"] == 4.0  # the target is its own draft model


def test_a_run_cut_short_keeps_the_cycles_it_had(call, tmp_path, monkeypatch):
    import gumiho_decoder.measuring.runs as module

    whole, calls = module.generate, []

    def cut(*arguments):
        calls.append(arguments)
        if len(calls) > 3:  # two to warm up, then the first prompt
            raise KeyboardInterrupt
        return whole(*arguments)

    monkeypatch.setattr(module, "generate", cut)
    trace = tmp_path / "t.parquet"
    code, _, err = call(*PAIR, "--prompts", "prompts.jsonl", "--max-new-tokens", "20", "-o", str(trace))
    kept = Trace.read(trace)
    assert code == 130
    assert kept.prompts == ("1",)
    assert kept.provenance["complete"] is False
    assert str(trace) in err


@pytest.mark.parametrize("extra", [("-o", "prompts.jsonl"), ("-o", "a.parquet", "--every-position", "a.parquet")])
def test_no_file_is_written_over_another_of_the_same_command(extra, call, pair):
    before = (pair / "prompts.jsonl").read_text()
    code, out, err = call(*PAIR, "--prompts", "prompts.jsonl", *extra, "--json")
    assert (code, out) == (2, "")
    assert "a file of its own" in err or "another kind" in err
    assert (pair / "prompts.jsonl").read_text() == before
    assert not (pair / "a.parquet").exists()


def test_candidates_beyond_the_vocabulary_are_refused_before_decoding(call, monkeypatch):
    monkeypatch.setattr("gumiho_decoder.measuring.runs.generate", lambda *_: pytest.fail("decoded first"))
    code, _, err = call(*PAIR, "--prompts", "prompts.jsonl", "--every-position", "e.parquet", "--log-top-k", "400")
    assert code == 2
    assert "--log-top-k" in err


def test_an_interrupted_command_says_so(call, monkeypatch):
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("gumiho_decoder.measuring.runs.generate", interrupted)
    code, _, err = call(*PAIR, "--prompts", "prompts.jsonl")
    assert code == 130
    assert "error: interrupted" in err


def test_train_makes_a_drafter_that_decodes_and_resume_goes_on(call, pair, tmp_path):
    lines = "".join(f"def f{i}(x):\n    return x + {i}\n\n" for i in range(70))
    (pair / "code.txt").write_text(lines)
    common = ("train", "--target", "target", "--data", "code.txt", "--length", "32", "--seed", "3", "--json")
    code, out, _ = call(*common, "--method", "medusa", "--steps", "4", "--set", "heads=3", "-o", str(tmp_path / "m"))
    result = json.loads(out)
    assert code == 0
    assert (result["steps"], len(result["heldout_accuracy"])) == (4, 3)
    assert {"tokens", "loss"} <= result.keys()
    code, out, _ = call(
        *("decode", "--target", "target", "--drafter", str(tmp_path / "m"), "--prompts", "prompts.jsonl"),
        *("--structure", "chain:3", "--max-new-tokens", "12", "--check-lossless", "--json"),
    )
    assert code == 0
    assert json.loads(out)["lossless"]["equal"] == 2


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        (("--method", "oracle"), ("method", "oracle")),
        (("--method", "eagle", "--set", "heads=3"), ("heads",)),
        (("--method", "eagle", "--set", "nothing"), ("--set", "nothing")),
        (("--method", "eagle", "--steps", "2", "--set", "steps=3"), ("--set", "steps=3")),
        (("--method", "eagle", "--data", "none.txt"), ("none.txt",)),
        (("--method", "eagle", "--rate", "-1"), ("rate", "-1")),
        (("--method", "eagle", "--set", "method=gumiho"), ("--set", "method=gumiho")),
    ],
)
def test_bad_training_requests_exit_2_with_one_line(extra, words, call, pair, tmp_path):
    (pair / "code.txt").write_text("x = 1\n" * 100)
    data = () if "--data" in extra else ("--data", "code.txt")
    code, out, err = call("train", "--target", "target", *data, "-o", str(tmp_path / "x"), "--json", *extra)
    assert (code, out) == (2, "")
    lines = [line for line in err.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1
    for word in words:
        assert word in lines[0]


def test_a_log_is_not_written_over_somebodys_weights_but_over_an_older_log(call, pair, tmp_path):
    weights = (pair / "drafter" / "model.safetensors").read_bytes()
    common = (*PAIR, "--prompts", "prompts.jsonl", "--max-new-tokens", "4")
    code, _, err = call(*common, "-o", "drafter/model.safetensors")
    assert (code, "another kind" in err) == (2, True)
    assert (pair / "drafter" / "model.safetensors").read_bytes() == weights
    for _ in range(2):
        assert call(*common, "-o", str(tmp_path / "t.parquet"))[0] == 0
    code, _, err = call("profile", "--target", "target", "--drafter", "drafter", "-o", "drafter/config.json")
    assert (code, "another kind" in err) == (2, True)


def test_training_writes_only_into_a_folder_of_its_own(call, pair, tmp_path):
    (pair / "code.txt").write_text("x = 1\n" * 100)
    (tmp_path / "tokenizer.json").write_text("mine")
    code, _, err = call("train", "--target", "target", "--data", "code.txt", "--method", "eagle", "-o", str(tmp_path))
    assert (code, "tokenizer.json" in err) == (2, True)
    assert (tmp_path / "tokenizer.json").read_text() == "mine"
