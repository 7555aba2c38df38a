"""What a light command loads, judged by the import graph, not by the clock."""

from __future__ import annotations

import json
import subprocess
import sys

PROBE = """
import json, sys
sys.argv = ["gumiho", *json.loads(sys.argv[1])]
from gumiho_decoder.commands.main import main
try:
    main()
except SystemExit as ended:
    code = ended.code
print(json.dumps({"code": code, "loaded": sorted({name.partition(".")[0] for name in sys.modules})}), file=sys.stderr)
"""
HEAVY = {"torch", "transformers", "scipy", "pandas", "matplotlib", "seaborn", "pyarrow", "sympy", "numba", "jinja2"}


def probe(*arguments: str) -> dict:
    done = subprocess.run(
        [sys.executable, "-c", PROBE, json.dumps(arguments)], capture_output=True, text=True, check=True
    )
    return {"out": done.stdout, **json.loads(done.stderr.splitlines()[-1])}


def test_predict_loads_no_heavy_package():
    result = probe("predict", "--rates", "0.8,0.7", "--json")
    assert result["code"] == 0
    assert abs(json.loads(result["out"])["tau"] - 2.36) < 1e-12
    assert HEAVY.isdisjoint(result["loaded"])


def test_importing_the_decoder_loads_no_torch():
    code = "import sys, gumiho_decoder; print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"
