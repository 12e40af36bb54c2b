"""Following an attempt to its end: woken by the kernel, looking after its supervisor."""

from __future__ import annotations

from collections.abc import Callable

from binderclip.contract.run import Usage
from binderclip.runs.driver import LetGo, Listener
from binderclip.runs.execute import Attempt, keep_supervised
from binderclip.runs.transcript import Transcriber
from binderclip.store.watch import shared
from binderclip.supervisor.launch import ExitRecord

SAFETY_SECONDS = 1.0
"""The kernel can be silent (network file systems) and supervisors can die: look anyway."""


Used = Callable[[], tuple[Usage | None, float | None]]
"""What the run has used and cost so far, as far as its runtime told."""


def _nothing() -> tuple[None, None]:
    return None, None


def follow(
    attempt: Attempt, transcriber: Transcriber, listener: Listener, used: Used = _nothing
) -> ExitRecord:
    """Hand on every record until the attempt has ended and its logs are complete."""
    with shared().watch(attempt.directory / "index", attempt.directory / "exit.json") as watch:
        while True:
            # Asked first: once exit.json is there, one more reading sees everything.
            exit = attempt.exit
            if exit is not None:
                break
            for records in transcriber.poll():
                listener.records(records)
            listener.usage(*used())
            if not listener.stays():
                raise LetGo
            if not watch.wait(SAFETY_SECONDS) and keep_supervised(attempt):
                listener.notice("The run's supervisor died; another took over.")
    for records in transcriber.finish(exit):
        listener.records(records)
    if transcriber.problem:
        listener.notice(f"The transcript is incomplete on disk: {transcriber.problem}")
    return exit
