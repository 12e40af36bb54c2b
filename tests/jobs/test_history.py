"""A finished run as events and checkpoints: the same every time, and true to the run (N3, N4)."""

from __future__ import annotations

import msgspec
import pytest

from binderclip.contract.checkpoint import TextPart
from binderclip.contract.errors import RunError
from binderclip.contract.event import (
    CallTools,
    CompleteRun,
    ContinueToNextStep,
    InitializeRuntime,
    Retry,
    StartRun,
    StopRunByError,
    StopRunByExceededMaxSteps,
)
from binderclip.contract.run import ExecutionResult
from binderclip.jobs.history import RunHistory, event_error
from binderclip.jobs.normalized import token_usage
from binderclip.plugins.registry import list_adapters, load_adapter
from binderclip.sdk.testing.fixtures import cases_of
from binderclip.store.home import Home
from binderclip.store.runfile import RunOutcome, read_outcome, write_order, write_outcome
from tests.jobs.recorded import attempt_files, finish, order_for, recorded_run, spoken_run

RECORDINGS = [
    (view.type, case.name) for view in list_adapters() for case in cases_of(load_adapter(view.type))
]


@pytest.mark.parametrize(("adapter_type", "name"), RECORDINGS)
def test_a_recording_is_told_twice_alike_and_as_it_was(
    home: Home, adapter_type: str, name: str
) -> None:
    """N4, D2: output, usage and error are those of the run, whatever runtime it was."""
    adapter = load_adapter(adapter_type)
    (case,) = [case for case in cases_of(adapter) if case.name == name]
    order = recorded_run(home, adapter, case)
    first, second = RunHistory(home, order.id), RunHistory(home, order.id)
    events = list(first.events())
    assert events == list(second.events())
    assert first.checkpoints == second.checkpoints
    assert first.summary() == second.summary()
    outcome = read_outcome(home, order.id)
    assert outcome is not None and outcome.result is not None
    result, last, checkpoint = outcome.result, events[-1], first.checkpoints[-1]
    (part,) = checkpoint.messages[0].contents
    assert isinstance(part, TextPart)
    assert part.text == (result.summary or "")
    assert checkpoint.usage == token_usage(result.usage)
    assert isinstance(events[0], InitializeRuntime)
    assert events[0].runtime_version == f"external:{adapter.manifest.runtime or adapter.type}"
    assert isinstance(last, CompleteRun | StopRunByError | StopRunByExceededMaxSteps)
    assert last.checkpoint == checkpoint
    if isinstance(last, CompleteRun):
        assert (result.error_code, last.text) == (None, result.summary or "")
    else:
        assert last.error is not None
        assert (last.error.name, last.error.message) == (result.error_code, result.error_message)
    ids = [event.id for event in events]
    assert len(ids) == len(set(ids))


def call(id: str, **more: object) -> dict[str, object]:
    return {"kind": "tool_call", "name": "Bash", "input": {"x": 1}, "toolUseId": id, **more}


def result(id: str, **more: object) -> dict[str, object]:
    return {"kind": "tool_result", "toolUseId": id, "content": "out", "isError": False, **more}


def test_steps_begin_when_the_agent_goes_on_after_a_result(home: Home) -> None:
    """Parallel tools are one step; what a sub-agent does belongs to its caller's step."""
    order = spoken_run(
        home,
        {"kind": "assistant", "text": "first"},
        call("a"),
        call("b"),
        result("a"),
        result("b"),
        {"kind": "assistant", "text": "second"},
        call("c"),
        {**call("d"), "parentToolUseId": "c"},
        {**result("d"), "parentToolUseId": "c"},
        {"kind": "assistant", "text": "within", "parentToolUseId": "c"},
        result("c"),
        {"kind": "thinking", "text": "hm"},
        {"kind": "assistant", "text": "third"},
    )
    history = RunHistory(home, order.id)
    events = list(history.events())
    calls = [event for event in events if isinstance(event, CallTools)]
    assert [(event.tool_calls[0].id, event.step_number) for event in calls] == [
        ("a", 1),
        ("b", 1),
        ("c", 2),
        ("d", 2),
    ]
    said = calls[0].new_message
    assert said is not None and [part.text for part in said.contents] == ["first"]  # type: ignore[union-attr]
    assert [
        event.step.step_number for event in events if isinstance(event, ContinueToNextStep)
    ] == [
        1,
        2,
    ]
    last = events[-1]
    assert isinstance(last, StopRunByError)
    assert [part.text for part in last.step.new_messages[0].contents] == ["third"]  # type: ignore[union-attr]
    assert history.summary().steps == last.step_number == 3


