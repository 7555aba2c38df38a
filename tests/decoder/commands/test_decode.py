"""`gumiho decode` as its user meets it, on a small random pair in folders; and every kind of bad input."""

from __future__ import annotations

import json

import pytest

from gumiho_decoder.config import GenerationConfig
from gumiho_decoder.measuring import DecodeRequest, decode_prompts
from gumiho_theory import ChainStructure, EveryPositionLog, StaticTree, Trace
from logged import chain_cycles

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


def test_one_call_in_python_gives_what_the_command_prints(call, pair):
    asked = GenerationConfig(20, ChainStructure(4))
    request = DecodeRequest(
        prompts=str(pair / "prompts.jsonl"),
        target=str(pair / "target"),
        drafter=str(pair / "drafter"),
        generation=asked,
        check=True,
    )
    found = decode_prompts(request).to_json(outputs=True)
    options = ("--max-new-tokens", "20", "--structure", "chain:4", "--check-lossless", "--outputs", "--json")
    printed = json.loads(call(*PAIR, "--prompts", "prompts.jsonl", *options)[1])
    assert found.keys() == printed.keys()
    timed = {name for name in found if "second" in name or "speedup" in name}
    assert {n: v for n, v in found.items() if n not in timed} == {n: v for n, v in printed.items() if n not in timed}


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
        cycles = list(chain_cycles(lengths, len(lengths)))
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
