"""What each step used and which requests were made again, as the runtimes told it (N3, N4, D10)."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import pytest

from binderclip.contract.event import ContinueToNextStep, Event, Retry, Step
from binderclip.contract.run import Usage
from binderclip.jobs.events import Identity, Steps
from binderclip.jobs.external import parse_external_output
from binderclip.jobs.history import RunHistory
from binderclip.jobs.normalized import NO_USAGE, add_usage, token_usage
from binderclip.jobs.source import whole_entries
from binderclip.jobs.spending import beyond, filled
from binderclip.jobs.store import JobStore
from binderclip.plugins.registry import list_adapters, load_adapter
from binderclip.sdk.testing.fixtures import Case, cases_of
from binderclip.store.home import Home
from tests.jobs.recorded import recorded_run

RECORDINGS = [
    (view.type, case.name) for view in list_adapters() for case in cases_of(load_adapter(view.type))
]
TOOLS = [(1000, 60), (200, 40), (150, 70), (90, 25)]
"""Fresh input and output of each call of the scripted run that most runtimes were recorded with."""


@dataclass
class Told:
    """A recording as history."""

    history: RunHistory
    events: list[Event]

    @property
    def steps(self) -> list[Step]:
        return [event.step for event in self.events if hasattr(event, "step")]

    @property
    def retries(self) -> list[Retry]:
        return [event for event in self.events if isinstance(event, Retry)]

    @property
    def beyond(self) -> dict[str, int]:
        metadata = self.history.checkpoints[-1].metadata or {}
        found = metadata["usageBeyondSteps"] or {}
        return {name: count for name, count in found.items() if name != "source" and count}


def case_of(adapter_type: str, name: str) -> Case:
    (case,) = [case for case in cases_of(load_adapter(adapter_type)) if case.name == name]
    return case


def told(home: Home, adapter_type: str, name: str) -> Told:
    order = recorded_run(home, load_adapter(adapter_type), case_of(adapter_type, name))
    history = RunHistory(home, order.id)
    return Told(history, list(history.events()))


@pytest.mark.parametrize(("adapter_type", "name"), RECORDINGS)
def test_steps_and_what_is_beyond_them_are_the_usage_of_the_run(
    home: Home, adapter_type: str, name: str
) -> None:
    """D10: nothing is lost between steps and total, and nothing is invented."""
    seen = told(home, adapter_type, name)
    checkpoint = seen.history.checkpoints[-1]
    whole = seen.history.result.usage
    if whole is None:
        assert checkpoint.usage == NO_USAGE
        assert seen.beyond == {}
        return
    total = NO_USAGE
    for step in seen.steps:
        total = add_usage(total, step.usage)
    rest = (checkpoint.metadata or {})["usageBeyondSteps"]
    both = add_usage(total, token_usage(msgspec.convert(rest, Usage) if rest else None))
    assert both.input_tokens == checkpoint.usage.input_tokens
    assert both.output_tokens == checkpoint.usage.output_tokens
    assert both.total_tokens == checkpoint.usage.total_tokens
    assert (both.cached_input_tokens or 0) == (checkpoint.usage.cached_input_tokens or 0)


@pytest.mark.parametrize(
    ("adapter_type", "name"),
    [("opencode_local", "tools"), ("pi_local", "tools"), ("claude_local", "partial_messages")],
)
def test_a_runtime_that_tells_each_call_has_it_at_each_step(
    home: Home, adapter_type: str, name: str
) -> None:
    """N4, D10: the same calls are the same steps, whoever made them; they add up to the run."""
    seen = told(home, adapter_type, name)
    used = [(step.usage.input_tokens, step.usage.output_tokens) for step in seen.steps]
    assert used == TOOLS
    assert seen.beyond == {}
    told_before = [event for event in seen.events if isinstance(event, ContinueToNextStep)]
    assert [event.step.usage.cached_input_tokens for event in told_before] == [0, 2400, 2700]


def test_what_a_call_took_in_is_told_where_its_answer_is_not_counted(home: Home) -> None:
    """D10: Claude Code's messages begin with a placeholder for their output, which is no count."""
    seen = told(home, "claude_local", "tools")
    used = [(step.usage.input_tokens, step.usage.output_tokens) for step in seen.steps]
    assert used == [(taken, 0) for taken, _ in TOOLS]
    assert seen.beyond == {"outputTokens": 195}


def test_a_request_beside_the_steps_is_shown_and_not_spread(home: Home) -> None:
    """D10: Qwen Code asks its model for more than the answer, and counts that in the total only."""
    seen = told(home, "qwen_local", "plain")
    (step,) = seen.steps
    assert (step.usage.input_tokens, step.usage.output_tokens) == (1500, 12)
    assert seen.beyond == {"inputTokens": 1500, "cachedInputTokens": 800, "outputTokens": 12}


def test_a_total_is_no_steps_usage_unless_there_is_only_one(home: Home) -> None:
    """D10: Codex tells one sum for all calls; a single call is that sum."""
    many, one = told(home, "codex_local", "tools"), told(home, "codex_local", "plain")
    assert [step.usage for step in many.steps] == [NO_USAGE] * 4
    assert many.beyond["inputTokens"] == 3090
    assert [step.usage for step in one.steps] == [one.history.checkpoints[-1].usage]
    assert one.beyond == {}


