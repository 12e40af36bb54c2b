"""`binderclip runs`: the runs of this machine, and everything that is kept of one.

The list is what people ask for most: it imports neither adapters nor parsers, and a database only
where runs wait in it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, get_args

import click

from binderclip.cli import history
from binderclip.cli.ending import STATES
from binderclip.cli.layout import Colour, clipped
from binderclip.cli.listing import print_json, print_table
from binderclip.cli.safe import safe_line
from binderclip.cli.words import (
    age,
    all_tokens,
    between,
    brief_count,
    counted,
    duration,
    moment,
    money,
)
from binderclip.contract.errors import BinderclipError
from binderclip.contract.ids import short
from binderclip.contract.run import TERMINAL_STATES, RunState, RunView
from binderclip.contract.wire import iso_time
from binderclip.store.fileview import file_view
from binderclip.store.home import Home
from binderclip.store.runfile import ORDER

_HEAD = ("RUN", "STATE", "ADAPTER", "AGE", "TOOK", "TOKENS", "COST", "ABOUT")
_STATE_COLUMN = 1


def _list_options(function: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print the whole records as JSON."),
        click.option("--adapter", metavar="TYPE", help="Only runs of this adapter."),
        click.option("--status", type=click.Choice(get_args(RunState)), help="Only in this state."),
        click.option("--limit", default=20, show_default=True, help="At most so many."),
    ):
        function = option(function)
    return function


@click.group("runs", invoke_without_command=True)
@_list_options
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """List runs, newest first, also those that wait to begin; or show, read and cancel one.

    Records of runs whose agent has ended without anybody looking are finished first.
    RUN is an id or its last characters; the newest run where it is left out.
    """
    if ctx.invoked_subcommand is None:
        _list(**options)


@command.command("list")
@_list_options
def list_command(**options: Any) -> None:
    """List runs, newest first, also those that wait to begin."""
    _list(**options)


def _list(limit: int, status: str | None, adapter: str | None, as_json: bool) -> None:
    home = Home.from_env().ensure()
    for run_id, problem in history.finish_dead(home, list(home.run_ids())):
        click.echo(f"Run {short(run_id)} could not be finished: {safe_line(problem)}", err=True)
    views = history.views(home, limit=limit, status=status, adapter=adapter)
    if status in (None, "queued"):
        views = _with_queued(home, views, limit, adapter)
    if as_json:
        print_json(views)
    elif views:
        rows = [_row(view, time.time()) for view in views]
        print_table(_HEAD, rows, lambda row, column: _colours(views[row].status, column))
    else:
        click.echo("No runs yet. Start one: binderclip run --help")


def _with_queued(
    home: Home, views: list[RunView], limit: int, adapter: str | None
) -> list[RunView]:
    """Those too that have not begun; a database that cannot be read hides no run with files."""
    try:
        return history.with_queued(home, views, limit=limit, adapter=adapter)
    except BinderclipError as problem:
        told = safe_line(problem.message)
        click.echo(f"Runs that wait to begin cannot be listed: {told}", err=True)
        return views


def _colours(state: RunState, column: int) -> tuple[Colour, ...]:
    if column == _STATE_COLUMN:
        return (STATES[state][1],)
    return ("dim",) if column in (2, 3) else ("plain",)


def _row(view: RunView, now: float) -> tuple[str, ...]:
    created = moment(view.created_at)
    end = view.ended_at if view.status in TERMINAL_STATES else iso_time(now)
    took = between(view.created_at, end)
    return (
        short(view.id),
        STATES[view.status][0],
        safe_line(view.adapter_type),
        age(now - created) if created else "",
        duration(took) if took is not None else "",
        brief_count(all_tokens(view.usage)) or "–",
        money(view.cost_usd) if view.cost_usd is not None else "–",
        clipped(safe_line((view.title or view.error_message or view.summary or "")[:500]), 80),
    )


def _found(run: str | None) -> tuple[Home, str]:
    home = Home.from_env().ensure()
    return home, history.find(home, run)


@command.command("show")
@click.argument("run", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print the record and its history as JSON.")
def show_command(run: str | None, as_json: bool) -> None:
    """Show everything that is known about a run, and its history."""
    from binderclip.cli.reading import print_run

    home = Home.from_env().ensure()
    run_id = history.find_any(home, run)
    if (home.run_dir(run_id) / ORDER).exists():
        history.finish_dead(home, [run_id])
    print_run(home, run_id, as_json=as_json)


@command.command("log")
@click.argument("run", required=False)
@click.option(
    "--stream",
    type=click.Choice(["stdout", "stderr"]),
    default="stdout",
    show_default=True,
    help="Which of the two.",
)
@click.option("--attempt", type=click.IntRange(min=1), help="Of this attempt, not the last one.")
@click.option("--follow", "-f", is_flag=True, help="Stay until the run is over.")
def log_command(run: str | None, stream: Any, attempt: int | None, follow: bool) -> None:
    """Print the bytes that the agent wrote; on a terminal, without what could steer it."""
    from binderclip.cli.reading import print_log

    home, run_id = _found(run)
    print_log(home, run_id, stream, attempt, follow=follow)


@command.command("transcript")
@click.argument("run", required=False)
@click.option("--full", is_flag=True, help="Fold nothing.")
@click.option("--debug", is_flag=True, help="Also show lines that no parser understood.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON Lines instead of text.")
def transcript_command(run: str | None, full: bool, debug: bool, as_json: bool) -> None:
    """Print what the agent did, as `watch` shows it."""
    from binderclip.cli.reading import print_transcript

    home, run_id = _found(run)
    history.finish_dead(home, [run_id])
    print_transcript(home, run_id, full=full, debug=debug, as_json=as_json)


@command.command("export")
@click.argument("run", required=False)
@click.option(
    "--format",
    "-f",
    "kind",
    type=click.Choice(["entries", "events", "markdown", "html"]),
    default="html",
    show_default=True,
    help="JSON Lines of entries or events, Markdown, or one page.",
)
@click.option("--output", "-o", metavar="FILE", help="Where to; standard output if not given.")
@click.option("--redact", is_flag=True, help="Mask secrets instead of refusing.")
def export_command(run: str | None, kind: Any, output: str | None, redact: bool) -> None:
    """Write a run, or a whole job, as a file to share.

    Everything is scanned for secrets first; an export that holds one is refused and the place
    named, unless --redact masks them. RUN may be the id of a job as well.
    """
    from binderclip.cli.export import write_export

    write_export(Home.from_env().ensure(), run, kind, output, redact=redact)


@command.command("rebuild")
def rebuild_command() -> None:
    """Make the database's rows again from the files of all runs."""
    from binderclip.store.database import Database
    from binderclip.store.rebuild import rebuild
    from binderclip.store.runs import RunStore

    home = Home.from_env().ensure()
    history.finish_dead(home, list(home.run_ids()))
    with Database.open(home) as database:
        taken = rebuild(home, RunStore(database), _left_out)
    click.echo(f"{counted(taken, 'run')} in the database.")


