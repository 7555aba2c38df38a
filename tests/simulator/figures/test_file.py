"""Figures as files: each format by its suffix, equal data give equal files, and a wrong name is refused before work."""

from __future__ import annotations

from pathlib import Path

import pytest

from gumiho_simulator.figures.file import check_figure, write_figure
from gumiho_theory import InputError

MAGIC = {".svg": b"<?xml", ".png": b"\x89PNG", ".pdf": b"%PDF", ".PNG": b"\x89PNG"}


@pytest.mark.parametrize("suffix", MAGIC)
def test_the_suffix_says_the_format(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"a{suffix}"
    write_figure(path, (2, 2), lambda figure: figure.subplots().plot([1, 2]))
    assert path.read_bytes().startswith(MAGIC[suffix])


def test_equal_data_give_equal_files_on_a_ground_of_their_own(tmp_path: Path) -> None:
    for name in ("a.svg", "b.svg"):
        write_figure(tmp_path / name, (2, 2), lambda figure: figure.subplots().plot([1, 2]))
    text = (tmp_path / "a.svg").read_text(encoding="utf-8")
    assert text == (tmp_path / "b.svg").read_text(encoding="utf-8")
    assert "fill: #ffffff" in text


@pytest.mark.parametrize("name", ["a.txt", "a", "a.svg.gz"])
def test_another_suffix_is_refused_before_anything_is_drawn(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a name that ends in .svg, .png or .pdf"):
        check_figure(tmp_path / name)
    with pytest.raises(InputError, match="--figure"):
        write_figure(tmp_path / name, (2, 2), lambda figure: pytest.fail("drawn"))
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_not_there_is_named_before_anything_is_drawn(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no folder 'missing'"):
        write_figure(tmp_path / "missing" / "a.svg", (2, 2), lambda figure: pytest.fail("drawn"))


def test_a_figure_is_not_drawn_over_another_file_of_the_command(tmp_path: Path) -> None:
    (tmp_path / "log.svg").touch()
    for other in (tmp_path / "log.svg", tmp_path / "not yet.svg"):
        with pytest.raises(InputError, match="--figure: .*wanted a file of its own"):
            check_figure(other, [tmp_path / "a", other])
    check_figure(tmp_path / "log.svg", [tmp_path / "a"])
