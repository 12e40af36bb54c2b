"""`binderclip worker`: carries out what waits on this home, with no server beside it."""

from __future__ import annotations

import os
import signal
from types import FrameType

import click

from binderclip.contract.ids import short
from binderclip.store.home import Home


@click.command("worker")
@click.option("--drain", is_flag=True, help="At the end, wait for the agents that work.")
def command(drain: bool) -> None:
    """Run agents that were woken, until Ctrl-C; agents that work go on.

    `binderclip up` has a worker of its own: a home has one or the other. Agents that ask the API
    need the server.
    """
    from binderclip.plugins.registry import load_adapter
    from binderclip.runs.worker import Worker
    from binderclip.store.database import Database

    home = Home.from_env().ensure()
    with Database.open(home) as database:
        worker = Worker(database, load_adapter)
        with _Ending() as ending:
            worker.start()
            click.echo(f"Working on {home.path}. Ctrl-C ends it, agents go on.")
            ending.wait()
            left = worker.stop(drain=drain)
    if left:
        names = ", ".join(short(run_id) for run_id in left)
        click.echo(f"Agents work on: {names}. The next `binderclip worker` or `up` finds them.")


class _Ending:
    """Waits for the first signal; the second one ends the process as usual.

    The kernel may hand a signal to any thread, which wakes no lock that this one waits at, so the
    signal is read from a pipe.
    """

    def __enter__(self) -> _Ending:
        self._signals, self._writer = os.pipe()
        os.set_blocking(self._writer, False)
        self._heard_by = signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        signals = (signal.SIGINT, signal.SIGTERM)
        self._before = {number: signal.signal(number, _note) for number in signals}
        return self

    def __exit__(self, *exc: object) -> None:
        self._restore()
        signal.set_wakeup_fd(self._heard_by)
        for fd in (self._signals, self._writer):
            os.close(fd)

    def wait(self) -> None:
        os.read(self._signals, 1)
        self._restore()

    def _restore(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)


def _note(_number: int, _frame: FrameType | None) -> None:
    """The pipe has the number already; a handler must exist for it to be written."""
