"""Workspaces in the life of a run: worktrees, operations, gates, and another machine over ssh."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from binderclip.contract.company import Environment
from binderclip.contract.errors import Conflict, RestoreConflict
from binderclip.contract.operation import WorkspaceOperation
from binderclip.contract.run import RunView
from binderclip.contract.task import Interaction, Task
from binderclip.runs.places import clean_workspaces, finalize_again, find_workplace
from binderclip.runs.workplace import all_workspaces
from binderclip.store.agents import Agents
from binderclip.store.database import Database
from binderclip.store.environments import Environments
from binderclip.store.home import Home
from binderclip.store.operations import Operations
from binderclip.store.tasks import Tasks
from binderclip.workspaces import holding
from binderclip.workspaces.cleaning import Policy
from tests.faults.conftest import until
from tests.runs.test_worker import Shop
from tests.workspaces.conftest import commit, plain_git, status
from tests.workspaces.sshd import Sshd, running


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    directory = tmp_path / "project"
    directory.mkdir()
    plain_git(directory, "init", "-q", "-b", "main")
    commit(directory, "first", a="one\ntwo\nthree\n")
    return directory


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    place = tmp_path / "place"
    place.mkdir()
    with Database.open(Home(tmp_path / "home")) as database:
        shop = Shop(database, place)
        shop.open()
        yield shop
        while shop.workers:
            shop.close(drain=True)


@pytest.fixture
def sshd() -> Iterator[Sshd]:
    with running() as daemon:
        yield daemon


def python(code: str, **more: Any) -> dict[str, Any]:
    return {"command": sys.executable, "args": ["-c", code], **more}


def operations(shop: Shop, run_id: str) -> list[WorkspaceOperation]:
    with shop.db.reading() as connection:
        return Operations(connection).of_run(run_id)


def told(shop: Shop, run_id: str) -> list[tuple[str, str]]:
    return [(one.kind, one.status) for one in operations(shop, run_id)]


def worked(shop: Shop, task: Task) -> RunView:
    """The run that the task's assignment woke, once it is over."""
    (run_id,) = [view.id for view in shop.store.list(limit=100) if view.task_id == task.id]
    return shop.ended(run_id)


DONE = [
    ("worktree_prepare", "succeeded"),
    ("execute", "succeeded"),
    ("workspace_finalize", "succeeded"),
]


def test_a_task_works_in_a_worktree_and_every_step_is_a_row(shop: Shop, repository: Path) -> None:
    """W1, W2: the person's checkout is not touched."""
    agent = shop.agent(adapter_config=python("open('made', 'w').write('x')", cwd=str(repository)))
    task = shop.task("Fix the ü bug", assignee_agent_id=agent.id)
    view = worked(shop, task)
    assert view.status == "succeeded", view.error_message
    assert told(shop, view.id) == DONE
    (one,) = all_workspaces(shop.db).list()
    assert (one.branch, view.cwd) == ("binderclip/t-1-fix-the-ü-bug", one.cwd)
    assert (Path(one.cwd) / "made").read_text() == "x"
    assert status(repository) == []
    again = shop.do(agent, task=task)
    assert again.cwd == one.cwd


def test_a_task_says_how_its_worktree_is_made(shop: Shop, repository: Path) -> None:
    """W1: branch, base and uncommitted files are the task's to choose, for its first run."""
    old = plain_git(repository, "rev-parse", "HEAD")
    plain_git(repository, "tag", "v1")
    commit(repository, "second", a="newer\n")
    (repository / "loose").write_text("not committed")
    agent = shop.agent(adapter_config=python("", cwd=str(repository)))
    how: dict[str, Any] = {"branch_template": "fix/{task}", "base_ref": "v1"}
    based = shop.task("Old", assignee_agent_id=agent.id, **how)
    assert worked(shop, based).status == "succeeded"
    taking = shop.task("Loose", assignee_agent_id=agent.id, with_dirty_files=True)
    assert worked(shop, taking).status == "succeeded"
    both = shop.task("Both", assignee_agent_id=agent.id, base_ref="v1", with_dirty_files=True)
    assert "of the same commit" in (worked(shop, both).error_message or "")
    made = {one.task_key: one for one in all_workspaces(shop.db).list()}
    assert (made[based.id].branch, made[based.id].base) == (
        f"fix/{based.identifier.lower()}-old",
        old,
    )
    assert not (Path(made[based.id].tree) / "loose").exists()
    assert (Path(made[taking.id].tree) / "loose").read_text() == "not committed"


