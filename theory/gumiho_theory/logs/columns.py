"""The columns of the cycle trace and of the every-position log."""

from __future__ import annotations

from gumiho_theory.logs.schema import Column, RowSchema

STOP_REASONS = ("eos", "stop_string", "length", "context")

_WHERE = (
    Column("prompt_id", "string", "", "name of the prompt", required=True),
    Column("task", "string", "", "category of the prompt"),
    Column("turn", "int", "", "turn of the conversation, from 0", required=True),
)
_ROOT = Column("position", "int", "token index, from 0", "index of the tree's root in the sequence", required=True)


def _true_token(token: str, its: str) -> tuple[Column, Column, Column]:
    """Return the columns of the token that was right at each depth, by the words that name it."""
    return (
        Column("rank", "int_list", "from 1", f"rank of {token} among the draft candidates", null=0),
        Column("q_draft", "float_list", "probability", f"the drafter's probability of {token}"),
        Column("p_target", "float_list", "probability", f"the target's probability of {its}"),
    )


TRACE_SCHEMA = RowSchema(
    "gumiho.trace",
    1,
    (
        *_WHERE,
        Column("cycle", "int", "", "cycle within the turn, from 0", required=True),
        _ROOT,
        Column("drafted", "int", "draft positions", "depth of the draft", required=True),
        Column("nodes", "int", "tokens", "tokens verified, the root included", required=True),
        Column("accepted", "int", "tokens", "verified draft tokens L, no bonus, before any cut", required=True),
        Column("committed", "int", "tokens", "tokens added to the output", required=True),
        Column("censored_at", "int", "draft position", "depth beyond which acceptance is unknown"),
        Column("stop_reason", "string", "", f"why the output ended here: {', '.join(STOP_REASONS)}"),
        Column("draft_seconds", "float", "s", "time of drafting"),
        Column("verify_seconds", "float", "s", "time of the target's verification forward"),
        Column("other_seconds", "float", "s", "rest of the cycle's time"),
        *_true_token("the target's token", "its token"),
        Column("expected_accepted", "float", "tokens", "accepted length that a dynamic tree's own scores promise"),
    ),
)

EVERY_POSITION_SCHEMA = RowSchema(
    "gumiho.every_position",
    1,
    (
        *_WHERE,
        _ROOT,
        Column("drafted", "int", "draft positions", "depths logged in this row", required=True),
        Column("stop_reason", "string", "", "why the output ended, on its last row"),
        Column("true_token", "int_list", "token id", "the token of the true continuation"),
        *_true_token("the true token", "the true token"),
        Column("top_ids", "int_table", "token id", "the drafter's k best tokens, best first"),
        Column("top_q", "float_table", "probability", "the drafter's probabilities of its k best tokens"),
        Column("accepted", "int_structures", "tokens", "accepted length of each structure from here"),
        Column("censored", "int_structures", "0 or 1", "1 where the text ended before that length was decided"),
    ),
)
