"""Without torch the decoder's commands say what to install; the others work."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]
CALL = """
import sys
sys.path.insert(0, {tests!r})
from without_torch import Block
sys.meta_path.insert(0, Block())
sys.argv = {arguments!r}
from gumiho_decoder.commands.main import main
main()
"""


def call(*arguments: str) -> subprocess.CompletedProcess[str]:
    code = CALL.format(tests=str(TESTS), arguments=["gumiho", *arguments])
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)


def test_decode_without_torch_says_what_to_install(tmp_path):
    (tmp_path / "p.jsonl").write_text('{"prompt": "a"}\n')
    done = call("decode", "--prompts", str(tmp_path / "p.jsonl"))
    assert done.returncode == 2
    wanted = "found none, wanted it installed (pip install 'gumiho[decoder]')"
    assert done.stderr == f"error: Python package torch: {wanted}\n"


def test_predict_works_without_torch():
    done = call("predict", "--rates", "1/2")
    assert (done.returncode, done.stderr) == (0, "")
    assert "1.5" in done.stdout
