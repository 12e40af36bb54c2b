"""`binderclip workspaces`: where tasks work, what was done there, and taking it over (W1-W8)."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, get_args

import click
import msgspec

from binderclip.cli.listing import print_json, print_table
from binderclip.cli.safe import safe, safe_line
from binderclip.cli.words import age, counted, homely, moment, size
from binderclip.contract.errors import WorkspaceError
from binderclip.contract.ids import short
from binderclip.contract.operation import WorkspaceOperation
from binderclip.runs.control import Control
from binderclip.runs.places import clean_workspaces, finalize_again
from binderclip.runs.workplace import all_workspaces
from binderclip.store.database import Database
from binderclip.store.home import Home
from binderclip.store.operations import FINALIZE, Operations
from binderclip.workspaces import reviewing
from binderclip.workspaces.cleaning import Policy, Verdict, disk_use
from binderclip.workspaces.merging import Choice
from binderclip.workspaces.record import Workspace

_HEAD = ("WORKSPACE", "STATE", "USED", "SIZE", "BRANCH", "DIRECTORY")
_json = click.option("--json", "as_json", is_flag=True, help="Print the records as JSON.")
_take = click.option(
    "--take",
    type=click.Choice(get_args(Choice)),
    help="Settle a conflict: our version, theirs, or both with conflict markers.",
)


@contextmanager
def _control() -> Iterator[Control]:
    with Database.open(Home.from_env().ensure()) as database:
        yield Control(database)


def _found(control: Control, text: str) -> Workspace:
    return all_workspaces(control.db).find(text)


@click.group("workspaces", invoke_without_command=True)
@_json
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> None:
    """List workspaces; diff, merge, export, clean, resolve them.

    WORKSPACE is the end of its id, its branch, or the key of its task.
    """
    if ctx.invoked_subcommand is None:
        _list(as_json)


@command.command("list")
@_json
def list_command(as_json: bool) -> None:
    """List workspaces, newest first, with the space they take."""
    _list(as_json)


def _list(as_json: bool) -> None:
    with _control() as control:
        workspaces = all_workspaces(control.db)
        sizes = [(one, disk_use(workspaces.folder(one.id))) for one in workspaces.list()]
    if as_json:
        print_json([{**msgspec.to_builtins(one), "bytes": taken} for one, taken in sizes])
    elif sizes:
        print_table(_HEAD, [_row(one, taken) for one, taken in sizes])
    else:
        click.echo("No workspaces. A task that works in a git repository gets one.")


def _row(one: Workspace, taken: int) -> tuple[str, ...]:
    used = moment(one.used_at)
    return (
        short(one.id),
        one.state,
        age(time.time() - used) if used else "",
        size(taken),
        safe_line(one.branch or "–"),
        safe_line(homely(one.tree)),
    )


@command.command("show")
@click.argument("workspace")
@_json
def show_command(workspace: str, as_json: bool) -> None:
    """Show a workspace: where it came from, what was done in it, its operations."""
    with _control() as control:
        one = _found(control, workspace)
        work = reviewing.work_of(one)
        steps = _operations(control, one)
    if as_json:
        done = {"commits": work.commits, "files": work.files, "uncommitted": work.uncommitted}
        print_json({**msgspec.to_builtins(one), "work": done, "operations": steps})
        return
    click.echo(f"{short(one.id)}  {one.state}  {safe_line(one.branch or '')}")
    click.echo(f"{safe_line(homely(one.tree))}, from {safe_line(homely(one.source))}")
    for note in one.notes:
        click.echo(f"Note: {safe_line(note)}")
    told = f"{counted(len(work.commits), 'commit')}, {counted(len(work.files), 'file')} changed"
    click.echo(f"{told}, {work.uncommitted} of them not committed")
    for line in [*work.commits, *(f"{letter} {path}" for letter, path in work.files)]:
        click.echo(f"  {safe_line(line)}")
    for step in steps:
        click.echo(f"{step.kind}: {step.status}{_error(step)}")
        for note in step.detail.get("notes", ()):
            if note not in one.notes:
                click.echo(f"  {safe_line(str(note))}")


def _error(step: WorkspaceOperation) -> str:
    return f", {safe_line(step.error)}" if step.error else ""


def _operations(control: Control, one: Workspace) -> list[WorkspaceOperation]:
    if one.run_id is None:
        return []
    with control.db.reading() as connection:
        return Operations(connection).of_run(one.run_id)


@command.command("diff")
@click.argument("workspace")
@click.option("--stat", is_flag=True, help="Only how much changed in which file.")
def diff_command(workspace: str, stat: bool) -> None:
    """Show what was done in a workspace, uncommitted and new files included."""
    with _control() as control:
        text = reviewing.diff(_found(control, workspace), *(["--stat"] if stat else []))
    click.echo(safe(text.decode("utf-8", "replace")), nl=False)


@command.command("export")
@click.argument("workspace")
@click.option("--output", "-o", type=click.Path(path_type=Path), help="Write to this file.")
def export_command(workspace: str, output: Path | None) -> None:
    """Print the work as a patch that `git apply` takes."""
    with _control() as control:
        patch = reviewing.export(_found(control, workspace))
    if output is not None:
        output.write_bytes(patch)
    elif sys.stdout.isatty():
        click.echo(safe(patch.decode("utf-8", "replace")), nl=False)
    else:
        sys.stdout.buffer.write(patch)


@command.command("merge")
@click.argument("workspace")
@_take
def merge_command(workspace: str, take: Choice | None) -> None:
    """Bring the work into the checkout that the workspace was made from.

    Commits are fast-forwarded or merged, uncommitted files arrive uncommitted. A conflict changes
    nothing; --take settles it.
    """
    with _control() as control:
        one = _found(control, workspace)
        done = reviewing.merge_into_source(all_workspaces(control.db), one, take)
    click.echo(f"Merged {counted(len(done.changed), 'file')} into {safe_line(one.source)}.")


@command.command("archive")
@click.argument("workspace")
def archive_command(workspace: str) -> None:
    """Say that a workspace is done with; `clean` may then remove it."""
    with _control() as control:
        one = reviewing.archive(all_workspaces(control.db), _found(control, workspace))
    click.echo(f"Archived {short(one.id)}.")


@command.command("clean")
@click.option("--dry-run", is_flag=True, help="Say what would happen, and do nothing.")
@click.option("--idle-days", default=14.0, show_default=True, help="Unused for so long: may go.")
@click.option("--max-gib", type=float, help="Above this, those used longest ago go first.")
@_json
def clean_command(dry_run: bool, idle_days: float, max_gib: float | None, as_json: bool) -> None:
    """Remove workspaces that are archived or unused; nothing is lost.

    What is not committed or not merged is kept under refs/binderclip/saved/ in the repository.
    """
    policy = Policy(idle_days, None if max_gib is None else int(max_gib * (1 << 30)))
    with _control() as control:
        verdicts = clean_workspaces(control, policy, dry_run=dry_run)
    if as_json:
        print_json([_verdict(one) for one in verdicts])
        return
    word = "would go" if dry_run else "removed"
    for one in verdicts:
        what = f"{word} ({size(one.bytes)})" if one.removes else "stays"
        saved = f"; its work is kept: {one.saved}" if one.saved else ""
        click.echo(safe_line(f"{short(one.workspace.id)}  {what}: {one.reason}{saved}"))


def _verdict(one: Verdict) -> dict[str, Any]:
    return {
        "workspaceId": one.workspace.id,
        "removes": one.removes,
        "reason": one.reason,
        "bytes": one.bytes,
        "savedRef": one.saved,
    }


@command.command("resolve")
@click.argument("workspace")
@_take
@click.option("--waive", metavar="REASON", help="Go on without the work that did not come back.")
def resolve_command(workspace: str, take: Choice | None, waive: str | None) -> None:
    """Finish what a run left unfinished: bring its work back, settling a conflict with --take.

    Without options the restore is tried again as it was.
    """
    with _control() as control:
        one = _found(control, workspace)
        if one.run_id is None:
            raise WorkspaceError("No run has worked in it yet.")
        if waive is not None:
            failed = [step for step in _operations(control, one) if step.kind == FINALIZE]
            if not failed:
                raise WorkspaceError("There is no failed finalize to waive.")
            control.waive_finalize(failed[-1].id, "person", waive)
            click.echo("Waived; what waited for it goes on. The work is still kept.")
            return
        finalize_again(control, one.run_id, take)
    click.echo(f"The work is in {safe_line(homely(one.tree))}.")