def _left_out(run_id: str, problem: Exception) -> None:
    click.echo(f"Run {short(run_id)} is left out: {safe_line(str(problem))}", err=True)


@command.command("cancel")
@click.argument("run")
@click.option("--kill", is_flag=True, help="Kill it at once, without grace.")
@click.option("--reason", default="cancelled from the command line", help="Kept with the run.")
def cancel_command(run: str, kill: bool, reason: str) -> None:
    """Ask the agent to end; it is killed when its grace is over."""
    from binderclip.cli.interrupt import user_name
    from binderclip.runs.execute import cancel

    home = Home.from_env().ensure()
    run_id = history.find_any(home, run)
    if not (home.run_dir(run_id) / ORDER).exists():
        _cancel_queued(home, run_id, reason)
        return
    view = file_view(home, run_id)
    if view.status in TERMINAL_STATES:
        click.echo(f"Run {short(run_id)} is over already: {STATES[view.status][0]}.")
        return
    attempt = history.last_attempt(home, run_id)
    if attempt is None:
        raise click.ClickException(f"Run {short(run_id)} has not started its agent yet.")
    cancel(attempt, by=user_name(), reason=reason, kill=kill)
    click.echo(f"{'Killing' if kill else 'Cancelling'} run {short(run_id)}.")


def _cancel_queued(home: Home, run_id: str, reason: str) -> None:
    """Take back a run that nobody has begun; by the API, which knows what follows from it."""
    from binderclip.cli.asking import Api

    with Api(home) as api:
        api.post(f"/api/runs/{run_id}/cancel", {"reason": reason})
    click.echo(f"Run {short(run_id)} is cancelled before it began.")
