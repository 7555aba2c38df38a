"""Files of training data: every format read, every fault counted and named, no more held than is read."""

from __future__ import annotations

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gumiho_decoder.training.texts import documents as train_data
from gumiho_decoder.training.texts import json_pieces
from gumiho_decoder.training.texts.documents import OPENS, Document, Report, Turn, read_documents
from gumiho_decoder.training.texts.json_pieces import array_pieces, line_pieces
from gumiho_theory import InputError

SHORTENED = "shortened: kept up to the last answer before a faulty turn"


def read(path, report: Report | None = None) -> list[Document]:
    return list(read_documents([str(path)], Report() if report is None else report))


def write(tmp_path, data: str | bytes, name: str = "d.jsonl"):
    path = tmp_path / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def talk(*contents: str, system: str | None = None) -> Document:
    said = [Turn(("user", "assistant")[i % 2], content) for i, content in enumerate(contents)]
    return Document(tuple([Turn("system", system)] if system is not None else []) + tuple(said))


def text(content: str) -> Document:
    return Document((Turn("text", content),))


def test_each_format_of_json_is_read(tmp_path):
    rows = [
        {"text": "a"},
        {"prompt": "q"},
        {"prompt": "q", "completion": "a", "more": 1},
        {"prompt": "q", "response": "a"},
        {"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "q"}]},
        {"conversations": [{"from": "human", "value": "q"}, {"from": "gpt", "value": "a"}]},
        {"conversations": [{"from": "user", "value": "q"}, {"from": "assistant", "value": "a"}]},
        {"turns": ["q", "a", "r"]},
    ]
    wanted = [text("a"), talk("q"), *[talk("q", "a")] * 2, talk("q", system="s"), *[talk("q", "a")] * 2]
    wanted.append(talk("q", "a", "r"))
    lines = "\n\n".join(map(json.dumps, rows))
    report = Report()
    assert read(write(tmp_path, lines), report) == wanted
    assert report.counts == {"file of JSON lines": 1, "read": 8}
    assert read(write(tmp_path, json.dumps(rows, indent=2), "d.json")) == wanted
    assert read(write(tmp_path, "\ufeff" + lines)) == read(write(tmp_path, "\ufeff \n" + json.dumps(rows))) == wanted


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("a.txt", "one\n\ntwo\r\n", "text"),
        ("a.py", "{'text': 1}", "text"),
        ("a.md", "[link](x)", "text"),
        ("a.txt", '{"other": 1}\n{"text": "b"}', "text"),
        ("a.txt", ' {"text": "b"}\nmore', "JSON lines"),
        ("a", '[\n{"text": "b"}]', "a JSON array"),
        ("a.jsonl", '[]\n{"text": "b"}', "JSON lines"),
    ],
)
def test_the_content_says_what_a_file_is_and_the_report_names_it(name, content, kind, tmp_path):
    report = Report()
    path = write(tmp_path, content, name)
    wanted = content if kind == "text" else "b"
    assert read(path, report) == [text(wanted)]
    assert report.places[f"file of {kind}"] == [str(path)]


