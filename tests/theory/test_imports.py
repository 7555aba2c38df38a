from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import gumiho_theory


def test_importing_the_package_loads_none_of_the_heavy_libraries() -> None:
    program = (
        "import sys, gumiho_theory\n"
        "heavy = {'torch', 'scipy', 'pandas', 'pyarrow', 'matplotlib', 'seaborn', 'sympy', 'transformers'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    folder = str(Path(gumiho_theory.__file__).parents[1])
    code = f"import sys; sys.path.insert(0, {folder!r})\n{program}"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_everything_named_in_all_exists() -> None:
    for name in gumiho_theory.__all__:
        assert getattr(gumiho_theory, name) is not None


def test_the_package_tells_type_checkers_that_it_is_typed() -> None:
    spec = importlib.util.find_spec("gumiho_theory")
    assert spec is not None and spec.origin is not None
    assert (Path(spec.origin).parent / "py.typed").is_file()
