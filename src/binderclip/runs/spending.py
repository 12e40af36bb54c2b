"""What a working run has used so far: told to its listener, kept for its viewers (D10)."""

from __future__ import annotations

import time

from binderclip.contract.errors import StoreError
from binderclip.contract.run import Usage
from binderclip.runs.driver import Drive
from binderclip.runs.execute import Attempt
from binderclip.runs.finalize import request_of
from binderclip.runs.transcript import Transcriber
from binderclip.sdk.outcome import Outcome, ProcessEnd, run_usage
from binderclip.store.runfile import UsageSoFar, write_usage

KEEP_SECONDS = 0.5


class Spending:
    """Calling it gives what an attempt has used, without what its session had used before."""

    def __init__(self, drive: Drive, attempt: Attempt, transcriber: Transcriber) -> None:
        self._drive = drive
        self._request = request_of(drive, attempt.number)
        self._parser = transcriber.parser
        self._kept = UsageSoFar()
        self._next = 0.0
        self._keeps = drive.adapter.manifest.usage_told == "step"

    def __call__(self) -> tuple[Usage | None, float | None]:
        used = run_usage(Outcome(self._request, ProcessEnd(), self._parser))
        if self._keeps and time.monotonic() >= self._next:
            self._keep(UsageSoFar(usage=used[0], cost_usd=used[1]))
        return used

    def _keep(self, used: UsageSoFar) -> None:
        if used == self._kept:
            return
        self._kept, self._next = used, time.monotonic() + KEEP_SECONDS
        try:
            write_usage(self._drive.home, self._drive.run_id, used)
        except (OSError, StoreError) as problem:
            self._keeps = False
            self._drive.listener.notice(f"What the run uses is not shown any more: {problem}")