def test_a_byte_order_mark_is_no_part_of_a_text(tmp_path):
    assert read(write(tmp_path, b"\xef\xbb\xbfone", "a.txt")) == [text("one")]


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("{", "broken JSON, or no object"),
        ('["text"]', "broken JSON, or no object"),
        ("null", "broken JSON, or no object"),
        ("[" * 100_000, "broken JSON, or no object"),
        ('{"text": "\xff"}', "broken JSON, or no object"),
        ('{"other": "a"}', "not exactly one of text, prompt, messages, conversations, turns"),
        ('{"text": "a", "prompt": "b"}', "not exactly one of text, prompt, messages, conversations, turns"),
        ('{"prompt": "a", "completion": "b", "response": "c"}', "both completion and response"),
        ('{"messages": {"role": "user"}}', "messages is no list"),
        ('{"text": ""}', "empty turn"),
        ('{"text": " \\n"}', "empty turn"),
        ('{"text": "a\\u0000"}', "null byte"),
        ('{"text": "\\ud800"}', "half of a surrogate pair"),
        ('{"text": ["a"]}', "content is no text"),
        ('{"prompt": "a", "completion": null}', "content is no text"),
        ('{"messages": [3]}', "wrong role"),
        ('{"messages": [{"role": [], "content": "a"}]}', "wrong role"),
        ('{"messages": [{"role": "human", "content": "a"}]}', "wrong role"),
        ('{"conversations": [{"from": "bard", "value": "a"}]}', "wrong role"),
        ('{"messages": [{"role": "user"}]}', "content is no text"),
        ('{"messages": []}', "no turn of a user"),
        ('{"messages": [{"role": "system", "content": "a"}]}', "no turn of a user"),
        ('{"conversations": [{"from": "gpt", "value": "a"}]}', "no turn of a user"),
        ('{"turns": ["a", ""]}', "empty turn"),
    ],
)
def test_every_fault_is_counted_and_named_by_line_and_the_rest_is_read(line, fault, tmp_path):
    data = b'{"text": "before"}\n' + line.encode("latin-1") + b'\n{"text": "behind"}\n'
    report = Report()
    path = write(tmp_path, data)
    assert read(path, report) == [text("before"), text("behind")]
    assert report.counts[fault] == 1 and report.counts["skipped"] == 1 and report.counts["read"] == 2
    assert report.places[fault][0].startswith(f"{path}, line 2")
    with pytest.raises(InputError, match="nothing of use") as refused:
        read(write(tmp_path, line.encode("latin-1"), "only.jsonl"))
    assert "only.jsonl" in str(refused.value) and fault[:20] in str(refused.value)


@pytest.mark.parametrize("fault", ["empty turn", "null byte", "half of a surrogate pair", "wrong role", "wrong order"])
@pytest.mark.parametrize(("place", "kept"), [(0, 0), (1, 0), (2, 2), (3, 2), (4, 4)])
def test_a_conversation_is_kept_up_to_the_last_answer_before_a_fault(fault, place, kept, tmp_path):
    said = [["user", "q"], ["assistant", "a"], ["user", "r"], ["assistant", "b"], ["user", "s"]]
    other = said[place - 1][0] if place else "assistant"
    said[place] = {
        "empty turn": [said[place][0], " "],
        "null byte": [said[place][0], "x\0"],
        "half of a surrogate pair": [said[place][0], "\udfff"],
        "wrong role": ["tool", "x"],
        "wrong order": [other, "x"],
    }[fault]
    report = Report()
    rows = [{"text": "x"}, {"messages": [{"role": role, "content": content} for role, content in said]}]
    read_back = read(write(tmp_path, "\n".join(map(json.dumps, rows))), report)[1:]
    if (fault, place) == ("wrong order", 0):  # that is a conversation which opens with the assistant, twice
        assert report.counts[OPENS] == 2 and read_back == [talk("r", "b", "s")]
        return
    assert read_back == ([talk(*"qarb"[:kept])] if kept else [])
    assert report.places[fault][0].endswith(f"line 2, turn {place + 1}")
    assert report.counts[SHORTENED] == bool(kept)


def test_a_piece_that_opens_with_the_assistant_is_kept_from_its_question_on(tmp_path):
    report = Report()
    turns = [("system", "s"), ("gpt", "x"), ("human", "q"), ("gpt", "a")]
    row = {"conversations": [{"from": who, "value": what} for who, what in turns]}
    assert read(write(tmp_path, json.dumps(row)), report) == [talk("q", "a", system="s")]
    assert report.counts[OPENS] == 1


def test_a_line_too_long_is_counted_and_not_held(tmp_path, monkeypatch):
    monkeypatch.setattr(json_pieces, "PIECE_BYTES", 100)
    fits = '{"text": "' + "a" * 88 + '"}'  # 100 bytes
    longer = fits.replace("aa", "aaa", 1)
    report = Report()
    path = write(tmp_path, f'{longer}\n{fits}\n{{"text": "b"}}\n{longer * 4}')
    assert [document.turns[0].content for document in read(path, report)] == ["a" * 88, "b"]
    assert report.places["longer than 100 bytes"] == [f"{path}, line 1", f"{path}, line 4"]
    report = Report()
    path = write(tmp_path, f"[{longer},\n{fits},\n{longer * 9},\n" + '{"text": "b"}]', "d.json")
    assert [document.turns[0].content for document in read(path, report)] == ["a" * 88, "b"]
    assert report.places["longer than 100 bytes"] == [f"{path}, line 1 (element 1)", f"{path}, line 3 (element 3)"]


