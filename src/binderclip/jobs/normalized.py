"""Checkpoints and events in the form that every runtime shares (N2, N3)."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import msgspec

from binderclip.contract.checkpoint import (
    Checkpoint,
    CheckpointStatus,
    Expert,
    ExpertMessage,
    TextPart,
    TokenUsage,
)
from binderclip.contract.event import CompleteRun, InitializeRuntime, Step
from binderclip.contract.ids import new_id
from binderclip.contract.run import Usage
from binderclip.sdk.usage import total_tokens

NO_USAGE = TokenUsage(input_tokens=0, output_tokens=0, total_tokens=0)


def create_normalized_checkpoint(
    *,
    job_id: str,
    run_id: str,
    expert_key: str,
    expert: Expert | Mapping[str, str],
    output: str,
    runtime: str,
    id: str | None = None,
    status: CheckpointStatus = "completed",
    step_number: int = 1,
    usage: Usage | None = None,
    timestamp: int | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> Checkpoint:
    """The state of a job after an attempt: what the agent said last, and what it used."""
    id = id or new_id()
    part = TextPart(id=f"{id}.text", text=output)
    at = now_ms() if timestamp is None else timestamp
    known = expert if isinstance(expert, Expert) else _expert(expert_key, expert)
    return Checkpoint(
        id=id,
        job_id=job_id,
        run_id=run_id,
        status=status,
        step_number=step_number,
        messages=(ExpertMessage(contents=(part,), timestamp=at),),
        expert=known,
        usage=token_usage(usage),
        metadata={
            "runtime": runtime,
            "externalExecution": True,
            "usageSource": usage.source if usage else "unknown",
            **(metadata or {}),
        },
    )


def create_runtime_init_event(
    job_id: str,
    run_id: str,
    expert_name: str,
    runtime: str,
    *,
    model: str | None = None,
    id: str | None = None,
    timestamp: int | None = None,
) -> InitializeRuntime:
    """An attempt of an external runtime is about to begin."""
    return InitializeRuntime(
        id=id or new_id(),
        timestamp=now_ms() if timestamp is None else timestamp,
        job_id=job_id,
        run_id=run_id,
        runtime_version=f"external:{runtime}",
        expert_name=expert_name,
        model=f"{runtime}:{model or 'default'}",
    )


def create_complete_run_event(
    job_id: str,
    run_id: str,
    expert_key: str,
    checkpoint: Checkpoint,
    output: str,
    *,
    id: str | None = None,
    timestamp: int | None = None,
    step: Step | None = None,
) -> CompleteRun:
    """The run ended well."""
    at = now_ms() if timestamp is None else timestamp
    number = checkpoint.step_number
    return CompleteRun(
        id=id or new_id(),
        timestamp=at,
        job_id=job_id,
        run_id=run_id,
        expert_key=expert_key,
        step_number=number,
        checkpoint=checkpoint,
        step=step or Step(step_number=number, usage=checkpoint.usage, started_at=at),
        text=output,
        usage=checkpoint.usage,
    )


def token_usage(usage: Usage | None) -> TokenUsage:
    """Buckets as Perstack counts them: 0 where unknown; the total takes in the cached ones."""
    if usage is None:
        return NO_USAGE
    return TokenUsage(
        input_tokens=usage.input_tokens or 0,
        output_tokens=usage.output_tokens or 0,
        total_tokens=total_tokens(usage),
        cached_input_tokens=usage.cached_input_tokens,
        reasoning_tokens=usage.reasoning_tokens,
    )


def add_usage(left: TokenUsage, right: TokenUsage) -> TokenUsage:
    """The sum; what neither side told stays untold."""
    return TokenUsage(
        input_tokens=left.input_tokens + right.input_tokens,
        output_tokens=left.output_tokens + right.output_tokens,
        total_tokens=left.total_tokens + right.total_tokens,
        cached_input_tokens=_sum(left.cached_input_tokens, right.cached_input_tokens),
        reasoning_tokens=_sum(left.reasoning_tokens, right.reasoning_tokens),
    )


def now_ms() -> int:
    return int(time.time() * 1000)


def _sum(left: int | None, right: int | None) -> int | None:
    return None if left is None and right is None else (left or 0) + (right or 0)


def _expert(key: str, told: Mapping[str, str]) -> Expert:
    return msgspec.convert({"key": key, "name": key, "version": "", **told}, Expert)
