"""Checkpoints and events in the form that every runtime shares (N2, N3)."""

from __future__ import annotations

from typing import Any

from binderclip.contract.checkpoint import Checkpoint, Expert
from binderclip.contract.run import Usage
from binderclip.contract.wire import to_plain
from binderclip.jobs import (
    create_complete_run_event,
    create_normalized_checkpoint,
    create_runtime_init_event,
)

EXPERT = {"key": "test-expert", "name": "Test", "version": "1.0.0"}


def checkpoint(**changes: Any) -> Checkpoint:
    fields: dict[str, Any] = {
        "job_id": "job-123",
        "run_id": "run-456",
        "expert_key": "test-expert",
        "expert": EXPERT,
        "output": "Hello World",
        "runtime": "cursor",
    }
    return create_normalized_checkpoint(**{**fields, **changes})


def test_a_checkpoint_holds_the_output_as_one_message() -> None:
    """N2."""
    made = checkpoint()
    assert (made.job_id, made.run_id, made.status, made.step_number) == (
        "job-123",
        "run-456",
        "completed",
        1,
    )
    (message,) = made.messages
    assert message.type == "expertMessage"
    assert [(part.type, part.text) for part in message.contents] == [  # type: ignore[union-attr]
        ("textPart", "Hello World")
    ]
    assert made.metadata is not None
    assert made.metadata["runtime"] == "cursor"
    assert made.metadata["externalExecution"] is True
    assert made.expert == Expert(**EXPERT)


def test_usage_is_zero_where_unknown_and_says_so() -> None:
    """N2."""
    made = checkpoint()
    assert to_plain(made.usage) == {"inputTokens": 0, "outputTokens": 0, "totalTokens": 0}
    assert made.metadata is not None
    assert made.metadata["usageSource"] == "unknown"


def test_usage_is_the_runtime_s_own_where_it_tells_it() -> None:
    """N4."""
    used = Usage(input_tokens=10, cached_input_tokens=100, output_tokens=5, reasoning_tokens=2)
    made = checkpoint(usage=used)
    assert to_plain(made.usage) == {
        "inputTokens": 10,
        "outputTokens": 5,
        "totalTokens": 115,
        "cachedInputTokens": 100,
        "reasoningTokens": 2,
    }
    assert made.metadata is not None
    assert made.metadata["usageSource"] == "reported"


def test_the_first_event_names_the_runtime() -> None:
    """N3."""
    event = create_runtime_init_event("job-123", "run-456", "Test Expert", "cursor")
    plain = to_plain(event)
    assert event.type == "initializeRuntime"
    assert (plain.pop("id"), plain.pop("timestamp")) == (event.id, event.timestamp)
    assert plain == {
        "type": "initializeRuntime",
        "jobId": "job-123",
        "runId": "run-456",
        "runtimeVersion": "external:cursor",
        "expertName": "Test Expert",
        "experts": [],
        "model": "cursor:default",
        "temperature": 0,
        "maxRetries": 0,
        "timeout": 0,
    }


def test_the_last_event_carries_the_checkpoint() -> None:
    """N3."""
    last = checkpoint(output="Done")
    event = create_complete_run_event("job-123", "run-456", "test-expert", last, "Done")
    assert (event.type, event.text, event.checkpoint.id) == ("completeRun", "Done", last.id)
    plain = to_plain(event)
    assert plain["step"]["newMessages"] == []
    assert plain["stepNumber"] == plain["step"]["stepNumber"] == 1
    assert plain["usage"] == plain["step"]["usage"] == to_plain(last.usage)
