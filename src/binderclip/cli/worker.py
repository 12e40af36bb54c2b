"""`binderclip worker`: carries out what waits on this home, with no server beside it."""

from __future__ import annotations

import signal
import threading
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
    """Waits for the first signal; the second one ends the process as usual."""

    def __enter__(self) -> _Ending:
        self._asked = threading.Event()
        signals = (signal.SIGINT, signal.SIGTERM)
        self._before = {number: signal.signal(number, self._ask) for number in signals}
        return self

    def __exit__(self, *exc: object) -> None:
        self._restore()

    def wait(self) -> None:
        self._asked.wait()

    def _ask(self, number: int, frame: FrameType | None) -> None:
        self._restore()
        self._asked.set()

    def _restore(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
