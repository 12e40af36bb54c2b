"""From a prepared run to a drive: what its host lends to it, or why it is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from binderclip.contract.errors import BinderclipError
from binderclip.contract.run import ExecutionResult, RunOrder, StateChange
from binderclip.contract.wire import iso_time
from binderclip.runs.driver import Clock, Drive, Listener, own_environment
from binderclip.runs.orders import Prepared, order_of_row
from binderclip.runs.workplace import Workplace
from binderclip.store import runs
from binderclip.store.database import Database
from binderclip.store.fileview import driver_lock
from binderclip.store.home import Home
from binderclip.store.runfile import RunOutcome, write_order, write_outcome
from binderclip.supervisor import locks

_SKILLS = Path(__file__).resolve().parents[1] / "skills"
_CODES = (
    *("unknown_adapter", "bad_config", "plugin_failed", "command_not_found"),
    *("workspace_failed", "restore_conflict"),
)


@dataclass(frozen=True)
class Lent:
    """What a host lends to the runs that it drives."""

    env: dict[str, str] = field(default_factory=own_environment)
    """The host's environment; the allow-list decides what of it an agent sees (H5)."""
    api_url: Callable[[], str | None] = lambda: None
    token: Callable[[RunOrder], str | None] = lambda _order: None
    """Makes the token of a run, for adapters that take one (R3)."""
    skills: tuple[Path, ...] = ()
    guarded_port: Callable[[], int | None] = lambda: None
    """The loopback port of the listener for agents on other machines, if there is one (W6)."""


def ready(
    home: Home,
    prepared: Prepared,
    lent: Lent,
    listener: Listener,
    clock: Clock,
    place: Workplace | None = None,
) -> Drive:
    """A prepared run in the hands of this process."""
    request, api_url = prepared.request, lent.api_url()
    if api_url is not None and prepared.adapter.capabilities.supports_local_agent_jwt:
        request = msgspec.structs.replace(request, auth_token=lent.token(prepared.order))
    if place is not None:
        request = msgspec.structs.replace(request, execution_target=place.target)
    return Drive(
        home,
        prepared.order,
        prepared.adapter,
        request,
        listener=listener,
        host_env=lent.env,
        api_url=api_url,
        skills=lent.skills,
        secrets=prepared.secrets,
        place=place,
        clock=clock,
        history=list(prepared.history),
    )


def refuse(db: Database, run_id: str, problem: BinderclipError, now: float) -> RunOutcome:
    """End a run that cannot even be prepared, in its files as in any other run."""
    with db.reading() as connection:
        row = runs.find(connection, run_id)
    assert row is not None
    outcome = _refused(problem, runs.RunStore(db).history(run_id), iso_time(now))
    db.home.make_run_dir(run_id)
    # Under the lock, which the caller may hold: between the two files it would look abandoned.
    lock = locks.take(str(driver_lock(db.home, run_id)))
    try:
        write_order(db.home, order_of_row(row))
        write_outcome(db.home, run_id, outcome)
    finally:
        if lock is not None:
            locks.release(lock)
    return outcome


def shipped_skills() -> tuple[Path, ...]:
    """The skills that binderclip brings for agents (K2)."""
    return tuple(sorted(path.parent for path in _SKILLS.glob("*/SKILL.md")))


def _refused(problem: BinderclipError, history: list[StateChange], now: str) -> RunOutcome:
    hint = f" {problem.hint}" if problem.hint else ""
    result = ExecutionResult(
        exit_code=None,
        signal=None,
        timed_out=False,
        error_code=problem.code if problem.code in _CODES else "bad_config",  # type: ignore[arg-type]
        error_message=problem.message + hint,
    )
    ended = StateChange(state="failed", at=now, reason=problem.message, actor="driver")
    return RunOutcome(state="failed", ended_at=now, result=result, history=(*history, ended))
