"""Normalised checkpoints: the state of a job after a run, the same for every runtime (N2)."""

from __future__ import annotations

from typing import Any, Literal

from binderclip.contract.wire import Wire


class Expert(Wire, frozen=True, kw_only=True):
    key: str
    name: str
    version: str


class TextPart(Wire, frozen=True, kw_only=True, tag="textPart", tag_field="type"):
    id: str
    text: str


class ExpertMessage(Wire, frozen=True, kw_only=True, tag="expertMessage", tag_field="type"):
    contents: tuple[TextPart, ...]
    timestamp: int


class TokenUsage(Wire, frozen=True, kw_only=True):
    """Counts as Perstack writes them: 0 where unknown."""

    input_tokens: int
    output_tokens: int
    total_tokens: int
    cached_input_tokens: int | None = None
    reasoning_tokens: int | None = None


class Checkpoint(Wire, frozen=True, kw_only=True):
    id: str
    job_id: str
    run_id: str
    status: Literal[
        "init",
        "proceeding",
        "completed",
        "stoppedByInteractiveTool",
        "stoppedByDelegate",
        "stoppedByExceededMaxSteps",
        "stoppedByError",
    ]
    step_number: int
    messages: tuple[ExpertMessage, ...]
    expert: Expert
    usage: TokenUsage
    metadata: dict[str, Any] | None = None
