"""Normalised checkpoints: the state of a job after a run, the same for every runtime (N2)."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from binderclip.contract.wire import Tagged, Wire


class Expert(Wire, frozen=True, kw_only=True):
    key: str
    name: str
    version: str


class TextPart(Tagged, frozen=True, kw_only=True, tag="textPart"):
    id: str
    text: str


class ToolCallPart(Tagged, frozen=True, kw_only=True, tag="toolCallPart"):
    id: str
    tool_call_id: str
    tool_name: str
    args: Any = None


class ToolResultPart(Tagged, frozen=True, kw_only=True, tag="toolResultPart"):
    id: str
    tool_call_id: str
    tool_name: str
    contents: tuple[TextPart, ...] = ()
    is_error: bool = False


MessagePart: TypeAlias = TextPart | ToolCallPart | ToolResultPart


class ExpertMessage(Tagged, frozen=True, kw_only=True, tag="expertMessage"):
    """What the agent said."""

    contents: tuple[MessagePart, ...]
    timestamp: int = 0


class UserMessage(Tagged, frozen=True, kw_only=True, tag="userMessage"):
    """What the agent was asked."""

    contents: tuple[MessagePart, ...]
    timestamp: int = 0


class ToolMessage(Tagged, frozen=True, kw_only=True, tag="toolMessage"):
    """What tools gave back to the agent."""

    contents: tuple[MessagePart, ...]
    timestamp: int = 0


class InstructionMessage(Tagged, frozen=True, kw_only=True, tag="instructionMessage"):
    """What the agent was told about itself."""

    contents: tuple[MessagePart, ...]
    timestamp: int = 0


Message: TypeAlias = ExpertMessage | UserMessage | ToolMessage | InstructionMessage
CheckpointStatus = Literal[
    "init",
    "proceeding",
    "completed",
    "stoppedByInteractiveTool",
    "stoppedByDelegate",
    "stoppedByExceededMaxSteps",
    "stoppedByError",
]


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
    status: CheckpointStatus
    step_number: int
    messages: tuple[Message, ...]
    expert: Expert
    usage: TokenUsage
    metadata: dict[str, Any] | None = None
