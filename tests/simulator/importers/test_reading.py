"""What holds for every format: detection by content, bounded reading, what is unusable, several files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gumiho_simulator import LogWarning, read_log
from gumiho_simulator.importers import FORMATS, import_logs, read
from gumiho_simulator.importers.reading import cycles as _cycles
from gumiho_simulator.importers.reading import entries as _entries
from gumiho_simulator.importers.reading import tally as _tally
from gumiho_simulator.importers.reading.tally import Tally
from gumiho_theory import AcceptanceCounts, InputError, Trace, files

EAGLE = {"question_id": 1, "choices": [{"index": 0, "turns": ["Hi"], "idxs": [2], "new_tokens": [9]}]}
SGLANG = {"meta_info": {"id": "r", "spec_verify_ct": 10, "spec_num_correct_drafts": 18}}
ITERATION = {"specDecodingStats": {"numDraftTokens": 30, "numAcceptedTokens": 18, "numRequestsWithDraftTokens": 10}}
LLAMA = "draft acceptance = 0.60000 (   18 accepted /    30 generated), mean len =  2.80"


def write(path: Path, *lines: Any) -> Path:
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines), "utf-8")
    return path


def cycles(log: Trace | AcceptanceCounts) -> int:
    counts = log.counts_by_prompt() if isinstance(log, Trace) else log
    return int(counts.cycles.sum())


def test_content_and_not_the_name_tells_the_format(tmp_path: Path, trace: Trace) -> None:
    trace.write(tmp_path / "a.json")
    write(tmp_path / "b.parquet", trace.counts_by_prompt().to_json())
    write(tmp_path / "c.parquet", EAGLE)
    assert isinstance(read_log(tmp_path / "a.json"), Trace)
    assert isinstance(read_log(tmp_path / "b.parquet"), AcceptanceCounts)
    assert [read(tmp_path / name).format for name in ("a.json", "b.parquet", "c.parquet")] == [
        "gumiho-trace",
        "gumiho-counts",
        "eagle",
    ]


@pytest.mark.parametrize("text", ["", "hello\nworld", "{}", '{"a": 1}', "[1, 2]", "\0\0\0", "{", "a,b\n1,2"])
def test_unknown_content_lists_the_formats(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError) as caught:
        read(write(tmp_path / "log", text))
    assert "no known format" in str(caught.value) and "--format" in str(caught.value)
    assert all(name in str(caught.value) for name in FORMATS)


def test_an_entry_that_two_formats_claim_is_not_guessed(tmp_path: Path) -> None:
    path = write(tmp_path / "log", {**SGLANG, **ITERATION})
    with pytest.raises(InputError, match="sglang and tensorrt-llm"):
        read(path)
    assert read(path, "sglang").format == "sglang" and read(path, "tensorrt-llm").format == "tensorrt-llm"


def test_a_format_can_be_named_and_an_unknown_name_lists_them(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="vllm-metrics, vllm-log"):
        read(write(tmp_path / "log", EAGLE), "vllm")
    with pytest.raises(InputError, match="usable entries of format llama-cpp"):
        read(write(tmp_path / "log", "nothing of the kind"), "llama-cpp")


def test_the_same_objects_as_lines_as_an_array_and_as_a_document(tmp_path: Path) -> None:
    objects = [EAGLE, EAGLE | {"question_id": 2}]
    forms = [
        "\n".join(map(json.dumps, objects)),
        json.dumps(objects),
        json.dumps(objects, indent=2),
        "[\n" + ",\n".join(map(json.dumps, objects)) + "\n]",
        "\ufeff" + "\r\n\r\n".join(map(json.dumps, objects)),
    ]
    for text in forms:
        reading = read(write(tmp_path / "log", text))
        assert cycles(reading.log) == 6 and not reading.warnings


def test_a_broken_first_line_does_not_hide_the_rest(tmp_path: Path) -> None:
    reading = read(write(tmp_path / "log", '{"question_id": 0, "cho', EAGLE))
    assert cycles(reading.log) == 3 and "1 unusable: line 1" in reading.warnings[0]


def test_lines_and_documents_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line is never held longer than its bound, and a document never larger than its own."""
    monkeypatch.setattr(_entries, "MAX_LINE", 300)
    long = EAGLE | {"question_id": 9, "text": "x" * 5000}
    reading = read(write(tmp_path / "log", EAGLE, long, EAGLE | {"question_id": 2}))
    assert cycles(reading.log) == 6 and "line 2" in reading.warnings[0]
    assert max(len(entry.text) for entry in _entries.LogFile.open(tmp_path / "log").entries()) <= 300
    monkeypatch.setattr(_entries, "MAX_JSON_BYTES", 400)
    with pytest.raises(InputError, match="at most 400 bytes"):
        read(write(tmp_path / "log", json.dumps([EAGLE] * 9, indent=1)))