@pytest.mark.parametrize("name", ["a.txt", "a.jsonl", "a.json"])
@pytest.mark.parametrize("data", [b"", b" \n", b"\xef\xbb\xbf", b"\0", b"\xff\xfea\0", b"\n[{}]"])
def test_a_file_with_nothing_of_use_is_refused_by_name(name, data, tmp_path):
    with pytest.raises(InputError, match=name):
        read(write(tmp_path, data, name))


def test_a_missing_file_a_folder_and_a_text_beyond_bounds_are_refused_by_name(tmp_path, monkeypatch):
    for path in (tmp_path / "none", tmp_path, "a\0b"):
        with pytest.raises(InputError, match="wanted"):
            read(path)
    monkeypatch.setattr(train_data, "TEXT_BYTES", 3)
    assert read(write(tmp_path, "abc", "a.txt")) == [text("abc")]
    with pytest.raises(InputError, match="cut it"):
        read(write(tmp_path, "abcd", "a.txt"))


def test_the_file_that_holds_nothing_is_named_among_others(tmp_path):
    good, bad = write(tmp_path, "a", "good.txt"), write(tmp_path, "{}", "bad.jsonl")
    documents = read_documents([str(good), str(bad)], Report())
    assert next(documents) == text("a")
    with pytest.raises(InputError, match=r"bad\.jsonl"):
        next(documents)


@pytest.mark.parametrize(
    "turns",
    [
        (),
        (Turn("system", "s"),),
        (Turn("assistant", "a"),),
        (Turn("user", "q"), Turn("user", "q")),
        (Turn("text", "a"), Turn("text", "b")),
        (Turn("user", "q"), Turn("text", "b")),
        (Turn("user", "q"), Turn("system", "s")),
        (Turn("tool", "q"),),
    ],
)
def test_a_document_of_turns_in_another_order_cannot_be_made(turns):
    with pytest.raises(InputError, match="document"):
        Document(turns)


# Characters that matter to a reader of JSON, and any other but those that are faults.
CONTENT = st.text(
    st.sampled_from('"\\{}[],:\n\r\t u') | st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1
).filter(str.strip)
TALK = st.lists(CONTENT, min_size=1, max_size=5)


def rows_of(document: Document, form: str) -> dict:
    said = [(turn.role, turn.content) for turn in document.turns]
    if said[0][0] == "text":
        return {"text": said[0][1]}
    if form == "turns" and said[0][0] == "user":
        return {"turns": [content for _, content in said]}
    if form == "prompt" and len(said) <= 2 and said[0][0] == "user":
        return dict(zip(("prompt", "completion"), (content for _, content in said), strict=False))
    if form == "conversations":
        names = {"system": "system", "user": "human", "assistant": "gpt"}
        return {"conversations": [{"from": names[role], "value": content} for role, content in said]}
    return {"messages": [{"role": role, "content": content} for role, content in said]}


DOCUMENTS = st.lists(
    CONTENT.map(text) | st.builds(lambda said, system: talk(*said, system=system), TALK, CONTENT | st.none()),
    min_size=1,
    max_size=6,
)


@given(
    DOCUMENTS,
    st.sampled_from(["messages", "conversations", "turns", "prompt"]),
    st.booleans(),
    st.sampled_from([None, 2]),
    st.integers(1, 40),
)
def test_documents_come_back_through_every_format(documents, form, ascii_only, indent, chunk):
    """Whatever the contents and wherever a chunk of the file ends."""
    rows = [rows_of(document, form) for document in documents]
    lines = "\n".join(json.dumps(row, ensure_ascii=ascii_only) for row in rows).encode()
    whole = json.dumps(rows, ensure_ascii=ascii_only, indent=indent).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_pieces, "CHUNK_BYTES", chunk)
        pieces = [line_pieces(io.BytesIO(lines), "f"), array_pieces(io.BytesIO(whole), "f")]
        for found in pieces:
            report = Report()
            assert [train_data._document(piece, report) for piece in found] == documents
            assert not report.counts


def test_a_report_names_the_first_few_and_counts_all():
    report = Report()
    for line in range(5):
        report.note("empty turn", f"f, line {line}")
    report.note("read", "f")
    assert report.lines() == ["empty turn: 5 (f, line 0; f, line 1; f, line 2; …)", "read: 1 (f)"]
    assert report.to_json()["empty turn"] == {"count": 5, "first": ["f, line 0", "f, line 1", "f, line 2"]}
