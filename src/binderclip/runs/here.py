"""Running an agent of the control plane in this process: `binderclip run --agent NAME`.

Same admission as the server's; the driver lock is held before the row says `starting`, so that no
worker takes the run for abandoned.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from binderclip.contract.entry import Record
from binderclip.contract.errors import Conflict
from binderclip.contract.run import StateChange, Usage
from binderclip.runs import lifecycle
from binderclip.runs.admission import admit_in
from binderclip.runs.driver import Clock, Drive, Listener
from binderclip.runs.keeper import Keeper
from binderclip.runs.orders import LoadAdapter, prepare
from binderclip.runs.settle import settle
from binderclip.runs.waking import Ask, wake
from binderclip.store import runs
from binderclip.store.database import Database
from binderclip.store.fileview import driver_lock
from binderclip.store.runfile import RunOutcome
from binderclip.supervisor import locks


class Together(Listener):
    """Several listeners of one run; it is let go when one of them wants that."""

    def __init__(self, *listeners: Listener) -> None:
        self._listeners = listeners

    def state(self, change: StateChange) -> None:
        for each in self._listeners:
            each.state(change)

    def attempt(self, directory: Path) -> None:
        for each in self._listeners:
            each.attempt(directory)

    def records(self, records: Sequence[Record]) -> None:
        for each in self._listeners:
            each.records(records)

    def notice(self, text: str) -> None:
        for each in self._listeners:
            each.notice(text)

    def usage(self, usage: Usage | None, cost_usd: float | None) -> None:
        for each in self._listeners:
            each.usage(usage, cost_usd)

    def stays(self) -> bool:
        return all(each.stays() for each in self._listeners)


def prepare_here(
    db: Database, ask: Ask, load: LoadAdapter, env: dict[str, str], clock: Clock
) -> Drive:
    """Wake and admit in one transaction, and make ready to drive; Conflict if it must wait."""
    run_id, held = _admit_here(db, ask, clock())
    try:
        prepared = prepare(db, run_id, load, clock)
    except BaseException:
        # The lock is free again and nothing ran: a worker ends the run with its reason.
        locks.release(held)
        raise
    return Drive(
        db.home,
        prepared.order,
        prepared.adapter,
        prepared.request,
        listener=Keeper(db, run_id, budget=prepared.budget),
        host_env=env,
        secrets=prepared.secrets,
        lock=held,
        clock=clock,
        history=list(prepared.history),
    )


def run_here(db: Database, drive: Drive, show: Listener) -> RunOutcome:
    """Drive the run to its end, telling `show` as well, and settle it."""
    drive.listener = Together(drive.listener, show)
    outcome = lifecycle.run(drive)
    settle(db, drive.run_id, outcome, drive.clock())
    return outcome


def _admit_here(db: Database, ask: Ask, now: float) -> tuple[str, int]:
    held: int | None = None
    try:
        with db.writing() as connection:
            run_id = wake(connection, ask, now).run_id
            path = driver_lock(db.home, run_id)
            db.home.make_run_dir(run_id)
            held = locks.take(str(path))
            if held is not None and admit_in(connection, now, only=run_id) == [run_id]:
                return run_id, held
            row = runs.find(connection, run_id)
            reason = (row["waiting_for"] if row else None) or "for another process"
            # Raised inside, so that the wake is undone as well.
            raise Conflict(f"The run would wait {reason}.", code="must_wait", hint=_HINT)
    except BaseException:
        if held is not None:
            path.unlink()
            path.parent.rmdir()
            locks.release(held)
        raise


_HINT = "Wake the agent instead, and its run starts when it may: `binderclip agents wake`."
