"""The closing block of a run."""

from __future__ import annotations

from typing import Any

import pytest

from binderclip.cli.ending import Ending, closing, exit_code
from binderclip.cli.layout import Look, cells
from binderclip.contract.run import ExecutionResult, RunState, Usage


def result(**fields: Any) -> ExecutionResult:
    return ExecutionResult(**{"exit_code": 0, "signal": None, "timed_out": False, **fields})


def test_success_is_one_line_of_facts_and_two_pointers() -> None:
    told = result(
        model="claude-sonnet-4-5",
        usage=Usage(input_tokens=1234, cached_input_tokens=10_000, output_tokens=567),
        cost_usd=0.0123,
        session_display_id="1a2b3c4d-5555",
    )
    ending = Ending("succeeded", told, 12.3, log="/data/stdout.log", run="99887766")
    assert closing(ending, Look()) == (
        "✓ succeeded in 12 s · claude-sonnet-4-5 · in 1,234 (cached 10,000) out 567 · $0.0123"
        " · session 1a2b3c4d\n"
        "  log    /data/stdout.log\n"
        "  more   binderclip runs transcript 99887766 --full\n"
    )


def test_unknown_cost_is_said() -> None:
    """D10: unknown, not 0."""
    assert "cost unknown" in closing(Ending("succeeded", result(model="m")), Look())


def test_failure_is_red_with_code_and_message() -> None:
    """A9: failures are told apart."""
    told = result(exit_code=3, error_code="auth", error_message="Not logged in. Run /login.")
    out = closing(Ending("failed", told, 0.4), Look(colour=True, width=80))
    assert "\x1b[31;1mfailed: auth in 0.4 s\x1b[0m · exit 3" in out
    assert "\x1b[31mNot logged in. Run /login.\x1b[0m" in out


def test_a_fact_is_never_broken_over_two_lines() -> None:
    told = result(model="claude-sonnet-4-5", session_display_id="1a2b3c4d")
    out = closing(Ending("succeeded", told, 4.5), Look(width=40))
    assert all(cells(line) <= 40 for line in out.split("\n"))
    assert "session 1a2b3c4d" in out


def test_an_error_message_cannot_steer_the_terminal() -> None:
    """T6: messages quote the agent."""
    told = result(error_code="upstream", error_message="\x1b[2Jboom", model="\x1b]0;x\x07m")
    assert "\x1b" not in closing(Ending("failed", told), Look())


@pytest.mark.parametrize(
    ("state", "code"),
    [("succeeded", 0), ("failed", 1), ("timed_out", 124), ("cancelled", 1), ("lost", 1)],
)
def test_exit_codes(state: RunState, code: int) -> None:
    assert exit_code(state) == code
