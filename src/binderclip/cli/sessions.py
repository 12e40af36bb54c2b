"""`binderclip sessions`: what `--continue` would resume, and how to forget it (S1, S5)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import click

from binderclip.cli.listing import print_json, print_table
from binderclip.cli.safe import safe_line
from binderclip.cli.words import age, brief_count, homely, moment
from binderclip.contract.errors import BinderclipError, RunNotFound
from binderclip.contract.run import TERMINAL_STATES
from binderclip.contract.session import ResumeDecision, StoredSession
from binderclip.contract.wire import iso_time
from binderclip.runs.wake import LOCAL_AGENT, local_task_key
from binderclip.sdk.adapter import Adapter
from binderclip.sdk.resume import decide
from binderclip.store.database import Database
from binderclip.store.home import Home
from binderclip.store.runfile import read_order, read_outcome
from binderclip.store.runs import RunStore

_HEAD = ("SESSION", "ADAPTER", "USED", "RUNS", "TOKENS", "DIRECTORY")
_ALL = 1_000_000


@contextmanager
def current_store(home: Home) -> Iterator[RunStore]:
    """The database, with every run that ended since anybody looked taken in from its files."""
    with Database.open(home) as database:
        store = RunStore(database)
        known = {view.id for view in store.list(limit=_ALL) if view.status in TERMINAL_STATES}
        for run_id in reversed([id for id in home.run_ids() if id not in known]):
            _take_in(home, store, run_id)
        yield store


def _take_in(home: Home, store: RunStore, run_id: str) -> None:
    try:
        outcome = read_outcome(home, run_id)
        if outcome is not None:
            store.create(read_order(home, run_id))
            store.finish(run_id, outcome)
    except BinderclipError as problem:
        click.echo(f"A damaged run is left out: {safe_line(problem.message)}", err=True)


def last_session(home: Home, adapter: Adapter, cwd: str) -> ResumeDecision:
    """What `--continue` resumes: the last session of this adapter in this directory."""
    with current_store(home) as store:
        stored = store.session(LOCAL_AGENT, adapter.type, local_task_key(cwd))
    return decide(stored, cwd=cwd, now=iso_time(time.time()), management=adapter.session_management)


@click.group("sessions", invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="Print the records as JSON.")
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> None:
    """List the sessions that --continue resumes, or reset one."""
    if ctx.invoked_subcommand is None:
        _list(as_json)


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print the records as JSON.")
def list_command(as_json: bool) -> None:
    """List sessions, the one used last first."""
    _list(as_json)


def _list(as_json: bool) -> None:
    with current_store(Home.from_env().ensure()) as store:
        sessions = store.sessions()
    if as_json:
        print_json(sessions)
    elif sessions:
        print_table(_HEAD, [_row(session, time.time()) for session in sessions])
    else:
        click.echo("No sessions yet.")


def _row(session: StoredSession, now: float) -> tuple[str, ...]:
    used = moment(session.updated_at)
    return (
        safe_line(session.display_id or "?")[:8],
        session.adapter_type,
        age(now - used) if used else "",
        str(session.runs),
        brief_count(session.tokens),
        safe_line(homely(session.cwd)),
    )


@command.command("reset")
@click.argument("session")
def reset_command(session: str) -> None:
    """Forget a session, named by the beginning of its id: the next run there starts afresh."""
    with current_store(Home.from_env().ensure()) as store:
        found = [one for one in store.sessions() if (one.display_id or "").startswith(session)]
        if len(found) != 1:
            many = f"{len(found)} sessions begin with" if found else "No session begins with"
            raise RunNotFound(f"{many} {session!r}.", hint="`binderclip sessions` lists them.")
        store.clear_session(found[0].agent_id, found[0].adapter_type, found[0].task_key)
    click.echo(f"Forgot session {safe_line(found[0].display_id or '')}.")
