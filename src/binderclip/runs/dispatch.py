"""Carrying an admitted run to whoever drives it; `local` is a thread of this process (D5)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

from binderclip.contract.ids import short

Job = Callable[[str], None]


class Dispatch(Protocol):
    """A way to workers; a run that was carried is theirs until it is over or they let go."""

    def carry(self, run_id: str, job: Job) -> bool:
        """Hand a run over; False if it is being driven already."""
        ...

    def carried(self) -> set[str]:
        """The runs that are being driven."""
        ...

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until nothing is being driven; False if that took too long."""
        ...


class LocalDispatch:
    """One thread for each run that is being driven."""

    def __init__(self, after: Callable[[], None]) -> None:
        self._after = after
        self._changed = threading.Condition()
        self._threads: dict[str, threading.Thread] = {}

    def carry(self, run_id: str, job: Job) -> bool:
        with self._changed:
            if run_id in self._threads:
                return False
            name = f"run-{short(run_id)}"
            thread = threading.Thread(target=self._work, args=(run_id, job), name=name, daemon=True)
            self._threads[run_id] = thread
        thread.start()
        return True

    def carried(self) -> set[str]:
        with self._changed:
            return set(self._threads)

    def wait(self, timeout: float | None = None) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: not self._threads, timeout)

    def _work(self, run_id: str, job: Job) -> None:
        try:
            job(run_id)
        finally:
            with self._changed:
                del self._threads[run_id]
                self._changed.notify_all()
            self._after()