def test_usage_of_an_only_step_is_filled_from_the_total_by_bucket() -> None:
    told_part = Usage(input_tokens=5, output_tokens=None)
    whole = Usage(input_tokens=9, output_tokens=3)
    assert filled(told_part, whole) == Usage(input_tokens=5, output_tokens=3)
    assert (filled(None, whole), filled(told_part, None)) == (whole, told_part)


def test_a_difference_may_be_negative_and_is_unknown_with_the_total() -> None:
    less = beyond(Usage(input_tokens=4), Usage(input_tokens=9, output_tokens=2))
    assert less == Usage(input_tokens=-5, source="derived")
    assert beyond(None, Usage(input_tokens=9)) is None
    assert beyond(Usage(input_tokens=9), Usage(input_tokens=9)) is None


def test_saved_output_has_the_steps_and_the_usage_of_the_run(home: Home) -> None:
    """N1: no second parser: what is told of a run is told of its output by itself."""
    seen = told(home, "opencode_local", "tools")
    parsed = parse_external_output(case_of("opencode_local", "tools").stdout, "opencode")
    kinds = [(event.type, getattr(event, "step", None)) for event in parsed.events]
    of_run = [event for event in seen.events if event.type not in ("initializeRuntime", "startRun")]
    timeless = [(kind, step and step.usage) for kind, step in kinds]
    assert timeless == [
        (event.type, step.usage if (step := getattr(event, "step", None)) else None)
        for event in of_run[:-1]
    ]


def test_usage_behind_a_growing_text_stays_behind_it() -> None:
    """D2: a text that is held until it is whole holds what comes after it, in order."""
    case = case_of("claude_local", "partial_messages")
    records = case.replayed(load_adapter("claude_local")).records
    order = [type(one).__name__ for one in whole_entries(records)]
    assert order[: order.index("ToolResult")].count("SpentRecord") == 2
    who = Identity("j", "r", "e", "claude-code")
    steps = Steps(who, 0)
    assert list(steps.events(whole_entries(records)))
    assert steps.before == Usage(
        input_tokens=1350,
        cached_input_tokens=5100,
        cache_write_tokens=1650,
        output_tokens=170,
        reasoning_tokens=steps.before.reasoning_tokens if steps.before else None,
    )


def test_a_rebuilt_job_has_the_same_steps(home: Home) -> None:
    """N4: the transcript is a cache: without it, the same bytes are written again."""
    from binderclip.runs.retell import retell

    order = recorded_run(home, load_adapter("pi_local"), case_of("pi_local", "tools"))
    store = JobStore(home, lambda run_id: retell(home, run_id, load_adapter))
    store.record(order.id)
    before = list(store.events(order.id))
    (home.attempt_dir(order.id, 1) / "transcript.jsonl").unlink()
    store.rebuild(lambda run_id, problem: pytest.fail(f"{run_id}: {problem}"))
    assert list(store.events(order.id)) == before
    assert any(b'"inputTokens":150' in event for event in before)


@pytest.mark.parametrize(
    ("adapter_type", "name", "expected"),
    [
        ("claude_local", "error_429_once", [("rate_limit", 429, 1, 1, 1000)]),
        ("claude_local", "error_500", [("upstream", 500, 1, 1, 604)]),
        ("claude_local", "unreachable", [("upstream", None, 1, 1, 503)]),
        ("codex_local", "error_429_once", [("rate_limit", 429, 1, 1, None)]),
        ("codex_local", "unreachable", [("upstream", None, None, None, None)] * 5),
        ("gemini_local", "error_429_once", [("rate_limit", 429, 1, None, None)]),
        ("gemini_local", "unreachable", [("upstream", None, 1, None, None)]),
        (
            "pi_local",
            "error_429",
            [("rate_limit", 429, n, 3, 1000 * 2**n) for n in (1, 2, 3)],
        ),
        ("copilot_local", "error_401", [("auth", 401, n, None, None) for n in (1, 2)]),
        (
            "copilot_local",
            "error_400_context",
            [("context_overflow", 400, 1, None, None)],
        ),
        ("qwen_local", "error_429", [("rate_limit", 429, 1, 10, 60_000)]),
        ("qwen_local", "stream_cut", [("upstream", None, None, None, None)] * 3),
        ("qwen_local", "stream_error", [("upstream", None, n, 10, 60_000 * n) for n in (1, 2)]),
        ("opencode_local", "error_429_once", []),
    ],
)
def test_a_request_that_the_runtime_makes_again_is_an_event(
    home: Home, adapter_type: str, name: str, expected: list[tuple[object, ...]]
) -> None:
    """N3: a retry has a name, a status and says that it may help, where the runtime tells."""
    retries = told(home, adapter_type, name).retries
    seen = []
    for retry in retries:
        assert retry.error is not None and retry.error.is_retryable
        assert retry.error.message and retry.error.message in retry.reason + "The answer broke off."
        status = retry.error.status_code
        numbers = (retry.attempt, retry.max_attempts, retry.delay_ms)
        seen.append((retry.error.name, status, *numbers))
    assert seen == expected