def test_a_large_text_log_may_begin_with_a_bracket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_entries, "MAX_JSON_BYTES", 40)
    assert cycles(read(write(tmp_path / "log", "[2026-11-29 05:00:00] started", "{", LLAMA)).log) == 10


def test_more_groups_than_are_kept_merge_with_their_neighbours(read_text, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is lost of the sums, and whole groups stay together."""
    monkeypatch.setattr(_tally, "MAX_GROUPS", 10)
    reading = read_text(*(EAGLE | {"question_id": number} for number in range(95)))
    assert isinstance(reading.log, AcceptanceCounts)
    assert cycles(reading.log) == 3 * 95 and len(reading.log.groups) <= 10
    assert reading.log.tau() == pytest.approx(3) and " … " in reading.log.groups[0]
    assert "neighbours are merged" in reading.warnings[0]


def listed(question: int, lengths: list[int]) -> dict[str, Any]:
    return {"question_id": question, "choices": [{"turns": ["a"], "decoding_steps": [3], "accept_lengths": lengths}]}


def test_more_cycles_than_are_kept_become_counts(read_text, monkeypatch: pytest.MonkeyPatch) -> None:
    """The counts are those of the trace that they replace."""
    lines = [listed(number, [1 + number % 4, 2, 1]) for number in range(20)]
    trace = read_text(*lines).log
    assert isinstance(trace, Trace)
    monkeypatch.setattr(_cycles, "MAX_CELLS", 90)
    reading = read_text(*lines)
    assert isinstance(reading.log, AcceptanceCounts)
    assert reading.log.to_json() == trace.counts_by_prompt().to_json() | {"clusters": reading.log.clusters}
    assert any("summed up by group" in note for note in reading.warnings)


@given(
    turns=st.lists(
        st.tuples(st.integers(0, 4), st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=6)), max_size=8
    ),
    known=st.booleans(),
)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_sums_by_group_are_those_of_the_cycles_one_by_one(
    turns: list[tuple[int, list[tuple[int, int]]]], known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The slow twin: the trace's own counting."""
    made = []
    for kept in (2**23, -1):
        with monkeypatch.context() as patched:
            patched.setattr(_cycles, "MAX_CELLS", kept)
            tally = Tally("log", "line", clusters="prompts")
            for name, pairs in turns:
                accepted = [min(pair) for pair in pairs]
                tally.turn(str(name), None, accepted, [max(pair) for pair in pairs] if known else None)
            if not any(pairs for _, pairs in turns):
                return
            made.append(tally.finish("spec-bench").log)
    trace, counts = made
    assert isinstance(trace, Trace) and isinstance(counts, AcceptanceCounts)
    assert counts.to_json() == trace.counts_by_prompt().to_json()


def test_several_files_are_one_log_and_equal_names_stay_apart(tmp_path: Path) -> None:
    first = write(tmp_path / "a.jsonl", EAGLE, EAGLE | {"question_id": 2})
    second = write(tmp_path / "b.jsonl", EAGLE, '{"question_id"')
    reading = import_logs([first, second])
    assert isinstance(reading.log, AcceptanceCounts)
    assert reading.log.groups == ("a.jsonl: 1", "a.jsonl: 2", "b.jsonl: 1") and cycles(reading.log) == 9
    assert reading.warnings[0].startswith("b.jsonl: 1 unusable")
    third = write(tmp_path / "c.jsonl", EAGLE | {"question_id": 3})
    assert import_logs([first, third]).log.groups == ("1", "2", "3")  # type: ignore[union-attr]


def test_files_of_one_log_share_the_depth_that_none_of_them_tells(tmp_path: Path) -> None:
    shallow = write(tmp_path / "a", listed(1, [2, 1, 2]))
    deep = write(tmp_path / "b", listed(2, [4, 1, 3]))
    log = import_logs([shallow, deep]).log
    assert isinstance(log, Trace) and log.drafted.tolist() == [3] * 6
    assert log.counts_by_prompt().conditional() == pytest.approx([4 / 6, 2 / 4, 1 / 2])


def test_files_of_two_formats_or_the_same_file_twice_are_refused(tmp_path: Path) -> None:
    first, second = write(tmp_path / "a", EAGLE), write(tmp_path / "b", LLAMA)
    with pytest.raises(InputError, match="formats eagle, llama-cpp"):
        import_logs([first, second])
    with pytest.raises(InputError, match="one file twice"):
        import_logs([first, first])


def test_traces_of_this_toolkit_are_joined(tmp_path: Path, trace: Trace) -> None:
    halves = [trace.select(trace.prompts[:20]), trace.select(trace.prompts[20:])]
    for number, half in enumerate(halves):
        half.write(tmp_path / str(number))
    joined = import_logs([tmp_path / "0", tmp_path / "1"]).log
    assert isinstance(joined, Trace)
    assert (
        joined.counts_by_prompt().to_json()["accepted"]
        == trace.counts_by_prompt().select([*halves[0].prompts, *halves[1].prompts]).to_json()["accepted"]
    )
    assert joined.provenance["target"] == "synthetic"


def test_read_log_warns_of_what_it_left_out(tmp_path: Path) -> None:
    with pytest.warns(LogWarning, match="1 unusable: line 2"):
        assert cycles(read_log(write(tmp_path / "log", EAGLE, "{"))) == 3


@pytest.mark.parametrize("place", ["", "absent", "nul\0"])
def test_what_is_no_file_is_named(tmp_path: Path, place: str) -> None:
    with pytest.raises(InputError):
        read(f"{tmp_path}/{place}")


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=3),
    st.lists(st.one_of(st.integers(-2, 9), st.floats(-1, 9), st.none()), max_size=4),
    st.dictionaries(st.text("0123x", max_size=2), st.integers(-1, 9), max_size=3),
)
KEYS = (
    *("acceptance_histogram", "num_spec_steps", "per_step_accepted", "per_step_drafted", "num_spec_tokens"),
    *("spec_verify_ct", "spec_accept_histogram", "completion_tokens", "spec_num_correct_drafts", "id", "question_id"),
    *("Acceptance_Length_Histogram", "Average_AL", "num_speculative_tokens", "spec_decode_num_drafts"),
    *("spec_decode_accepted_tokens", "spec_decode_per_position_acceptance_rates", "numAcceptedTokens"),
    *("numRequestsWithDraftTokens", "spec_verify_count", "output_tokens", "mean_acceptance_length", "accept_length"),
    *("acceptance_histogram_by_draft_length", "acceptance_length_percentiles", "schema", "accepted"),
)
CHOICE = st.fixed_dictionaries(
    {}, optional={key: VALUES for key in ("idxs", "new_tokens", "accept_length", "accept_lengths", "decoding_steps")}
)


