"""Workspaces that nobody needs go by themselves, and nothing that is only there."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from binderclip.contract.errors import ConfigError
from binderclip.runs.control import Control
from binderclip.runs.places import clean_workspaces
from binderclip.runs.tidying import DAYS, GIB, Tidying, policy_from
from binderclip.runs.workplace import all_workspaces
from binderclip.workspaces.cleaning import Policy
from tests.runs.test_worker import Shop
from tests.runs.test_workplace import python, repository, shop, worked
from tests.workspaces.conftest import plain_git

__all__ = ["repository", "shop"]
EAGER = Policy(idle_days=0)


def left_behind(shop: Shop, repository: Path) -> None:
    """A workspace of a finished run, with a file that is nowhere else."""
    code = "open('made', 'w').write('x')"
    agent = shop.agent(adapter_config=python(code, cwd=str(repository)))
    worked(shop, shop.task("work", assignee_agent_id=agent.id))


def test_what_nobody_needs_goes_and_its_work_is_kept(shop: Shop, repository: Path) -> None:
    """W8: a ref has what was not committed."""
    left_behind(shop, repository)
    (one,) = all_workspaces(shop.db).list()
    tidying = Tidying(Control(shop.db), EAGER, threading.Event(), first_sec=0)
    tidying.begin_if_due()
    tidying.wait()
    assert all_workspaces(shop.db).list() == []
    saved = plain_git(repository, "for-each-ref", "--format=%(refname)", "refs/binderclip/saved")
    assert one.id in saved
    assert plain_git(repository, "show", f"{saved.splitlines()[0]}:made") == "x"


@pytest.mark.parametrize("case", ["not due", "turned off", "leaving"])
def test_it_waits_for_its_time_and_ends_when_told(shop: Shop, repository: Path, case: str) -> None:
    left_behind(shop, repository)
    leaving = threading.Event()
    policy = None if case == "turned off" else EAGER
    tidying = Tidying(Control(shop.db), policy, leaving, first_sec=3600 if case == "not due" else 0)
    if case == "leaving":
        leaving.set()
    tidying.begin_if_due()
    tidying.wait()
    assert len(all_workspaces(shop.db).list()) == 1


def test_a_removal_that_is_called_off_leaves_everything(shop: Shop, repository: Path) -> None:
    left_behind(shop, repository)
    (verdict,) = clean_workspaces(Control(shop.db), EAGER, going_on=lambda: False)
    assert (verdict.removes, Path(verdict.workspace.tree).is_dir()) == (False, True)


def test_a_workspace_stays_while_a_run_of_its_task_waits(shop: Shop, repository: Path) -> None:
    """W8: the run has not put its name on it yet."""
    code = "open('made', 'w').write('x')"
    agent = shop.agent(adapter_config=python(code, cwd=str(repository)))
    task = shop.task("work", assignee_agent_id=agent.id)
    worked(shop, task)
    shop.close()
    shop.wake(agent, task=task)
    (verdict,) = clean_workspaces(Control(shop.db), EAGER)
    assert (verdict.removes, verdict.reason) == (False, "a run works in it")
    shop.open()


def test_the_environment_sets_the_policy() -> None:
    assert policy_from({}) == Policy()
    assert policy_from({DAYS: "0"}) is None
    assert policy_from({DAYS: "7", GIB: "2"}) == Policy(7.0, 2 << 30)
    with pytest.raises(ConfigError, match=DAYS):
        policy_from({DAYS: "soon"})
