"""Turning a wish to run something into a run's order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from binderclip.contract.ids import new_id
from binderclip.contract.run import AgentRef, ExecutionRequest, RunOrder, RuntimeSession
from binderclip.contract.session import ResumeDecision
from binderclip.contract.wire import iso_time
from binderclip.sdk.adapter import Adapter
from binderclip.sdk.config import read_config, shown_config

LOCAL_COMPANY = "local"
LOCAL_AGENT = "cli"


def local_task_key(cwd: str) -> str:
    """The task key of runs started by hand: one line of sessions per directory (S1)."""
    return f"cwd:{Path(cwd).resolve()}"


def local_order(
    adapter: Adapter,
    *,
    cwd: str,
    prompt: str | None,
    config: dict[str, Any],
    session: ResumeDecision,
    now: float,
    job_id: str | None = None,
) -> tuple[RunOrder, ExecutionRequest]:
    """What `binderclip run` asks for: the order that is kept, and the request with its secrets."""
    config = {**config, "cwd": str(Path(config.get("cwd") or cwd).resolve())}
    shown = shown_config(read_config(adapter.Config, config))
    run_id = new_id(now)
    agent = AgentRef(
        id=LOCAL_AGENT, company_id=LOCAL_COMPANY, name="cli", adapter_type=adapter.type
    )
    task_key = local_task_key(config["cwd"])
    runtime = RuntimeSession(
        session_id=session.display_id,
        session_params=session.params,
        session_display_id=session.display_id,
        task_key=task_key,
    )
    context: dict[str, Any] = {"wakeReason": "manual"}
    if prompt:
        context["promptText"] = prompt
    order = RunOrder(
        id=run_id,
        adapter_type=adapter.type,
        agent=agent,
        cwd=config["cwd"],
        created_at=iso_time(now),
        prompt=prompt,
        config=shown,
        context=context,
        task_key=task_key,
        wake_reasons=("manual",),
        adapter_path=adapter.origin if adapter.origin and "/" in adapter.origin else None,
        adapter_version=adapter.manifest.version,
        runtime_name=adapter.manifest.runtime or adapter.type,
        runtime=runtime,
        session_reason=session.reason,
        job_id=job_id,
        continues=session.continues,
    )
    request = ExecutionRequest(
        run_id=run_id, agent=agent, runtime=runtime, config=config, context=context
    )
    return order, request
