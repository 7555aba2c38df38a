"""The embedded pair and the demo: what ships is what was trained, and the main job runs on it."""

from __future__ import annotations

import json
import re

import pytest

from gumiho_decoder.commands import demonstration as demo
from gumiho_decoder.commands.main import main
from gumiho_decoder.config import GenerationConfig
from gumiho_decoder.drafters.files.fingerprint import fingerprint
from gumiho_decoder.embedded import PROMPTS, embedded
from gumiho_decoder.loop import generate, plain
from gumiho_decoder.measuring.lossless import compare
from gumiho_decoder.measuring.pair import load_pair
from gumiho_decoder.measuring.prompts import read_prompts
from gumiho_theory import Structure, Trace


@pytest.fixture(scope="module")
def pair():
    return load_pair("tiny", "tiny:gumiho")


FOLDERS = [path.parent for path in embedded("").glob("*/config.json")]


def test_every_drafter_was_trained_on_this_very_target(pair):
    wanted = fingerprint(pair[0].model)
    for folder in FOLDERS:
        if folder.name != "target":
            assert json.loads((folder / "config.json").read_text())["target_fingerprint"] == wanted


def test_the_models_fit_their_size():
    assert sum(f.stat().st_size for folder in FOLDERS for f in folder.iterdir()) < 48_000_000


def test_every_shipped_prompt_fits_the_model(pair):
    target, _ = pair
    for prompt in read_prompts(str(PROMPTS)):
        assert len(target.encode(prompt.turns[0])) + 128 < target.positions


@pytest.mark.parametrize("structure", ["chain:7", "tree:total=24,top_k=6,depth=7,mlp_topk=8"])
def test_trained_drafts_leave_the_output_unchanged_and_are_accepted(structure, pair):
    target, drafter = pair
    for prompt in read_prompts(str(PROMPTS))[5::16]:
        tokens = target.encode(prompt.turns[0])
        cycles = []
        out = generate(target, drafter, tokens, GenerationConfig(48, Structure.parse(structure)), cycles.append)
        expected = plain(target, tokens, GenerationConfig(48))
        assert compare(target, tokens, expected.token_ids, out.token_ids).verdict in {"equal", "tie"}
        assert len(cycles) < 40


def test_the_demo_decodes_checks_forecasts_and_reports(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(demo, "read_prompts", lambda path: read_prompts(path)[::8])
    monkeypatch.setattr("sys.argv", ["gumiho", "demo", "-o", str(tmp_path / "a" / "b"), "--json"])
    with pytest.raises(SystemExit) as ended:
        main()
    result = json.loads(capsys.readouterr().out)
    assert ended.value.code == 0
    assert result["lossless"]["different"] == 0
    assert result["lossless"]["checked"] == 8
    assert result["generate_equal"] == result["generate_checked"] > 0
    rows = result["validation"]["rows"]
    assert {row["model"] for row in rows} == {"geometric", "hazard", "hmm", "mixture", "rank"}
    assert all(row["lo"] < row["predicted"] < row["hi"] for row in rows)
    trace = Trace.read(tmp_path / "a" / "b" / "trace.parquet")
    assert result["tau"] == trace.tau()
    page = (tmp_path / "a" / "b" / "index.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 4
    assert not re.search(r'(src|href)="https?://', page)
    assert len(list((tmp_path / "a" / "b" / "figures").iterdir())) == 4


def test_a_report_folder_that_cannot_be_made_is_refused_before_any_work(monkeypatch, capsys, tmp_path):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setattr("sys.argv", ["gumiho", "demo", "-o", str(tmp_path / "file" / "report")])
    monkeypatch.setattr(demo, "load_pair", lambda *_: pytest.fail("models were loaded first"))
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith(f"error: {tmp_path / 'file' / 'report'}: found ")
    assert (tmp_path / "file").read_text() == "in the way"
