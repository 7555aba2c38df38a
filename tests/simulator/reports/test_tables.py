"""Tables for people: no broken words, whatever the terminal's width."""

from __future__ import annotations

import pytest

from gumiho_simulator.reports.tables import notes_of, show, spaced, table

COLUMNS = ("model", "structure", "predicted", "lo", "hi", "measured", "relative_error", "inside")
ROWS = [
    ("hazard", "chain:7", 3.128, 1.0, 8.0, 2.532, 0.236, True),
    ("geometric", "chain:7", 2.9, 1.0, 8.0, 2.5, 0.1, True),
]


@pytest.mark.parametrize("width", [40, 60, 80, 100, 200])
def test_words_are_whole_and_values_all_there_at_any_width(width, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", str(width))
    show(table(COLUMNS, ROWS, "a title"), "a line")
    out = capsys.readouterr().out
    for word in ("hazard", "geometric", "chain:7", "predicted", "relative", "error", "3.128", "0.236"):
        assert word in out
    assert out.count("chain:7") == 2
    assert all(len(line) <= width for line in out.splitlines())
    # One table where it fits, else one a row.
    assert out.count("predicted") == (1 if width >= 100 else 2)


def test_no_word_breaks_where_the_table_fits_without(capsys: pytest.CaptureFixture[str]) -> None:
    """One long word beside columns that could give way: left to itself, the table would cut the word in two."""
    name = "calibrated-tree-of-somebody.json"
    columns = ("structure", "tau", "95 %", "supported", "speedup", "95 %")
    show(table(columns, [[name, 1.5, (1.25, 1.75), True, 2.125, (1.5, 2.5)]]))
    shown = capsys.readouterr().out
    for word in (name, "1.500", "[1.250,", "1.750]", "supported", "2.125", "2.500]"):
        assert word in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_a_structure_is_shown_in_pieces_and_a_static_one_by_its_file(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [["tree:total=16,top_k=5,depth=7,mlp_topk=5", 1.5], ["static:some/folder/tree.json", 2.5], ["a,b", 3.5]]
    show(table(("structure", "tau"), rows))
    shown = capsys.readouterr().out
    assert "tree:total=16, top_k=5" in shown and "static:tree.json" in shown and "some/folder" not in shown
    assert "a,b" in shown  # other names are left alone


def test_a_calibrated_tree_has_one_space_behind_each_comma() -> None:
    assert spaced("tree:total=16,top_k=4, calibrated") == "tree:total=16, top_k=4, calibrated"


def test_a_note_is_said_once_for_all_structures_that_it_is_about() -> None:
    rows = [{"structure": f"chain:{n}", "note": note} for n, note in ((1, "short"), (2, ""), (3, "deep"), (5, "short"))]
    assert notes_of(rows) == ["chain:1, chain:5: short", "chain:3: deep"]