@given(
    value=st.dictionaries(st.sampled_from(KEYS), VALUES, min_size=1, max_size=5),
    choices=st.one_of(st.none(), st.lists(CHOICE, max_size=2)),
    form=st.sampled_from(("auto", *(name for name in FORMATS if name != "gumiho-trace"))),
)
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_whatever_stands_in_a_record_gives_sound_counts_or_an_input_error(
    read_text, value: dict[str, Any], choices: list[dict[str, Any]] | None, form: str
) -> None:
    record = value if choices is None else value | {"choices": choices}
    try:
        log = read_text(record, record, form=form).log
    except InputError:
        return
    tau = log.tau()
    assert tau is None or (tau >= 1 and np.isfinite(tau))


FRAGMENTS = st.sampled_from(
    (
        *(
            "SpecDecoding metrics: ",
            "Mean acceptance length: ",
            "Accepted: ",
            "Drafted: ",
            "Per-position acceptance rate: ",
        ),
        *("vllm:spec_decode_num_drafts_total", "vllm:spec_decode_num_accepted_tokens_per_pos_total", '{position="0"} '),
        *("draft acceptance = ", " accepted / ", " generated)", ", mean len = ", "accept_length (Current/Mean): "),
        *(
            "total_token:",
            "Acceptance probs: [",
            "]",
            "num_drafts,acceptance_length",
            ",",
            "\n",
            " ",
            "(",
            "0.5",
            "nan",
        ),
        *("statistics x: #calls(b,g,a) = 1 2 3, #gen drafts = ", ", #acc tokens = ", "9" * 30, "3", "18", "30", "2.80"),
    )
)


