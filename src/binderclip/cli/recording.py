"""Keeping finished runs in their jobs, from the command line."""

from __future__ import annotations

import click

from binderclip.cli.safe import safe_line
from binderclip.contract.errors import BinderclipError
from binderclip.contract.ids import short
from binderclip.jobs.store import JobStore
from binderclip.plugins.registry import load_adapter
from binderclip.runs.driver import Listener
from binderclip.runs.retell import retell
from binderclip.store.home import Home


def job_store(home: Home) -> JobStore:
    """The jobs of this machine; a lost transcript is made again when it is needed."""
    return JobStore(home, lambda run_id: retell(home, run_id, load_adapter))


def record(home: Home, run_id: str) -> None:
    """Keep a run that has just ended; if that fails, the next look at the jobs does it."""
    try:
        JobStore(home).record(run_id)
    except (BinderclipError, OSError, ValueError) as problem:
        left_out(run_id, problem)


def left_out(run_id: str, problem: Exception) -> None:
    click.echo(f"Run {short(run_id)} is not in its job: {safe_line(str(problem))}", err=True)


class Recorder(Listener):
    """Keeps each run that is finished while nobody watches it."""

    def finalized(self, home: Home, run_id: str) -> None:
        record(home, run_id)
