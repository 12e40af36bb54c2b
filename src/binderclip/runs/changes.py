"""What a run changed: where its directory stood is noted before it, the difference when it ends.

Two files of the run's directory, `before.json` and `changes.json`, hold it; no row depends on them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from binderclip.contract.errors import StoreError
from binderclip.contract.run import ExecutionResult
from binderclip.runs.driver import Drive
from binderclip.runs.execute import without
from binderclip.store.home import Home
from binderclip.store.jsonfile import encode, read_json, write_atomic
from binderclip.workspaces.standing import Standing, standing

if TYPE_CHECKING:
    from binderclip.workspaces.comparing import RunChanges

BEFORE = "before.json"
CHANGES = "changes.json"
_NOT_BACK = ("workspace_failed", "restore_conflict")


def note_before(drive: Drive) -> None:
    """Keep where the directory of a run stands, just before its agent starts."""
    before = _standing(drive)
    write_atomic(drive.home.run_dir(drive.run_id) / BEFORE, encode(before))


def note_changes(drive: Drive, result: ExecutionResult) -> None:
    """Keep what the run changed; work that is not back yet is told by its workspace later."""
    before = _read_before(drive.home, drive.run_id)
    if before is None or before.top is None or result.error_code in _NOT_BACK:
        return
    if before.tree is not None and drive.place is None:
        return
    # Only now: a run starts without git.
    from binderclip.workspaces.comparing import compare

    found = compare(before)
    found = msgspec.structs.replace(found, diff=without(found.diff, drive.secrets))
    try:
        write_atomic(drive.home.run_dir(drive.run_id) / CHANGES, encode(found))
    except StoreError as problem:
        drive.listener.notice(f"What changed is not kept: {problem.message}")


def changes_of(home: Home, run_id: str) -> RunChanges:
    """What a run changed, or has changed until now, or why that cannot be told."""
    from binderclip.workspaces.comparing import RunChanges, compare, untold

    try:
        return read_json(home.run_dir(run_id) / CHANGES, RunChanges)
    except FileNotFoundError:
        before = _read_before(home, run_id)
    if before is not None:
        return compare(before)
    if not home.attempts(run_id):
        return untold("The agent has not started, so it changed nothing.")
    return untold("What the directory held before this run was not noted.")


def _standing(drive: Drive) -> Standing:
    if drive.place is None:
        return standing(drive.order.cwd)
    if drive.place.cwd is None:
        reason = "It worked in a directory of another machine, which is not looked at from here."
        return Standing(at=0.0, reason=reason)
    from binderclip.workspaces.disk import CannotSave
    from binderclip.workspaces.git import Git, GitFailed
    from binderclip.workspaces.snapshot import take

    before = standing(drive.place.cwd)
    if before.top is None:
        return before
    try:
        return msgspec.structs.replace(before, tree=take(Git(before.top)).tree)
    except (GitFailed, CannotSave, OSError) as problem:
        reason = f"Its workspace could not be looked at before: {problem}"
        return msgspec.structs.replace(before, top=None, reason=reason)


def _read_before(home: Home, run_id: str) -> Standing | None:
    try:
        return read_json(home.run_dir(run_id) / BEFORE, Standing)
    except FileNotFoundError:
        return None