@given(text=st.lists(FRAGMENTS, max_size=25), form=st.sampled_from(("auto", *FORMATS)))
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_whatever_stands_in_a_line_gives_sound_counts_or_an_input_error(read_text, text: list[str], form: str) -> None:
    try:
        tau = read_text("".join(text), form=form).log.tau()
    except InputError:
        return
    assert tau is None or (tau >= 1 and np.isfinite(tau))


LINE = "SpecDecoding metrics: Mean acceptance length: 2.00, Accepted: 40 tokens, Drafted: 120 tokens\n"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be"])
def test_utf_16_is_refused_with_the_remedy(tmp_path: Path, encoding: str) -> None:
    mark = b"" if encoding == "utf-16" else b"\xfe\xff"
    (tmp_path / "log.txt").write_bytes(mark + LINE.encode(encoding))
    with pytest.raises(InputError, match="UTF-16 or UTF-32 text, by its byte order mark, wanted UTF-8: iconv"):
        read(tmp_path / "log.txt")


def test_bare_carriage_returns_are_refused_and_those_of_other_systems_and_of_progress_bars_read(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_bytes((2 * LINE).replace("\n", "\r").encode())
    with pytest.raises(InputError, match="bare carriage return, wanted line feeds: tr"):
        read(path)
    for text in ((2 * LINE).replace("\n", "\r\n"), "10 %\r20 %\r" + LINE + LINE):
        path.write_bytes(text.encode())
        assert read(path).log.tau() == 2.0  # type: ignore[union-attr]


def test_groups_say_what_they_are_and_go_on_saying_it(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_text(2 * LINE)
    counts = read(path).log
    assert isinstance(counts, AcceptanceCounts) and counts.clusters == "intervals"
    again = AcceptanceCounts.from_json(counts.to_json())
    assert again.clusters == "intervals" and again.select(again.groups[:1]).clusters == "intervals"
    old = {key: value for key, value in counts.to_json().items() if key != "clusters"}
    assert AcceptanceCounts.from_json(old).clusters == "groups"
    with pytest.raises(InputError, match="clusters"):
        AcceptanceCounts.from_json(old | {"clusters": 3})


def test_one_log_is_read_by_its_path_as_several_are_by_theirs(tmp_path) -> None:
    path = tmp_path / "counts.json"
    files.write_json(path, AcceptanceCounts(("a",), [10], [15], [10]).to_json())
    assert import_logs(str(path)).log.tau() == import_logs([path]).log.tau() == 2.5
