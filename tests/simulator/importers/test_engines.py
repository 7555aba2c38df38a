"""SGLang, SpecForge, TensorRT-LLM, llama.cpp, speculators, gpt-fast and specdec_bench."""

from __future__ import annotations

from typing import Any

import pytest

from gumiho_simulator.importers import Reading
from gumiho_theory import AcceptanceCounts, InputError


def counts(reading: Reading) -> AcceptanceCounts:
    assert isinstance(reading.log, AcceptanceCounts)
    return reading.log


def meta(**fields: Any) -> dict[str, Any]:
    return {"text": "", "meta_info": {"id": "r", "completion_tokens": 28, "spec_verify_ct": 10} | fields}


NEW = {"spec_num_correct_drafts": 18, "spec_num_proposed_drafts": 30, "spec_correct_drafts_histogram": [1, 3, 3, 3]}
OLD = {"spec_accept_token_num": 18, "spec_draft_token_num": 30, "spec_accept_histogram": [1, 3, 3, 3]}


@pytest.mark.parametrize("fields", [NEW, OLD])
def test_sglang_s_histogram_excludes_the_bonus_token_under_both_names(read_text, fields) -> None:
    reading = read_text(meta(**fields))
    assert counts(reading).tau() == pytest.approx(2.8) and counts(reading).survival() == pytest.approx([0.9, 0.6, 0.3])
    assert not reading.warnings


def test_sglang_s_prefill_token_is_reported_and_never_guessed(read_text) -> None:
    """sgl-project/sglang pull request 13754: completion_tokens may count the token of the prefill."""
    reading = read_text(meta(**NEW, completion_tokens=29, spec_accept_length=2.9))
    assert counts(reading).tau() == pytest.approx(2.8) and "prefill" in reading.warnings[0]
    alone = read_text(meta(completion_tokens=29))
    assert counts(alone).tau() == pytest.approx(2.9) and "may count the token of the prefill" in alone.warnings[0]


def test_sglang_s_histogram_outranks_the_counts_beside_it(read_text) -> None:
    reading = read_text(meta(**NEW | {"spec_num_correct_drafts": 20}))
    assert counts(reading).tau() == pytest.approx(2.8) and "outranks" in reading.warnings[0]


def test_sglang_requests_reach_to_the_longest_accepted_draft_of_all(read_text) -> None:
    """A request's histogram ends at what it accepted itself; the drafts were as deep as the others'."""
    short = meta(id="s", spec_verify_ct=4, completion_tokens=6, spec_correct_drafts_histogram=[2, 2])
    log = counts(read_text(meta(**NEW), short))
    assert log.at_risk is not None and log.at_risk.tolist() == [[10, 9, 6], [4, 2, 0]]


@pytest.mark.parametrize("line", ["Decode batch. accept len: 2.80, accept rate: 0.60", {"accept_length": 2.8}])
def test_sglang_s_means_alone_are_refused_with_the_reason(read_text, line) -> None:
    with pytest.raises(InputError, match=r"mean accepted length of 2\.80?.*but not of how many cycles"):
        read_text(line)


def test_specforge_counts_by_task_and_not_by_its_macro_average(read_text) -> None:
    task = {"average_acceptance_length": 9.9, "spec_verify_count": 10, "output_tokens": 28}
    reading = read_text({"results": {"gsm8k": task, "mtbench": task | {"output_tokens": 20}}})
    assert counts(reading).cycles.tolist() == [10, 10] and counts(reading).tau() == pytest.approx(2.4)


def iteration(number: int, drafted: int, accepted: int, requests: int) -> dict[str, Any]:
    length = 1 + accepted / requests if requests else 0.0
    statistics = {"numDraftTokens": drafted, "numAcceptedTokens": accepted, "acceptanceLength": length}
    return {"iter": number, "specDecodingStats": statistics | {"numRequestsWithDraftTokens": requests}}


def test_tensorrt_llm_s_iterations_are_pooled_without_positions(read_text) -> None:
    log = counts(read_text(iteration(1, 0, 0, 0), iteration(2, 30, 18, 10), iteration(3, 15, 3, 5)))
    assert log.cycles.tolist() == [10, 5] and log.tau() == pytest.approx(1 + 21 / 15) and not log.has_positions


def test_tensorrt_llm_s_percentiles_have_no_number_of_cycles(read_text) -> None:
    report = {"decoding_stats": {"acceptance_length_percentiles": {"average": 2.8}}}
    with pytest.raises(InputError, match=r"tau 2\.8, bonus included, but not of how many cycles"):
        read_text(report)


SLOT = "slot print_timing: id 0 | task 0 | "


def test_llama_cpp_s_requests_give_back_their_cycles(read_text) -> None:
    lines = [
        f"{SLOT}draft acceptance = 0.60000 (   18 accepted /    30 generated), mean len =  2.80",
        f"{SLOT}draft acceptance = 0.77945 (  311 accepted /   399 generated), mean acceptance length =  2.55, "
        "acceptance rate per position = (0.850, 0.705)",
    ]
    reading = read_text("loading", *lines)
    assert counts(reading).cycles.tolist() == [10, 200]
    both = counts(read_text(lines[1]))
    assert both.survival() == pytest.approx([0.85, 0.705])


def test_llama_cpp_s_rounding_is_said_where_it_matters(read_text) -> None:
    reading = read_text("draft acceptance = 0.77945 (  311 accepted /   399 generated), mean len =  2.55")
    assert counts(reading).cycles[0] in (200, 201) and "within rounding" in reading.warnings[0]


STATISTICS = (
    "statistics        draft-mtp: #calls(b,g,a) =    1    {g}    {a}, #gen drafts =    {g}, #acc drafts =   170, "
    "#gen tokens =    399, #acc tokens =   311, #mean acc len = 2.55, #acc rate/pos = (0.850, 0.705), dur = 1"
)


