"""Runs that `binderclip run` started: their rows follow their files, as these appear and change.

Runs that the control plane admitted have rows already and are left to it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from pathlib import Path

from binderclip.contract.errors import BinderclipError, RunNotFound
from binderclip.contract.run import TERMINAL_STATES, StateChange
from binderclip.store.fileview import file_view
from binderclip.store.home import Home
from binderclip.store.rebuild import catch_up
from binderclip.store.runfile import ORDER, read_order, read_outcome
from binderclip.store.runs import RunStore
from binderclip.store.watch import shared
from binderclip.supervisor.launch import read_meta

SAFETY_SECONDS = 5.0
_log = logging.getLogger(__name__)


class Intake:
    """Takes in what the files tell, in a thread of its own; `changed` hears of every run."""

    def __init__(self, home: Home, store: RunStore, changed: Callable[[str], None]) -> None:
        self._home = home
        self._store = store
        self._changed = changed
        self._latest = ""
        self._live: set[str] = set()
        self._stopping = threading.Event()
        self._noticed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="intake", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._noticed.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._follow()
            except (BinderclipError, OSError) as problem:
                _log.warning("runs could not be taken in: %s", problem)
                self._stopping.wait(SAFETY_SECONDS)

    def _follow(self) -> None:
        self._latest = next(self._home.run_ids(), "")
        catch_up(self._home, self._store, self._damaged)
        self._live = set(self._store.unfinished())
        while not self._stopping.is_set():
            paths = self._watched()
            with shared().watch(*paths, heard=self._noticed.set) as watch:
                while not self._stopping.is_set() and paths == self._watched():
                    self._take_all()
                    self._noticed.wait(0.1 if watch.silent else SAFETY_SECONDS)
                    self._noticed.clear()

    def _watched(self) -> list[Path]:
        """The folder of months, the newest month, and every run that is going on."""
        months = sorted(path for path in self._home.runs.iterdir() if path.is_dir())
        live = [self._home.run_dir(run_id) for run_id in sorted(self._live)]
        return [self._home.runs, *months[-1:], *(path for path in live if path.is_dir())]

    def _take_all(self) -> None:
        for run_id in self._home.run_ids():
            if run_id <= self._latest:
                break
            self._live.add(run_id)
        self._latest = max(self._live | {self._latest})
        for run_id in sorted(self._live):
            try:
                self._take(run_id)
            except (BinderclipError, OSError) as problem:
                self._live.discard(run_id)
                self._damaged(run_id, problem)

    def _take(self, run_id: str) -> None:
        if not (self._home.run_dir(run_id) / ORDER).exists():
            # Its directory was made a moment ago, or it waits and has none yet.
            return
        if self._status(run_id) in TERMINAL_STATES:
            self._live.discard(run_id)
            return
        order = read_order(self._home, run_id)
        if getattr(order, "scheduled", False):
            self._live.discard(run_id)
            return
        before = self._status(run_id)
        self._store.create(order, "starting")
        self._follow_state(run_id)
        if self._status(run_id) != before:
            self._changed(run_id)

    def _follow_state(self, run_id: str) -> None:
        """Bring the row to what the files tell."""
        # Asked before the attempts: an outcome means that all of them are there.
        outcome = read_outcome(self._home, run_id)
        for number in self._home.attempts(run_id):
            meta = read_meta(str(self._home.attempt_dir(run_id, number)))
            if meta is not None:
                pid = (meta.get("child") or {}).get("pid")
                self._store.begin_attempt(run_id, number, meta.get("startedAt"), pid)
        if outcome is not None:
            self._store.finish(run_id, outcome)
            self._live.discard(run_id)
            return
        view = file_view(self._home, run_id)
        if view.status == "running" != self._status(run_id):
            at = view.started_at or view.created_at
            change = StateChange(state="running", at=at, reason="its agent runs", actor="cli")
            self._store.change_state(run_id, change)

    def _status(self, run_id: str) -> str | None:
        try:
            return self._store.get(run_id).status
        except RunNotFound:
            return None

    def _damaged(self, run_id: str, problem: Exception) -> None:
        _log.warning("the files of run %s: %s", run_id, problem)
