"""What every runtime must do: answer, think, use tools, resume, forget, refuse, be cancelled."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from binderclip.contract.entry import Assistant, Diff, Thinking, ToolCall, ToolResult
from binderclip.contract.event import CompleteRun, ContinueToNextStep
from binderclip.jobs.history import RunHistory
from binderclip.sdk.testing.scripted_model import Edit, Failure, Read, Shell, Turn, Usage, Write
from binderclip.store.home import Home
from tests.live.agent import Agent, Ran, alive
from tests.live.runtimes import ALL

pytestmark = [
    pytest.mark.live,
    pytest.mark.parametrize("agent", ALL, ids=[one.name for one in ALL], indirect=True),
]
TELL_EACH_CALL = {"claude", "opencode", "pi", "qwen"}
"""Runtimes that tell what each call took in; Claude Code alone leaves out what it gave back."""
FIRST = Usage(input=1200, output=12, cache_read=800, cache_write=300)
SECOND = Usage(input=100, output=14, cache_read=1300)
WORK = (
    Turn(
        thinking="I will look at the directory first.",
        text="Let me look around.",
        calls=(Shell("echo hello from the shell"),),
        usage=Usage(input=1000, output=60, cache_write=1500, reasoning=20),
    ),
    Turn(
        calls=(Read("{cwd}/notes.txt"),),
        usage=Usage(input=200, output=40, cache_read=2400, cache_write=100),
    ),
    Turn(
        calls=(Write("{cwd}/out.txt", "written by the agent\n"),),
        usage=Usage(input=150, output=70, cache_read=2700, cache_write=50),
    ),
    Turn(
        calls=(Edit("{cwd}/notes.txt", "first line", "FIRST line"),),
        usage=Usage(input=150, output=70, cache_read=2700, cache_write=50),
    ),
    Turn(
        thinking="All is done.",
        text="Done: I wrote out.txt.",
        usage=Usage(input=100, output=25, cache_read=3000, reasoning=8),
    ),
)


def summed(turns: tuple[Turn, ...]) -> Usage:
    names = ("input", "output", "cache_read", "cache_write", "reasoning")
    return Usage(**{name: sum(getattr(turn.usage, name) for turn in turns) for name in names})


def ended_well(ran: Ran, text: str) -> None:
    assert (ran.code, ran.error, ran.result["summary"]) == (0, (None, None), text), ran
    assert ran.states == ["starting", "running", "finalizing", "succeeded"], ran
    assert ran.coverage["unknown"] == 0, ran
    # The recordings hold everything that the pinned version prints.
    assert "newEvents" not in (ran.result["resultJson"] or {}), ran
    assert ran.of(Assistant)[-1].text == text
    assert alive(ran.run_id) == []


def test_a_session_is_begun_resumed_and_replaced_once_it_is_lost(agent: Agent) -> None:
    """S1, S4, D10: usage is that of each run alone; an unknown session is tried afresh, once."""
    counts = agent.runtime.counts
    with agent.model(
        Turn(text="The answer is 42.", usage=FIRST), Turn(text="Still 42.", usage=SECOND)
    ) as model:
        first = agent.run(model, "What is the answer?")
        second = agent.run(model, "--continue", "Are you sure?")
        assert [request.turn for request in model.requests if request.turn is not None] == [0, 1]
    ended_well(first, "The answer is 42.")
    ended_well(second, "Still 42.")
    assert (first.usage, second.usage) == (counts(FIRST), counts(SECOND))
    assert first.result["sessionId"] and second.result["sessionId"] == first.result["sessionId"]
    agent.lose_home()
    with agent.model(Turn(text="Who are you?", usage=SECOND)) as model:
        third = agent.run(model, "--continue", "And now?")
        model.wait_for_turns(1)
    assert (third.code, third.error, third.result["summary"]) == (0, (None, None), "Who are you?")
    assert third.result["clearSession"] is True
    assert third.result["sessionId"] not in (None, first.result["sessionId"])
    assert third.usage == counts(SECOND)
    assert {entry.attempt for entry in third.entries} == {1, 2}
    assert alive(third.run_id) == []


def test_thinking_and_tools_become_entries(agent: Agent) -> None:
    """T1, T4: calls are paired with results, edits are diffs, counts are the sum of all turns."""
    notes = agent.work / "notes.txt"
    notes.write_text("first line\nsecond line\n")
    with agent.model(*WORK) as model:
        ran = agent.run(model, "Look around, then write out.txt.")
        model.wait_for_turns(len(WORK))
    ended_well(ran, "Done: I wrote out.txt.")
    assert ran.usage == agent.runtime.counts(summed(WORK))
    assert (agent.work / "out.txt").read_text() == "written by the agent\n"
    assert notes.read_text() == "FIRST line\nsecond line\n"
    thoughts = ["I will look at the directory first.", "All is done."]
    assert [entry.text for entry in ran.of(Thinking)] == (thoughts if agent.runtime.thinks else [])
    calls, results = ran.of(ToolCall), ran.of(ToolResult)
    assert [entry.tool_use_id for entry in results] == [entry.tool_use_id for entry in calls]
    assert [entry.tool_kind for entry in calls] == list(agent.runtime.tool_kinds)
    assert "hello from the shell" in results[0].content
    assert [entry.is_error for entry in results] == [False] * 4
    changed = {Path(entry.path).name for entry in ran.of(Diff) if entry.path}
    assert changed == {"out.txt", "notes.txt"}
    steps_are_told(agent, ran)


def steps_are_told(agent: Agent, ran: Ran) -> None:
    """N4, D10: each model call is a step, with its own usage where the runtime tells it."""
    history = RunHistory(Home(agent.folder / "data"), ran.run_id)
    events = list(history.events())
    steps = [event.step for event in events if isinstance(event, ContinueToNextStep | CompleteRun)]
    assert len(steps) == len(WORK)
    name, counts = agent.runtime.name, agent.runtime.counts
    expected = [counts(turn.usage) or {} for turn in WORK]
    if name in TELL_EACH_CALL:
        taken = [told.get("inputTokens") for told in expected]
        assert [step.usage.input_tokens for step in steps] == taken
    if name in TELL_EACH_CALL - {"claude"}:
        assert [step.usage.output_tokens for step in steps] == [t.usage.output for t in WORK]
        assert (history.checkpoints[-1].metadata or {})["usageBeyondSteps"] is None


def test_a_refused_key_is_an_auth_failure(agent: Agent) -> None:
    """A9: whatever the exit code says, the run failed, and for that reason."""
    with agent.model(Turn(failure=Failure(401, "This key is bad"), times="forever")) as model:
        ran = agent.run(model, "Anything.")
    assert (ran.code, ran.states[-1], ran.error) == (1, "failed", ("auth", "auth")), ran
    assert any(words in ran.result["errorMessage"] for words in ("This key is bad", "401"))
    assert (ran.result["summary"] or "") == ""
    assert set((ran.usage or {}).values()) <= {0, None}
    assert alive(ran.run_id) == []


def test_a_cancel_in_a_tool_leaves_no_process(agent: Agent) -> None:
    """A11: Ctrl-C ends the whole tree, the tool's command included."""
    for name in ("begun", "held"):
        os.mkfifo(agent.work / name)
    turn = Turn(calls=(Shell("echo it runs > {cwd}/begun; cat {cwd}/held"),))
    with agent.model(turn, Turn(text="It was not held.")) as model:
        process = agent.start(model, "Hold on.")
        # Opening blocks until the tool's command opens the other end.
        assert (agent.work / "begun").read_text() == "it runs\n"
        ran = agent.interrupt(process)
    assert (ran.code, ran.states[-1], ran.error) == (130, "cancelled", ("cancelled", None)), ran
    assert alive(ran.run_id) == []
