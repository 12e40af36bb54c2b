"""The worker of a home: starts what is admitted, drives it, and looks after what was left behind.

There is one per home, by `worker.lock`. When it ends, agents work on: the next one finds them.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime

from binderclip.contract.errors import BinderclipError, RunBusy
from binderclip.contract.wire import iso_time
from binderclip.runs import lifecycle
from binderclip.runs.admission import admit, outlook
from binderclip.runs.budget import RunBudget, spent_by
from binderclip.runs.control import Control
from binderclip.runs.dispatch import LocalDispatch
from binderclip.runs.driver import Clock, Drive, LetGo
from binderclip.runs.keeper import Keeper
from binderclip.runs.lending import Lent, ready, refuse
from binderclip.runs.orders import LoadAdapter, prepare
from binderclip.runs.places import find_workplace, finish_workplace, open_workplace
from binderclip.runs.recover import take_over
from binderclip.runs.settle import settle
from binderclip.runs.survey import Found, Survey, never_ran
from binderclip.runs.tidying import Tidying, policy_from
from binderclip.runs.timers import beat
from binderclip.runs.workerlock import WorkerLock
from binderclip.store import runs
from binderclip.store.agents import Agents
from binderclip.store.database import Database
from binderclip.store.runfile import RunOutcome, read_outcome
from binderclip.supervisor.nursery import start_nursery, stop_nursery

_log = logging.getLogger(__name__)
SOCKET = "nursery.sock"
SURVEY_SEC = 2.0
"""How often runs are looked for that somebody else began or left."""
TROUBLE_SEC = 30.0


class Worker:
    """Drives runs in threads of this process until it is stopped."""

    def __init__(
        self,
        db: Database,
        load: LoadAdapter,
        *,
        lent: Lent | None = None,
        clock: Clock = time.time,
        max_runs: int = 256,
    ) -> None:
        self.db = db
        self.load = load
        self._lent = lent or Lent()
        self._clock = clock
        self._max_runs = max_runs
        self._control = Control(db, clock=clock, nudge=self.nudge)
        self._dispatch = LocalDispatch(after=self.nudge)
        self._survey = Survey(db)
        self._something = threading.Event()
        self._draining = threading.Event()
        self._leaving = threading.Event()
        self._tidying = Tidying(self._control, policy_from(self._lent.env), self._leaving)
        self._loop = threading.Thread(target=self._work, name="worker", daemon=True)
        self._lock: WorkerLock | None = None
        self._nursery: str | None = None
        self._next_survey = 0.0
        self._troubled: dict[str, float] = {}

    def start(self) -> None:
        """Begin to work; Conflict if another worker has this home."""
        self._lock = WorkerLock(self.db)
        self._nursery = _fresh_nursery(str(self.db.home.path / SOCKET))
        self._loop.start()

    def nudge(self) -> None:
        """Say that there may be something to do."""
        self._something.set()

    def begin(self, drive: Drive) -> None:
        """Drive a run that was made ready elsewhere in this process."""
        keeper = Keeper(self.db, drive.run_id, leaving=self._leaving.is_set)
        drive.listener, drive.nursery, drive.clock = keeper, self._nursery, self._clock
        drive.host_env = self._lent.env
        self._dispatch.carry(drive.run_id, lambda _: self._drive(drive))

    def working(self) -> set[str]:
        """The runs that are being driven here."""
        return self._dispatch.carried()

    def stop(self, *, drain: bool = False) -> list[str]:
        """End; agents work on, and their runs are returned. `drain` waits for them instead."""
        self._draining.set()
        self.nudge()
        if drain:
            self._dispatch.wait()
        left = sorted(self.working())
        self._leaving.set()
        self.nudge()
        if self._loop.is_alive():
            self._loop.join()
        self._dispatch.wait()
        self._tidying.wait()
        self._release()
        return [run_id for run_id in left if read_outcome(self.db.home, run_id) is None]

    def look(self) -> float:
        """Do what is due: timers, recovery, admission; the seconds until the next of it."""
        now = self._clock()
        with self.db.reading() as connection:
            beat_at = Agents(connection).next_due()
            due, start_at = outlook(connection, now)
        if beat_at is not None and beat_at <= iso_time(now):
            beat(self.db, now)
            # What the timers queued is due in the next look, which comes at once.
            self.nudge()
        if time.monotonic() >= self._next_survey:
            self._recover(now)
            self._next_survey = time.monotonic() + SURVEY_SEC
            self._tidying.begin_if_due()
        if due and not self._draining.is_set():
            room = self._max_runs - len(self.working())
            for run_id in admit(self.db, now, limit=max(0, room)):
                self._dispatch.carry(run_id, self._run)
        return _seconds_until([beat_at, start_at], now)

    def _work(self) -> None:
        while not self._leaving.is_set():
            self._something.clear()
            try:
                pause = self.look()
            except BinderclipError as problem:
                _log.error("the worker cannot go on for now: %s", problem)
                pause = SURVEY_SEC
            self._something.wait(pause)

    def _recover(self, now: float) -> None:
        found_now = self._survey.look(self.working())
        for found in found_now[: max(0, self._max_runs - len(self.working()))]:
            if self._troubled.get(found.run_id, 0.0) <= now:
                self._dispatch.carry(found.run_id, self._job_for(found))

    def _job_for(self, found: Found) -> Callable[[str], None]:
        jobs = {"settle": self._settle_found, "start": self._run, "take_over": self._take_over}
        return jobs[found.need]

    def _run(self, run_id: str) -> None:
        with self._guarded(run_id):
            try:
                drive = self._prepared(run_id)
            except BinderclipError as problem:
                outcome = refuse(self.db, run_id, problem, self._clock())
                finish_workplace(self._control, run_id, outcome.result)
                self._settle(run_id, outcome)
                return
            self._settle(run_id, lifecycle.run(drive))

    def _drive(self, drive: Drive) -> None:
        with self._guarded(drive.run_id):
            self._settle(drive.run_id, lifecycle.run(drive))

    def _take_over(self, run_id: str) -> None:
        with self._guarded(run_id):
            keeper = Keeper(
                self.db, run_id, budget=self._budget(run_id), leaving=self._leaving.is_set
            )
            history = runs.RunStore(self.db).history(run_id)
            place = find_workplace(self._control, run_id)
            outcome = take_over(self.db.home, run_id, self.load, keeper, history, place)
            self._settle(run_id, outcome)

    def _settle_found(self, run_id: str) -> None:
        with self._guarded(run_id):
            outcome = read_outcome(self.db.home, run_id)
            if outcome is not None:
                finish_workplace(self._control, run_id, outcome.result)
                self._settle(run_id, outcome)

    def _settle(self, run_id: str, outcome: RunOutcome) -> None:
        retry = outcome.state == "lost" and never_ran(self.db, run_id)
        settle(self.db, run_id, outcome, self._clock(), never_ran=retry)
        self._troubled.pop(run_id, None)

    def _prepared(self, run_id: str) -> Drive:
        place = open_workplace(self._control, run_id, self._lent.guarded_port)
        where = (place.cwd, place.session_target) if place else (None, "local")
        prepared = prepare(self.db, run_id, self.load, self._clock, *where)
        keeper = Keeper(
            self.db,
            run_id,
            budget=prepared.budget,
            leaving=self._leaving.is_set,
            ends_at_once=place is None,
        )
        drive = ready(self.db.home, prepared, self._lent, keeper, self._clock, place)
        drive.nursery = self._nursery
        return drive

    def _budget(self, run_id: str) -> RunBudget | None:
        with self.db.reading() as connection:
            row = runs.find(connection, run_id)
            if row is None or not row["scheduled"]:
                return None
            agent = Agents(connection).get(row["agent_id"])
            spent = spent_by(connection, agent, self._clock())
        told = self.load(agent.adapter_type).manifest.usage_told
        return RunBudget(agent, spent, told, self._clock)

    def _guarded(self, run_id: str) -> _Guard:
        return _Guard(self, run_id)

    def trouble(self, run_id: str, problem: BaseException) -> None:
        """Leave a run alone for a while whose driving failed; its files tell how far it got."""
        _log.error("run %s cannot be driven here: %s", run_id, problem, exc_info=problem)
        self._troubled[run_id] = self._clock() + TROUBLE_SEC

    def _release(self) -> None:
        if self._nursery is not None:
            try:
                stop_nursery(self._nursery)
            except OSError as problem:
                _log.info("the nursery was gone already: %s", problem)
            self._nursery = None
        if self._lock is not None:
            self._lock.release()
            self._lock = None


class _Guard:
    """Keeps the failure of one run from being everybody's."""

    def __init__(self, worker: Worker, run_id: str) -> None:
        self._worker = worker
        self._run_id = run_id

    def __enter__(self) -> None:
        return

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: object
    ) -> bool:
        if problem is None or isinstance(problem, LetGo | RunBusy):
            return True
        if isinstance(problem, Exception):
            self._worker.trouble(self._run_id, problem)
            return True
        return False


def _seconds_until(moments: list[str | None], now: float) -> float:
    left = [datetime.fromisoformat(text).timestamp() - now for text in moments if text]
    return max(0.0, min([SURVEY_SEC, *left]))


def _fresh_nursery(socket: str) -> str | None:
    """Start a nursery in place of one that a killed worker may have left; None without one."""
    with suppress(OSError):
        stop_nursery(socket)
    try:
        start_nursery(socket)
    except OSError as problem:
        _log.warning("no nursery, agents start a little slower: %s", problem)
        return None
    return socket
