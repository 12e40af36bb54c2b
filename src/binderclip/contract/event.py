"""Normalised events of a run, the same for every runtime (N3)."""

from __future__ import annotations

from typing import Any, TypeAlias

from binderclip.contract.checkpoint import Checkpoint, Message, TextPart, TokenUsage
from binderclip.contract.wire import Tagged, Wire


class EventFields(Tagged, frozen=True, kw_only=True):
    """What every event has."""

    id: str
    timestamp: int
    job_id: str
    run_id: str


class StepFields(EventFields, frozen=True, kw_only=True):
    """What every event has that belongs to a step of the agent."""

    expert_key: str
    step_number: int


class InitializeRuntime(
    EventFields, frozen=True, kw_only=True, tag="initializeRuntime", omit_defaults=False
):
    runtime_version: str
    expert_name: str
    model: str
    experts: tuple[str, ...] = ()
    temperature: float = 0
    max_retries: int = 0
    timeout: int = 0


class StartRun(StepFields, frozen=True, kw_only=True, tag="startRun"):
    """An attempt begins; `resumed_from` names the run whose session it continues."""

    input_messages: tuple[Message, ...] = ()
    session_id: str | None = None
    resumed_from: str | None = None


class ToolUse(Wire, frozen=True, kw_only=True):
    """A tool that the agent wants to use."""

    id: str
    skill_name: str
    tool_name: str
    args: Any = None


class ToolOutcome(Wire, frozen=True, kw_only=True):
    """What a tool gave back; a long text is cut to what streams show."""

    id: str
    skill_name: str
    tool_name: str
    result: tuple[TextPart, ...] = ()
    is_error: bool = False
    exit_code: int | None = None
    duration_ms: int | None = None


class CallTools(StepFields, frozen=True, kw_only=True, tag="callTools"):
    """The agent uses tools; `new_message` is what it said before."""

    tool_calls: tuple[ToolUse, ...]
    new_message: Message | None = None
    parent_tool_call_id: str | None = None
    usage: TokenUsage | None = None


class ResolveToolResults(StepFields, frozen=True, kw_only=True, tag="resolveToolResults"):
    tool_results: tuple[ToolOutcome, ...]
    parent_tool_call_id: str | None = None


class Step(Wire, frozen=True, kw_only=True, omit_defaults=False):
    step_number: int
    usage: TokenUsage
    started_at: int
    new_messages: tuple[Message, ...] = ()


class ContinueToNextStep(StepFields, frozen=True, kw_only=True, tag="continueToNextStep"):
    """The agent has seen its tools' results and goes on."""

    step: Step


class EventError(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """Why a run failed: the stable code, the words, the vendor's HTTP status where it was told."""

    name: str
    message: str
    status_code: int | None = None
    is_retryable: bool = False


class Retry(StepFields, frozen=True, kw_only=True, tag="retry"):
    """The runtime makes a failed request again, or a run begins again with a fresh session."""

    reason: str
    usage: TokenUsage
    new_messages: tuple[Message, ...] = ()
    error: EventError | None = None
    attempt: int | None = None
    max_attempts: int | None = None
    delay_ms: int | None = None


class CompleteRun(StepFields, frozen=True, kw_only=True, tag="completeRun"):
    checkpoint: Checkpoint
    step: Step
    text: str
    usage: TokenUsage


class StopRunByError(StepFields, frozen=True, kw_only=True, tag="stopRunByError"):
    """A failure, a limit, a cancellation or a loss: the error's name says which."""

    checkpoint: Checkpoint
    step: Step
    error: EventError


class StopRunByExceededMaxSteps(
    StepFields, frozen=True, kw_only=True, tag="stopRunByExceededMaxSteps"
):
    checkpoint: Checkpoint
    step: Step
    error: EventError | None = None


class StopRunByInteractiveTool(
    StepFields, frozen=True, kw_only=True, tag="stopRunByInteractiveTool"
):
    checkpoint: Checkpoint
    step: Step


class StopRunByDelegate(StepFields, frozen=True, kw_only=True, tag="stopRunByDelegate"):
    checkpoint: Checkpoint
    step: Step


Event: TypeAlias = (
    InitializeRuntime
    | StartRun
    | CallTools
    | ResolveToolResults
    | Retry
    | ContinueToNextStep
    | CompleteRun
    | StopRunByError
    | StopRunByExceededMaxSteps
    | StopRunByInteractiveTool
    | StopRunByDelegate
)
Ending: TypeAlias = CompleteRun | StopRunByError | StopRunByExceededMaxSteps
