"""`binderclip workspaces`: looking at the work of a task and taking it over."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from binderclip.contract.ids import short
from binderclip.workspaces.record import Workspace, Workspaces
from binderclip.workspaces.worktrees import Wanted, prepare
from tests.cli.conftest import Cli
from tests.workspaces.conftest import commit, plain_git, status

LONG_AGO = "2026-01-02T03:04:05.000Z"


@pytest.fixture
def one(cli: Cli) -> Workspace:
    """A workspace of a repository in the working directory, with a commit and a loose file."""
    plain_git(cli.cwd, "init", "-q", "-b", "main")
    commit(cli.cwd, "first", a="one\n")
    root = Workspaces(cli.home.path / "worktrees")
    made = prepare(root, Wanted("task-1", str(cli.cwd), label="T-1"), LONG_AGO)
    commit(Path(made.tree), "agent's commit", b="bee\n")
    (Path(made.tree) / "loose").write_text("\x1b[31mred")
    return made


def test_there_may_be_none(cli: Cli) -> None:
    assert "No workspaces" in cli("workspaces").stdout
    assert cli("workspaces", "--json").stdout == "[]\n"


def test_list_and_show_tell_what_is_there(cli: Cli, one: Workspace) -> None:
    """W2: visible in the CLI."""
    head, row = cli("workspaces").stdout.splitlines()
    assert head.split() == ["WORKSPACE", "STATE", "USED", "SIZE", "BRANCH", "DIRECTORY"]
    assert row.split()[:2] == [short(one.id), "active"]
    shown = cli("workspaces", "show", "task-1").stdout
    assert "1 commit, 2 files changed, 1 of them not committed" in shown
    told = json.loads(cli("workspaces", "show", one.branch or "", "--json").stdout)
    assert told["work"]["files"] == [["A", "b"], ["A", "loose"]]
    assert "No workspace is called" in cli("workspaces", "show", "x", code=2).stderr


def test_a_diff_is_safe_to_print_and_a_patch_is_exact(cli: Cli, one: Workspace) -> None:
    assert "\x1b[31m" not in cli("workspaces", "diff", "task-1").stdout
    assert "2 files changed" in cli("workspaces", "diff", "task-1", "--stat").stdout
    cli("workspaces", "export", "task-1", "-o", "../work.patch")
    plain_git(cli.cwd, "apply", "../work.patch")
    assert (cli.cwd / "loose").read_text() == "\x1b[31mred"
    assert "bee" in cli("workspaces", "export", "task-1").stdout


def test_merging_takes_the_work_over_and_a_conflict_is_settled(cli: Cli, one: Workspace) -> None:
    """W8: a conflict changes nothing."""
    (cli.cwd / "loose").write_text("mine")
    refused = cli("workspaces", "merge", "task-1", code=1).stderr
    assert "Both sides changed loose" in refused
    assert status(cli.cwd) == ["?? loose"]
    assert "Merged" in cli("workspaces", "merge", "task-1", "--take", "ours").stdout
    assert plain_git(cli.cwd, "log", "-1", "--format=%s") == "agent's commit"
    assert (cli.cwd / "loose").read_text() == "mine"


def test_cleaning_tells_first_and_loses_nothing(cli: Cli, one: Workspace) -> None:
    """W8: what was not committed has a saved ref."""
    plan = cli("workspaces", "clean", "--dry-run", "--idle-days", "99999").stdout
    assert plan == f"{short(one.id)} stays: in use\n"
    cli("workspaces", "archive", "task-1")
    assert "would go" in cli("workspaces", "clean", "--dry-run").stdout
    (told,) = json.loads(cli("workspaces", "clean", "--json").stdout)
    assert (told["removes"], told["reason"]) == (True, "archived")
    assert plain_git(cli.cwd, "show", f"{told['savedRef']}:loose") == "\x1b[31mred"
    assert cli("workspaces", "--json").stdout == "[]\n"


def test_there_is_nothing_to_resolve_before_a_run(cli: Cli, one: Workspace) -> None:
    assert "No run has worked in it" in cli("workspaces", "resolve", "task-1", code=1).stderr
