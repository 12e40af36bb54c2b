"""Claude Code and Codex when tools, the API or the connection fail, and when they are stopped."""

from __future__ import annotations

import os

import pytest

from binderclip.contract.entry import System, ToolResult
from binderclip.sdk.testing.scripted_model import Failure, Repeat, Shell, Turn, Usage
from tests.live.agent import Agent, alive
from tests.live.runtimes import CLAUDE, CODEX, GEMINI, OPENCODE

pytestmark = pytest.mark.live
MEGABYTE = Repeat("line {n} of a long answer\n", 40_000)
BOTH = pytest.mark.parametrize("agent", (CLAUDE, CODEX), ids=("claude", "codex"), indirect=True)


@BOTH
def test_a_failed_command_is_an_error_of_the_tool_and_not_of_the_run(agent: Agent) -> None:
    """T5: the exit code stands on the tool's result; the agent goes on."""
    turns = (Turn(calls=(Shell("echo broken >&2; exit 3"),)), Turn(text="It failed."))
    with agent.model(*turns) as model:
        ran = agent.run(model, "Try it.")
    assert (ran.code, ran.error, ran.result["summary"]) == (0, (None, None), "It failed."), ran
    (result,) = ran.of(ToolResult)
    assert (result.is_error, result.exit_code) == (True, 3)
    assert "broken" in result.content


@BOTH
@pytest.mark.parametrize(
    ("status", "code", "family"),
    [(429, "rate_limit", "transient_upstream"), (500, "upstream", "transient_upstream")],
)
def test_an_api_that_keeps_failing_ends_the_run_by_its_class(
    agent: Agent, status: int, code: str, family: str
) -> None:
    """A9: the runtime's own limit of retries ends it; its retries are shown and are no errors."""
    with agent.model(Turn(failure=Failure(status, "Not now"), times="forever")) as model:
        ran = agent.run(model, "Anything.")
        tries = sum(request.turn is not None for request in model.requests)
    assert (ran.code, ran.states[-1], ran.error) == (1, "failed", (code, family)), ran
    assert ran.result["errorMessage"]
    # Codex takes a 429 as final and repeats both the request and the stream of a 500.
    limits = {("claude", 429): 2, ("claude", 500): 2, ("codex", 429): 1, ("codex", 500): 4}
    assert tries == limits[agent.runtime.name, status]
    assert ran.of(System), "what the runtime says about it on the way is shown"
    assert alive(ran.run_id) == []


@pytest.mark.parametrize("agent", [CLAUDE], ids=["claude"], indirect=True)
def test_claude_repeats_a_dropped_answer_unstreamed(agent: Agent) -> None:
    """A dropped stream is no failure where the runtime itself gets the answer by another way."""
    turn = Turn(text="Half an answer is none.", piece_size=4, cut_after=2, times="forever")
    with agent.model(turn) as model:
        ran = agent.run(model, "Anything.")
    assert (ran.code, ran.error) == (0, (None, None)), ran
    assert ran.result["summary"] == "Half an answer is none."


@pytest.mark.parametrize("agent", [CODEX], ids=["codex"], indirect=True)
def test_codex_fails_by_the_upstream_when_the_connection_keeps_dropping(agent: Agent) -> None:
    """A9: a stream that breaks off each time is the upstream's failure."""
    turn = Turn(text="Half an answer is none.", piece_size=4, cut_after=2, times="forever")
    with agent.model(turn) as model:
        ran = agent.run(model, "Anything.")
    assert (ran.code, ran.error) == (1, ("upstream", "transient_upstream")), ran


@BOTH
def test_a_cancel_in_the_stream_ends_the_run(agent: Agent) -> None:
    """A11, D10: what was spent until then is unknown, not zero."""
    with agent.model(Turn(text="A slow answer", piece_size=2, hold_after=2)) as model:
        process = agent.start(model, "Take your time.")
        model.wait_for_turns(1)
        ran = agent.interrupt(process)
    assert (ran.code, ran.states[-1], ran.error) == (130, "cancelled", ("cancelled", None)), ran
    assert ran.usage is None
    assert alive(ran.run_id) == []


@BOTH
def test_a_run_over_its_time_is_stopped(agent: Agent) -> None:
    """A11: timeoutSec holds whatever the runtime is waiting for."""
    with agent.model(Turn(text="A slow answer", piece_size=2, hold_after=2)) as model:
        ran = agent.run(model, "--timeout", "4", "Take your time.")
        model.wait_for_turns(1)
    assert (ran.code, ran.states[-1], ran.error) == (124, "timed_out", ("timeout", None)), ran
    assert ran.result["timedOut"] is True
    assert alive(ran.run_id) == []


@pytest.mark.parametrize(
    "agent",
    (CLAUDE, CODEX, GEMINI, OPENCODE),
    ids=("claude", "codex", "gemini", "opencode"),
    indirect=True,
)
def test_a_megabyte_arrives_whole(agent: Agent) -> None:
    """D1: two of these lose the tail of such an answer on a pipe, and still exit 0."""
    usage = Usage(input=50, output=200_000)
    with agent.model(Turn(text=MEGABYTE, usage=usage, piece_size=8192)) as model:
        ran = agent.run(model, "Tell me all.")
    assert (ran.code, ran.error) == (0, (None, None)), ran.error
    whole = str(MEGABYTE)
    assert len(whole) > 1_000_000
    assert (ran.result["summary"] or "").strip() == whole.strip()
    assert ran.usage == agent.runtime.counts(usage)
    assert ran.coverage["unknown"] == 0


@pytest.mark.parametrize("agent", [CLAUDE], ids=["claude"], indirect=True)
def test_claude_without_permissions_is_refused_for_root_before_it_starts(agent: Agent) -> None:
    """A12, E3: the environment test knows what the runtime would refuse, and names the way out."""
    with agent.model(Turn(text="Hello.")) as model:
        ran = agent.run(model, "Hello?", env={"IS_SANDBOX": None})
    if os.geteuid() != 0:
        assert (ran.code, ran.result["summary"]) == (0, "Hello."), ran
        return
    assert (ran.code, ran.states[-1]) == (1, "failed"), ran
    assert ran.error == ("preflight_failed", None), ran
    assert "IS_SANDBOX=1" in ran.result["errorMessage"]
    assert not model.requests
