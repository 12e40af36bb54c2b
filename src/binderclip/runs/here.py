"""Running an agent of the control plane in this process: `binderclip run --agent NAME`.

Same admission as the server's; the driver lock is held before the row says `starting`, so that no
worker takes the run for abandoned.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sqlalchemy import Connection, or_, select

from binderclip.contract.entry import Record
from binderclip.contract.errors import BinderclipError, Conflict
from binderclip.contract.ids import short
from binderclip.contract.run import StateChange, Usage
from binderclip.runs import lifecycle
from binderclip.runs.admission import ACTIVE, admit_in
from binderclip.runs.control import Control
from binderclip.runs.driver import Clock, Drive, Listener
from binderclip.runs.keeper import Keeper
from binderclip.runs.lending import Lent, ready, refuse
from binderclip.runs.orders import LoadAdapter, prepare
from binderclip.runs.places import open_workplace
from binderclip.runs.settle import settle
from binderclip.runs.waking import Ask, wake
from binderclip.store import runs
from binderclip.store.agents import Agents
from binderclip.store.database import Database
from binderclip.store.fileview import driver_lock
from binderclip.store.home import Home
from binderclip.store.runfile import RunOutcome
from binderclip.store.tables import runs as table
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

    def finalized(self, home: Home, run_id: str) -> None:
        for each in self._listeners:
            each.finalized(home, run_id)

    def stays(self) -> bool:
        return all(each.stays() for each in self._listeners)


def prepare_here(db: Database, ask: Ask, load: LoadAdapter, lent: Lent, clock: Clock) -> Drive:
    """Wake and admit in one transaction, and make ready to drive; Conflict if it must wait."""
    run_id, held = _admit_here(db, ask, clock())
    try:
        # In the directory itself, as every `run`; but on the machine that the agent belongs to.
        place = open_workplace(Control(db, clock=clock), run_id, lent.guarded_port, worktrees=False)
        where = (place.cwd, place.session_target) if place else (None, "local")
        prepared = prepare(db, run_id, load, clock, *where)
        keeper = Keeper(db, run_id, budget=prepared.budget)
        drive = ready(db.home, prepared, lent, keeper, clock, place)
    except BinderclipError as problem:
        settle(db, run_id, refuse(db, run_id, problem, clock()), clock())
        locks.release(held)
        raise
    except BaseException:
        # The lock is free again and nothing ran: a worker starts the run.
        locks.release(held)
        raise
    drive.lock = held
    return drive


def run_here(db: Database, drive: Drive, show: Listener) -> RunOutcome:
    """Drive the run to its end, telling `show` as well, and settle it."""
    drive.listener = Together(drive.listener, show)
    outcome = lifecycle.run(drive)
    settle(db, drive.run_id, outcome, drive.clock())
    return outcome


def detach_here(db: Database, drive: Drive, show: Listener) -> RunOutcome | None:
    """Start the run and leave it to the server's worker; only a blocked one has an outcome."""
    drive.listener = Together(drive.listener, show)
    outcome = lifecycle.detach(drive)
    if outcome is not None:
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
            # Raised inside, so that the wake is undone as well.
            raise _must_wait(connection, ask, run_id)
    except BaseException:
        if held is not None:
            path.unlink()
            path.parent.rmdir()
            locks.release(held)
        raise


def _must_wait(connection: Connection, ask: Ask, run_id: str) -> Conflict:
    row = runs.find(connection, run_id)
    reason = (row["waiting_for"] if row else None) or "for another process"
    agent = Agents(connection).get(ask.agent_id)
    hint = f"`binderclip agents wake {agent.name!r}` queues it, and it starts when it may."
    busy = _busy_with(connection, ask)
    if agent.status == "paused":
        hint = f"`binderclip agents resume {agent.name!r}` lets it work again."
    elif busy is not None:
        hint = f"`binderclip watch {short(busy)}` shows what works there now. {hint}"
    return Conflict(f"The run would wait {reason}.", code="must_wait", hint=hint)


def _busy_with(connection: Connection, ask: Ask) -> str | None:
    """A run that works on the task, or one of the agent."""
    theirs = table.c.agent_id == ask.agent_id
    if ask.task_id is not None:
        theirs = or_(theirs, table.c.task_id == ask.task_id)
    query = select(table.c.id).where(table.c.scheduled, table.c.status.in_(ACTIVE), theirs)
    # The task's own first: it is what stands in the way even of an agent that may do several.
    mine = (table.c.task_id == ask.task_id).desc() if ask.task_id else table.c.id
    found: str | None = connection.scalar(query.order_by(mine).limit(1))
    return found