def test_llama_cpp_s_statistics_count_verified_drafts_only(read_text) -> None:
    """ggml-org/llama.cpp issue 14048: drafts below draft-min are made and thrown away."""
    old = "draft acceptance rate = 0.77945 (  311 accepted /   399 generated)"
    log = counts(read_text(old, STATISTICS.format(g=150, a=100), STATISTICS.format(g=260, a=200)))
    assert log.groups == ("draft-mtp",) and log.cycles.tolist() == [200]
    assert log.survival() == pytest.approx([0.85, 0.705])


def test_llama_cpp_s_positions_that_end_before_the_drafts_do_are_left_out(read_text) -> None:
    line = (
        "statistics ngram-mod: #calls(b,g,a) = 4 542 31, #gen drafts = 31, #acc drafts = 28, #gen tokens = 920, "
        "#acc tokens = 527, #mean acc len = 18.00, #acc rate/pos = (0.903, 0.806)"
    )
    log = counts(read_text(line))
    assert log.cycles.tolist() == [31] and log.tau() == pytest.approx(18) and not log.has_positions


@pytest.mark.parametrize(
    "line",
    [
        "draft acceptance rate = 0.60000 (   18 accepted /    30 generated)",
        {"timings": {"predicted_n": 40, "draft_n": 30, "draft_n_accepted": 18}},
    ],
)
def test_llama_cpp_without_steps_is_refused(read_text, line) -> None:
    with pytest.raises(InputError, match="but not of how many cycles"):
        read_text(line)


def test_speculators_rows_are_subsets_and_empty_cells_were_not_drafted(read_text) -> None:
    head = "subset,num_drafts,num_draft_tokens,num_accepted_tokens,acceptance_length,"
    log = counts(
        read_text(
            f"{head}acceptance_at_pos_0,acceptance_at_pos_1,acceptance_at_pos_2",
            "HumanEval,10.0,30.0,18.0,2.8,0.9,0.6,0.3",
            "math,20.0,20.0,18.0,1.9,0.9,,",
        )
    )
    assert log.groups == ("HumanEval", "math")
    assert log.at_risk is not None and log.at_risk.tolist() == [[10, 9, 6], [20, 0, 0]]
    assert log.tau() == pytest.approx(1 + 36 / 30)


@pytest.mark.parametrize(
    ("shares", "message"),
    [
        ("0.1, 0.3, 1.3", "share of L = 2 is 1.3, not from 0 to 1"),
        ("0.1, -0.3, 0.3", "share of L = 1 is -0.3"),
        ("0.1, nan, 0.9", "share of L = 1 is nan"),
        ("0.1, 0.3, 0.3", "shares sum to 0.7, not to 1"),
    ],
)
def test_gpt_fast_s_shares_that_are_none_are_refused_by_line(read_text, shares: str, message: str) -> None:
    with pytest.raises(InputError, match=f"line 2.*{message}"):
        read_text("==========", f"Acceptance probs: [{shares}]", "Mean Accepted: 1.8")


def test_a_speculators_row_with_more_accepted_than_drafted_is_an_error_of_its_line(read_text) -> None:
    head = "subset,num_drafts,num_draft_tokens,num_accepted_tokens,acceptance_length,acceptance_at_pos_0"
    with pytest.raises(InputError, match="line 2.*31 of 30 drafted tokens accepted"):
        read_text(head, "math,30,30,31,2.03,0.9")
    without = head.replace("num_draft_tokens,", "")
    with pytest.raises(InputError, match="line 2.*31 tokens accepted in 30 drafts of 1 positions"):
        read_text(without, "math,30,31,2.03,0.9")


def test_gpt_fast_s_shares_are_handed_on_as_rates_in_the_refusal(read_text) -> None:
    with pytest.raises(InputError, match=r"tau 2\.8, bonus included, survival rates 0\.9,0\.6,0\.3"):
        read_text("==========", "Acceptance probs: [0.1, 0.3, 0.3, 0.3]", "Mean Accepted: 1.8")


def test_specdec_bench_keys_are_emitted_tokens_and_a_missing_one_an_empty_bucket(read_text) -> None:
    """Read as if the list of keys were dense, the same counts give tau 1.163 and no position beyond 1."""
    reading = read_text({"Acceptance_Length_Histogram": {"1": 39, "2": 1, "4": 3}, "Average_AL": 1.163})
    assert counts(reading).survival() == pytest.approx([4 / 43, 3 / 43, 3 / 43])
    assert counts(reading).tau() == pytest.approx(1.2326, abs=1e-4)
    assert "outranks" in reading.warnings[0]


def test_a_speculation_profile_s_histogram_is_read_and_rates_alone_are_refused(read_text) -> None:
    profile = {
        "num_speculative_tokens": 5,
        "marginal_accept_rates": [0.9, 0.6, 0.3],
        "mean_accept_length": 2.8,
        "acceptance_length_histogram": {"1": 1, "2": 3, "3": 3, "4": 3},
    }
    log = counts(read_text(profile))
    assert log.at_risk is not None and log.at_risk.tolist() == [[10, 9, 6, 3, 0]]
    joint = profile | {"vectors_unavailable_reason": "blocks are accepted jointly"}
    assert not counts(read_text(joint)).has_positions
    with pytest.raises(InputError, match="but not of how many cycles"):
        read_text({key: profile[key] for key in profile if "histogram" not in key})


def test_specdec_bench_lengths_below_one_token_are_unusable(read_text) -> None:
    with pytest.raises(InputError, match="counts cycles below 1"):
        read_text({"Acceptance_Length_Histogram": {"0": 2, "1": 3}})