def test_growing_text_is_told_whole(home: Home) -> None:
    """D2: appended text belongs to its entry, also when another lane speaks in between."""
    order = spoken_run(
        home,
        {"kind": "assistant", "text": "Hel", "delta": True},
        {"kind": "stderr", "text": "noise", "stream": "stderr"},
    )
    path = home.attempt_dir(order.id, 1) / "transcript.jsonl"
    with path.open("ab") as file:
        file.write(b'{"type":"append","id":"1o0.0","text":"lo "}\n')
        file.write(b'{"type":"append","id":"1o0.0","text":"World"}\n')
    last = list(RunHistory(home, order.id).events())[-1]
    assert isinstance(last, StopRunByError)
    (part,) = last.step.new_messages[0].contents
    assert isinstance(part, TextPart)
    assert part.text == "Hello World"


def test_an_agent_that_only_spoke_is_told_from_the_end_as_from_the_beginning(home: Home) -> None:
    """N4: reading less of a long transcript changes nothing in what is told."""
    order = order_for(load_adapter("process"))
    write_order(home, order)
    printed = b"".join(b"line %d\n" % n for n in range(20_000))
    attempt_files(home, order, printed, b"warning\n" * 50)
    finish(home, order)
    from_the_end = list(RunHistory(home, order.id).events())
    path = home.attempt_dir(order.id, 1) / "transcript.jsonl"
    text = path.read_text()
    assert '"onlyTexts":true' in text.partition("\n")[0]
    path.write_text(text.replace(',"onlyTexts":true', "", 1))
    assert list(RunHistory(home, order.id).events()) == from_the_end
    assert "line 19999" in str(from_the_end[-1])


def test_a_second_attempt_is_a_retry_with_a_checkpoint_of_its_own(home: Home) -> None:
    """S4, N2: one checkpoint per attempt; only the last one can be resumed."""
    adapter = load_adapter("claude_local")
    cases = {case.name: case for case in cases_of(adapter)}
    order = order_for(adapter)
    write_order(home, order)
    unknown = cases["resume_unknown"]
    attempt_files(home, order, unknown.stdout, unknown.stderr, 1, exitCode=1)
    attempt_files(home, order, cases["plain"].stdout, b"", 2)
    finish(home, order)
    history = RunHistory(home, order.id)
    events = list(history.events())
    kinds = [event.type for event in events]
    assert kinds.count("initializeRuntime") == kinds.count("startRun") == 2
    (retry,) = [event for event in events if isinstance(event, Retry)]
    assert "session" in retry.reason
    first, second = history.checkpoints
    assert (first.id, second.id) == (f"{order.id}-1", f"{order.id}-2")
    assert first.metadata is not None and first.metadata["session"] is None
    assert second.metadata is not None and second.metadata["session"]["params"]["sessionId"]


def test_a_run_that_never_started_still_has_an_end(home: Home) -> None:
    order = order_for(load_adapter("process"))
    write_order(home, order)
    failed = ExecutionResult(
        exit_code=None,
        signal=None,
        timed_out=False,
        error_code="preflight_failed",
        error_message="no such command",
    )
    outcome = RunOutcome(state="failed", ended_at=order.created_at, result=failed)
    write_outcome(home, order.id, outcome)
    history = RunHistory(home, order.id)
    start, end = history.events()
    assert isinstance(start, StartRun)
    assert isinstance(end, StopRunByError)
    assert end.error.name == "preflight_failed"
    assert [checkpoint.id for checkpoint in history.checkpoints] == [f"{order.id}-0"]


def test_a_run_that_goes_on_has_no_history_yet(home: Home) -> None:
    order = order_for(load_adapter("process"))
    write_order(home, order)
    with pytest.raises(RunError, match="not over"):
        RunHistory(home, order.id)


@pytest.mark.parametrize(
    ("changes", "status", "retryable"),
    [
        ({"error_code": "rate_limit", "error_family": "transient_upstream"}, None, True),
        (
            {"error_code": "auth", "error_family": "auth", "error_message": "401 invalid"},
            401,
            False,
        ),
        ({"error_code": "upstream", "result_json": {"apiErrorStatus": 529}}, 529, True),
        ({"error_code": "process_failed", "error_message": "exited with code 404"}, None, False),
        ({"error_code": "cancelled", "error_message": "Cancelled by ada."}, None, False),
    ],
)
def test_an_error_has_a_name_a_status_and_says_whether_to_try_again(
    changes: dict[str, object], status: int | None, retryable: bool
) -> None:
    plain = ExecutionResult(exit_code=1, signal=None, timed_out=False)
    error = event_error(msgspec.structs.replace(plain, **changes))
    assert (error.name, error.status_code, error.is_retryable) == (
        changes["error_code"],
        status,
        retryable,
    )


def test_a_turn_limit_is_a_stop_of_its_own(home: Home) -> None:
    adapter = load_adapter("claude_local")
    (case,) = [case for case in cases_of(adapter) if case.name == "max_turns"]
    order = recorded_run(home, adapter, case)
    history = RunHistory(home, order.id)
    assert isinstance(list(history.events())[-1], StopRunByExceededMaxSteps)
    assert history.checkpoints[-1].status == "stoppedByExceededMaxSteps"