@pytest.mark.parametrize("case", ["cwd", "no repository", "no task"])
def test_other_runs_work_in_the_directory_itself(
    shop: Shop, repository: Path, tmp_path: Path, case: str
) -> None:
    """W1: turned off, not in a repository, or no task; none of them is gated."""
    directory = tmp_path / "place" if case == "no repository" else repository
    fields: dict[str, Any] = {"workspace": "cwd"} if case == "cwd" else {}
    config = python("open('made', 'w').write('x')", cwd=str(directory))
    agent = shop.agent(adapter_config=config, **fields)
    if case == "no task":
        view = shop.do(agent)
    else:
        view = worked(shop, shop.task("work", assignee_agent_id=agent.id))
    assert (view.status, told(shop, view.id)) == ("succeeded", [])
    assert (directory / "made").exists()


def test_a_failed_agent_has_its_workspace_finalized_too(shop: Shop, repository: Path) -> None:
    """W2: a finalize row is written whenever a run ends."""
    agent = shop.agent(adapter_config=python("raise SystemExit(3)", cwd=str(repository)))
    view = worked(shop, shop.task("work", assignee_agent_id=agent.id))
    assert view.status == "failed"
    assert told(shop, view.id) == [DONE[0], ("execute", "failed"), DONE[2]]


def test_a_worktree_that_was_destroyed_fails_the_run(shop: Shop, repository: Path) -> None:
    """W2: a failure is the run's, not a line in a log."""
    code = "import os, shutil; shutil.rmtree(os.getcwd())"
    agent = shop.agent(adapter_config=python(code, cwd=str(repository)))
    view = worked(shop, shop.task("work", assignee_agent_id=agent.id))
    assert (view.status, view.error_code) == ("failed", "workspace_failed")
    assert told(shop, view.id)[-1] == ("workspace_finalize", "failed")


