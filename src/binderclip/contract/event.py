"""Normalised events of a run, the same for every runtime (N3)."""

from __future__ import annotations

from typing import Any, TypeAlias

from binderclip.contract.checkpoint import Checkpoint, TokenUsage
from binderclip.contract.wire import Wire


class EventFields(Wire, frozen=True, kw_only=True, tag_field="type"):
    id: str
    timestamp: int
    job_id: str
    run_id: str


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


class Step(Wire, frozen=True, kw_only=True, omit_defaults=False):
    step_number: int
    usage: TokenUsage
    started_at: int
    new_messages: tuple[dict[str, Any], ...] = ()


class CompleteRun(EventFields, frozen=True, kw_only=True, tag="completeRun"):
    expert_key: str
    step_number: int
    checkpoint: Checkpoint
    step: Step
    text: str
    usage: TokenUsage


Event: TypeAlias = InitializeRuntime | CompleteRun
