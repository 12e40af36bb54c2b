"""What a run goes on from: the last session of a directory, a job, or a checkpoint (S1, S3)."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import msgspec

from binderclip.cli.recording import job_store, left_out
from binderclip.cli.sessions import last_session
from binderclip.contract.checkpoint import Checkpoint
from binderclip.contract.errors import BinderclipError, ConfigError
from binderclip.contract.ids import short
from binderclip.contract.session import ResumeDecision, StoredSession
from binderclip.contract.wire import iso_time
from binderclip.jobs.grouping import job_of
from binderclip.jobs.store import JobStore
from binderclip.runs.wake import LOCAL_AGENT
from binderclip.sdk.adapter import Adapter
from binderclip.sdk.resume import decide
from binderclip.store.home import Home
from binderclip.store.runfile import read_order


@dataclass(frozen=True)
class Origin:
    """A checkpoint to go on from, and how its run was made."""

    checkpoint: Checkpoint
    adapter: str
    cwd: str
    gone_on: bool
    """Later runs used the same session, so that it is not any more what it was."""


def origin_of(home: Home, job: str | None, checkpoint: str | None) -> Origin:
    """Where `--continue-job` or `--resume-from` points to."""
    store = job_store(home)
    store.catch_up(left_out)
    found = store.find_checkpoint(checkpoint) if checkpoint else _last(store, store.find(job or ""))
    order = read_order(home, found.run_id)
    adapter = order.adapter_path or order.adapter_type
    return Origin(found, adapter, order.cwd, _gone_on(store, found))


def from_origin(origin: Origin, adapter: Adapter, cwd: str) -> ResumeDecision:
    """Resume the checkpoint's session, or start fresh in its job and say why."""
    checkpoint = origin.checkpoint
    made_by = _told(checkpoint).get("adapterType")
    if made_by != adapter.type:
        message = f"Checkpoint {_name(checkpoint)} was made by {made_by}, not by {adapter.type}."
        raise ConfigError(message, hint=f"Leave --adapter out, or give --adapter {made_by}.")
    stored = _stored(origin, adapter)
    if stored is None:
        reason = f"fresh, since checkpoint {_name(checkpoint)} tells no session"
        decision = ResumeDecision(action="fresh", reason=reason)
    else:
        decision = decide(stored, cwd=cwd, now=iso_time(time.time()))
    if decision.action == "resume" and origin.gone_on:
        reason = f"{decision.reason}, which has gone on since that checkpoint"
        decision = msgspec.structs.replace(decision, reason=reason)
    return msgspec.structs.replace(decision, continues=checkpoint.run_id)


def from_directory(home: Home, adapter: Adapter, cwd: str) -> tuple[ResumeDecision, str | None]:
    """What `--continue` resumes, and the job that it belongs to."""
    decision = last_session(home, adapter, cwd)
    if decision.continues is None:
        return decision, None
    try:
        return decision, job_of(home, read_order(home, decision.continues))
    except BinderclipError:
        # The files of that run are gone; the session may still be there.
        return decision, None


def _last(store: JobStore, job_id: str) -> Checkpoint:
    """The job's last checkpoint that can be resumed, else its last."""
    runs = store.runs(job_id)
    found = [one for run in runs for one in store.checkpoints(run.id)]
    resumable = [one for one in found if _told(one).get("session")]
    return (resumable or found)[-1]


def _gone_on(store: JobStore, checkpoint: Checkpoint) -> bool:
    session = (_told(checkpoint).get("session") or {}).get("displayId")
    later = [run for run in store.runs(checkpoint.job_id) if run.id > checkpoint.run_id]
    used = [one for run in later for one in store.checkpoints(run.id)]
    return any((_told(one).get("session") or {}).get("displayId") == session for one in used)


def _stored(origin: Origin, adapter: Adapter) -> StoredSession | None:
    told = _told(origin.checkpoint).get("session")
    params = adapter.session_codec.deserialize((told or {}).get("params"))
    if not told or params is None:
        return None
    return StoredSession(
        agent_id=LOCAL_AGENT,
        adapter_type=adapter.type,
        task_key="",
        params=params,
        display_id=told.get("displayId"),
        cwd=str(params.get("cwd") or origin.cwd),
        target=told.get("target") or "local",
        last_run_id=origin.checkpoint.run_id,
    )


def _told(checkpoint: Checkpoint) -> dict[str, Any]:
    return checkpoint.metadata or {}


def _name(checkpoint: Checkpoint) -> str:
    return f"{short(checkpoint.run_id)}-{checkpoint.id.rpartition('-')[2]}"
