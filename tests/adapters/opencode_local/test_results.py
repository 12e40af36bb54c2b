"""What a run of OpenCode came to, where its exit code and its events do not say it plainly."""

from __future__ import annotations

import json
from typing import Any

import pytest

from binderclip.adapters.opencode_local import create_adapter
from binderclip.sdk import (
    AgentRef,
    Diff,
    ExecutionRequest,
    Outcome,
    ProcessEnd,
    RuntimeSession,
    System,
    ToolCall,
    ToolResult,
)
from binderclip.sdk.testing.fixtures import Case, cases_of
from binderclip.sdk.testing.replay import Replay, replay

ADAPTER = create_adapter()
CASES: dict[str, Case] = {case.name: case for case in cases_of(ADAPTER)}
SESSION = "ses_e1f608f97ffeTV5L5kCVJeGlT4"


def recorded(name: str) -> Replay:
    return CASES[name].replayed(ADAPTER)


def told(*events: dict[str, Any], stderr: str = "", exit_code: int = 0) -> Replay:
    lines = [json.dumps({"timestamp": 1000, "sessionID": SESSION, **event}) for event in events]
    stdout = "".join(f"{line}\n" for line in lines).encode()
    return replay(ADAPTER, stdout, stderr.encode(), exit_code=exit_code)


def finish(reason: str, **part: Any) -> dict[str, Any]:
    return {"type": "step_finish", "part": {"reason": reason, **part}}


def error(name: str, **data: Any) -> dict[str, Any]:
    return {"type": "error", "error": {"name": name, "data": data}}


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("bad_flag", "bad_config"),
        ("bad_settings", "bad_config"),
        ("denied_ends", "permission"),
        ("error_400_context", "context_overflow"),
        ("error_401", "auth"),
        ("error_404_model", "bad_config"),
        ("error_429", "rate_limit"),
        ("max_tokens", "cut_output"),
        ("no_auth", "auth"),
        ("refusal", "refusal"),
        ("resume_unknown", "unknown_session"),
        ("sigint_stream", "killed"),
        ("sigterm_stream", "killed"),
        ("stream_error", "upstream"),
        ("unknown_model", "bad_config"),
        ("unreachable", "killed"),
    ],
)
def test_every_failure_has_its_class(name: str, code: str) -> None:
    """A9: failures are told apart, by the runtime's words before its exit code."""
    result = recorded(name).result
    assert result.error_code == code
    assert result.error_message


@pytest.mark.parametrize("name", ["plain", "tools", "tool_error", "error_429_once", "big_output"])
def test_success_is_a_last_step_that_stopped(name: str) -> None:
    """D10: tool errors and one refused request are no failure of the run."""
    assert recorded(name).result.error_code is None


def test_output_that_ends_within_the_work_is_cut_although_the_exit_code_is_0() -> None:
    """Trap 1: a tail that was lost on its way out."""
    whole = CASES["tools"].stdout
    lines = whole.splitlines(keepends=True)
    cut = replay(ADAPTER, b"".join(lines[:-1]) + lines[-1][:40])
    assert cut.result.error_code == "cut_output"
    assert cut.coverage.unknown == 1


def test_an_answer_after_an_error_is_a_success_whatever_the_exit_code() -> None:
    """An overflow is told as an error, then OpenCode compacts the session and goes on."""
    seen = told(
        error("ContextOverflowError", message="prompt is too long"),
        {"type": "step_start", "part": {}},
        {"type": "text", "part": {"text": "Done."}},
        finish("stop"),
        exit_code=1,
    )
    assert seen.result.error_code is None
    assert seen.result.summary == "Done."
    assert [e.text for e in seen.entries if isinstance(e, System)] == ["prompt is too long"]


def test_steps_add_up_and_the_answer_includes_its_reasoning() -> None:
    """D10: disjoint buckets; OpenCode tells the answer without its reasoning."""
    tokens = {"input": 5, "output": 7, "reasoning": 3, "cache": {"read": 2, "write": 1}}
    seen = told(
        finish("tool-calls", tokens=tokens, cost=0.1), finish("stop", tokens=tokens, cost=0.2)
    )
    usage = seen.result.usage
    assert usage is not None
    assert (usage.input_tokens, usage.cached_input_tokens, usage.cache_write_tokens) == (10, 4, 2)
    assert (usage.output_tokens, usage.reasoning_tokens) == (20, 6)
    assert seen.result.cost_usd == 0.3