def test_a_workspace_that_somebody_holds_fails_the_finalize_and_can_be_retried(
    shop: Shop, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """W2: also such a failure is a row; nothing interleaves with whoever has the workspace."""
    monkeypatch.setattr(holding, "PATIENCE_SEC", 0.0)
    code = "import os, time\nwhile not os.path.exists('go'): time.sleep(0.02)"
    agent = shop.agent(adapter_config=python(code, cwd=str(repository)))
    task = shop.task("Wait", assignee_agent_id=agent.id)
    workspaces = all_workspaces(shop.db)
    until(lambda: [one.state for one in workspaces.list()] == ["active"], "the worktree is there")
    (one,) = workspaces.list()
    with workspaces.held(one.id, "looking at it"):
        (Path(one.cwd) / "go").touch()
        view = worked(shop, task)
    assert (view.status, view.error_code) == ("failed", "workspace_failed")
    assert "looking at it" in (view.error_message or "")
    assert told(shop, view.id)[-1] == ("workspace_finalize", "failed")
    assert finalize_again(shop.desk, view.id).status == "succeeded"


def test_a_run_that_cannot_be_prepared_further_gates_nothing(shop: Shop, repository: Path) -> None:
    """W2: the workspace was made, so it is finalized."""
    agent = shop.agent(adapter_config=python("pass", cwd=str(repository)))
    shop.close()
    task = shop.task("work", assignee_agent_id=agent.id)
    wrong = {"command": ["not", "a", "text"], "cwd": str(repository)}
    with shop.db.writing() as connection:
        Agents(connection).change(agent.id, "now", adapter_config=wrong)
    shop.open()
    view = worked(shop, task)
    assert view.status == "failed"
    assert told(shop, view.id) == [DONE[0], ("execute", "failed"), DONE[2]]


def ssh_environment(shop: Shop, sshd: Sshd, root: Path, **more: Any) -> str:
    config = {
        "host": "127.0.0.1",
        "port": sshd.port,
        "identityFile": str(sshd.directory / "user"),
        "knownHostsFile": str(sshd.directory / "known"),
        "remoteRoot": str(root),
        "control": str(sshd.directory),
        **more,
    }
    environment = Environment(id="", company_id="local", name="far", kind="ssh", config=config)
    with shop.db.writing() as connection:
        return Environments(connection).create(environment, "now").id


GIT = "import subprocess; git = lambda *w: subprocess.run(['git', *w], check=True)\n"


def test_an_agent_on_another_machine_brings_its_work_home(
    shop: Shop, sshd: Sshd, repository: Path, tmp_path: Path
) -> None:
    """W6: a commit made only there lands here; no remote before, during and after."""
    environment = ssh_environment(shop, sshd, tmp_path / "far")
    code = GIT + (
        "import os; open('c', 'w').write('sea'); git('add', 'c'); git('commit', '-qm', 'there')\n"
        "open('loose', 'w').write(os.getcwd()); git('remote')\n"
    )
    agent = shop.agent(adapter_config=python(code, cwd=str(repository)), environment_id=environment)
    view = worked(shop, shop.task("work", assignee_agent_id=agent.id))
    assert view.status == "succeeded", view.error_message
    assert told(shop, view.id) == DONE
    (one,) = all_workspaces(shop.db).list()
    tree = Path(one.tree)
    assert plain_git(tree, "log", "-1", "--format=%s") == "there"
    assert (tree / "loose").read_text().startswith(str(tmp_path / "far" / "copies"))
    assert status(tree) == ["?? loose"]
    assert plain_git(repository, "remote") == ""
    assert (one.away, one.remote_dir is not None) == (False, True)
    nothing = clean_workspaces(shop.desk, Policy())
    assert [verdict.removes for verdict in nothing] == [False]
    all_workspaces(shop.db).change(one, state="archived")
    (gone,) = clean_workspaces(shop.desk, Policy())
    assert (gone.removes, gone.reason) == (True, "archived")
    assert plain_git(repository, "show", f"{gone.saved}:c") == "sea"
    assert list((tmp_path / "far" / "copies").iterdir()) == []


def test_the_gate_opens_once_a_failed_restore_was_tried_again(
    shop: Shop, sshd: Sshd, repository: Path, tmp_path: Path
) -> None:
    """W3, W4: A blocks B; A's restore fails; B sleeps; the retry wakes B, once."""
    environment = ssh_environment(shop, sshd, tmp_path / "far")
    code = "import os, time\nopen('a', 'w').write('theirs')\n" + (
        f"open({str(tmp_path / 'begun')!r}, 'w')\n"
        f"while not os.path.exists({str(tmp_path / 'go')!r}): time.sleep(0.02)\n"
    )
    first = shop.agent(adapter_config=python(code, cwd=str(repository)), environment_id=environment)
    second = shop.agent(adapter_config=python("pass", cwd=str(tmp_path / "place")))
    a = shop.task("A", assignee_agent_id=first.id)
    b = shop.task("B", assignee_agent_id=second.id, blocked_by=(a.id,))
    while not (tmp_path / "begun").exists():
        time.sleep(0.02)
    (one,) = all_workspaces(shop.db).list()
    (Path(one.tree) / "a").write_text("ours")
    (run,) = [view for view in shop.store.list(limit=10) if view.task_id == a.id]
    asked = shop.desk.ask(
        Interaction(
            id="", task_id=a.id, run_id=run.id, agent_id=first.id, kind="request_confirmation"
        )
    )
    with pytest.raises(Conflict) as pending:
        shop.desk.answer(asked.id, "accepted", "person")
    assert pending.value.code == "workspace_finalize_pending"
    shop.desk.change_task(a.id, "person", status="done")
    (tmp_path / "go").touch()
    view = shop.ended(run.id)
    assert (view.status, view.error_code) == ("failed", "restore_conflict")
    assert runs_of(shop, b) == []
    with pytest.raises(Conflict) as failed:
        shop.desk.answer(asked.id, "accepted", "person")
    assert failed.value.code == "workspace_finalize_failed"
    with pytest.raises(RestoreConflict):
        finalize_again(shop.desk, run.id)
    assert (Path(one.tree) / "a").read_text() == "ours"
    finalize_again(shop.desk, run.id, "theirs")
    assert (Path(one.tree) / "a").read_text() == "theirs"
    assert worked(shop, b).status == "succeeded"
    assert shop.desk.answer(asked.id, "accepted", "person").status == "accepted"
    assert len(runs_of(shop, b)) == 1


def test_a_network_that_fails_during_the_restore_is_waited_for(
    shop: Shop, sshd: Sshd, repository: Path, tmp_path: Path
) -> None:
    """W6: the connection is cut as the agent ends, and comes back a moment later."""
    environment = ssh_environment(shop, sshd, tmp_path / "far")
    code = "import os, time\nopen('made', 'w').write('x')\n" + (
        f"open({str(tmp_path / 'begun')!r}, 'w')\n"
        f"while not os.path.exists({str(tmp_path / 'go')!r}): time.sleep(0.02)\n"
    )
    agent = shop.agent(adapter_config=python(code, cwd=str(repository)), environment_id=environment)
    task = shop.task("work", assignee_agent_id=agent.id)
    while not (tmp_path / "begun").exists():
        time.sleep(0.02)
    sshd.target(tmp_path).close()
    sshd.cut()
    sshd.stop()
    (tmp_path / "go").touch()
    sshd.start()
    view = worked(shop, task)
    assert view.status == "succeeded", view.error_message
    (one,) = all_workspaces(shop.db).list()
    assert (Path(one.tree) / "made").read_text() == "x"


def runs_of(shop: Shop, task: Task) -> list[str]:
    return [view.id for view in shop.store.list(limit=100) if view.task_id == task.id]


def test_a_finalize_that_a_crash_interrupted_is_finished_by_the_next_worker(
    shop: Shop, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """W2: recovery writes the row that is missing, and the run ends as it should."""

    def killed(*_: object) -> None:
        raise SystemExit

    with monkeypatch.context() as patched:
        patched.setattr("binderclip.runs.workplace.Workplace._restore", killed)
        patched.setattr("threading.excepthook", lambda _args: None)
        agent = shop.agent(adapter_config=python("pass", cwd=str(repository)))
        task = shop.task("work", assignee_agent_id=agent.id)
        while not any(s == "running" and k == "workspace_finalize" for k, s in of_task(shop, task)):
            time.sleep(0.02)
        shop.close()
    shop.open()
    view = worked(shop, task)
    assert view.status == "succeeded", view.error_message
    assert of_task(shop, task)[-2:] == [("workspace_finalize", "failed"), DONE[2]]
    place = find_workplace(shop.desk, view.id)
    assert place is not None
    assert place.cwd == view.cwd


def of_task(shop: Shop, task: Task) -> list[tuple[str, str]]:
    with shop.db.reading() as connection:
        return [(one.kind, one.status) for one in Operations(connection).of_task(task.id)]


def test_a_machine_that_lacks_the_program_blocks_the_run(
    shop: Shop, sshd: Sshd, repository: Path, tmp_path: Path
) -> None:
    """E4: the checks run there; a failed preparation is told and gates nothing."""
    environment = ssh_environment(shop, sshd, tmp_path / "far", python="no-such-python")
    agent = shop.agent(
        adapter_config=python("pass", cwd=str(repository)), environment_id=environment
    )
    view = worked(shop, shop.task("work", assignee_agent_id=agent.id))
    assert view.status == "failed"
    assert view.error_code == "workspace_failed"
    assert [status for _, status in told(shop, view.id)] == ["failed", "succeeded"]


def test_a_checkout_that_lives_over_there_is_worked_in_as_it_is(
    shop: Shop, sshd: Sshd, tmp_path: Path
) -> None:
    """The in-place mode: nothing travels."""
    there = tmp_path / "checkout"
    there.mkdir()
    environment = ssh_environment(shop, sshd, tmp_path / "far", inPlace=str(there))
    agent = shop.agent(adapter_config=python("open('made', 'w')"), environment_id=environment)
    view = shop.do(agent)
    assert view.status == "succeeded", view.error_message
    assert [path.name for path in there.iterdir()] == ["made"]
    assert all_workspaces(shop.db).list() == []


def test_a_session_of_another_machine_is_not_resumed(
    shop: Shop, repository: Path, sshd: Sshd, tmp_path: Path
) -> None:
    """S3: the run says so; over there the next one goes on."""
    config = {"place": str(shop.place), "cwd": str(repository)}
    agent = shop.agent(adapter_type="speaker", adapter_config=config)
    task = shop.task("work", assignee_agent_id=agent.id)
    assert worked(shop, task).session_reason == "no earlier session"
    place = ssh_environment(shop, sshd, tmp_path / "remote")
    with shop.db.writing() as connection:
        Tasks(connection).change(task.id, "now", environment_id=place)
    moved = shop.do(agent, task=task)
    assert moved.status == "succeeded", moved.error_message
    assert "the earlier session lives on local, this run on ssh:" in (moved.session_reason or "")
    again = shop.do(agent, task=task)
    assert again.session_reason == f"continues the session of run {moved.id[-8:]}"