def test_a_cost_of_nothing_for_something_is_unknown() -> None:
    """D10: exact or unknown, not 0."""
    seen = told(finish("stop", tokens={"input": 5, "output": 7}, cost=0))
    assert seen.result.cost_usd is None


def test_a_resumed_run_counts_for_itself() -> None:
    """Trap 2: nothing is subtracted."""
    session = {"sessionId": SESSION, "totals": {"usage": {"inputTokens": 1200}}}
    usage = CASES["resume_2_second"].replayed(ADAPTER, session=session).result.usage
    assert usage is not None
    assert usage.input_tokens == 100


def test_the_model_is_the_one_that_was_asked_for() -> None:
    """OpenCode never names it; a run that got no answer has none."""
    assert recorded("plain").result.model is None
    for name, model in (("plain", "claude-sonnet-4-5"), ("error_401", None)):
        outcome = _outcome_with(name, {"model": "anthropic/claude-sonnet-4-5"})
        assert ADAPTER.conclude(outcome).model == model


def _outcome_with(name: str, config: dict[str, Any]) -> Outcome:
    agent = AgentRef(id="a", company_id="c", name="n", adapter_type="opencode_local")
    request = ExecutionRequest(run_id="r", agent=agent, runtime=RuntimeSession(), config=config)
    return Outcome(request=request, end=ProcessEnd(), parser=recorded(name).builder.parser)


def test_a_retry_makes_sense_when_the_vendor_says_so() -> None:
    """A5: from the header and the time of the event, never from a reader's clock."""
    assert recorded("error_429").result.retry_not_before == "2026-11-15T19:06:34.985Z"


def test_an_unknown_session_is_believed_only_before_the_first_event() -> None:
    """S4: never after the session has spoken."""
    words = "\x1b[91m\x1b[1mError: \x1b[0mSession not found\n"
    assert told(stderr=words, exit_code=1).result.clear_session
    assert not told(finish("stop"), stderr=words).result.clear_session


def test_a_denial_is_shown_and_fails_only_a_run_that_ended_by_it() -> None:
    seen = recorded("denied_goes_on")
    assert seen.result.error_code is None
    assert any(isinstance(e, System) and "external_directory" in e.text for e in seen.entries)


def test_a_command_that_failed_is_an_error_with_its_exit_code() -> None:
    """OpenCode calls it completed."""
    results = [e for e in recorded("tool_error").entries if isinstance(e, ToolResult)]
    assert [(r.exit_code, r.is_error) for r in results] == [(3, True), (None, True), (None, True)]
    calls = [e.name for e in recorded("tool_error").entries if isinstance(e, ToolCall)]
    assert calls == ["bash", "read", "no_such_tool"]


def test_plans_edits_and_sub_agents_are_told_in_common_terms() -> None:
    """T1b: kinds, items and diffs; what sub-agents used is not printed, and that is said."""
    seen = recorded("todo_task_edit")
    calls = {e.tool_kind: e for e in seen.entries if isinstance(e, ToolCall)}
    assert calls["todo"].input["items"][1] == {"text": "edit them", "status": "in_progress"}
    assert calls["agent"].title == "look"
    changes = [(e.change_type, e.text) for e in seen.entries if isinstance(e, Diff)]
    assert ("remove", "first line of notes") in changes
    assert ("add", "FIRST line of notes") in changes
    assert seen.result.result_json == {"usageLeavesOut": "sub-agents"}
    written = [e.text for e in recorded("tools").entries if isinstance(e, Diff)]
    assert written == ["/tmp/ws/out.txt", "written by the agent", "second line"]


def test_an_event_of_an_unknown_type_is_kept_and_counted() -> None:
    """T4: coverage."""
    seen = told({"type": "news", "part": {}}, finish("stop"))
    assert (seen.coverage.lines, seen.coverage.unknown) == (2, 1)
    assert seen.result.error_code is None
