"""A run of an agent in this process: the server's admission, a driver that is not its worker."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from binderclip.contract.agent import Agent
from binderclip.contract.errors import ConfigError, Conflict
from binderclip.contract.ids import short
from binderclip.plugins.registry import load_adapter
from binderclip.runs.here import detach_here, prepare_here, run_here
from binderclip.runs.lending import Lent
from binderclip.runs.recover import take_over
from binderclip.runs.survey import Survey
from binderclip.runs.waking import Ask
from binderclip.store.agents import Agents
from binderclip.store.fileview import is_driven
from tests.runs.company import Scene
from tests.runs.conftest import Heard

LENT = Lent(env={"PATH": os.environ["PATH"]})


def echo(scene: Scene, tmp_path: Path) -> Agent:
    config = {"command": "/bin/echo", "args": ["hello"], "cwd": str(tmp_path)}
    return scene.agent(adapter_config=config)


def change(scene: Scene, agent: Agent, **fields: Any) -> None:
    with scene.db.writing() as connection:
        Agents(connection).change(agent.id, agent.updated_at, **fields)


def test_a_run_here_is_shown_kept_and_settled(scene: Scene, tmp_path: Path) -> None:
    """Design 6: `run --agent` drives its run itself, with the same admission as the server."""
    agent, task = echo(scene, tmp_path), scene.task()
    ask = Ask(agent.id, task.id, prompt="go")
    drive = prepare_here(scene.db, ask, load_adapter, LENT, scene.clock)
    assert scene.status(drive.run_id) == "starting"
    assert is_driven(scene.db.home, drive.run_id)
    assert Survey(scene.db).look(set()) == []
    heard = Heard()
    outcome = run_here(scene.db, drive, heard)
    assert (outcome.state, heard.texts()) == ("succeeded", ["hello"])
    view = scene.store.get(drive.run_id)
    assert (view.status, view.task_id, view.attempts) == ("succeeded", task.id, 1)
    assert not is_driven(scene.db.home, drive.run_id)


def test_a_run_that_would_have_to_wait_is_refused_and_leaves_nothing(
    scene: Scene, tmp_path: Path
) -> None:
    """R2: two runs never work on the same task at once."""
    agent, task = echo(scene, tmp_path), scene.task()
    first = scene.wake(agent, task).run_id
    assert scene.admit() == [first]
    with pytest.raises(Conflict, match="another run of its task") as caught:
        prepare_here(scene.db, Ask(agent.id, task.id), load_adapter, LENT, scene.clock)
    assert caught.value.code == "must_wait"
    assert f"binderclip watch {short(first)}" in (caught.value.hint or "")
    assert [view.id for view in scene.store.list()] == [first]
    assert list(scene.db.home.run_ids()) == []


def test_a_run_here_takes_along_what_waited(scene: Scene, tmp_path: Path) -> None:
    agent, task = echo(scene, tmp_path), scene.task()
    waiting = scene.wake(agent, task, reason="assignment").run_id
    drive = prepare_here(scene.db, Ask(agent.id, task.id), load_adapter, LENT, scene.clock)
    assert drive.run_id == waiting
    assert drive.order.wake_reasons == ("assignment", "manual")
    assert run_here(scene.db, drive, Heard()).state == "succeeded"


def test_a_paused_agent_says_how_to_resume_it(scene: Scene, tmp_path: Path) -> None:
    agent = echo(scene, tmp_path)
    change(scene, agent, status="paused", paused_reason="too dear")
    with pytest.raises(Conflict, match="paused: too dear") as caught:
        prepare_here(scene.db, Ask(agent.id), load_adapter, LENT, scene.clock)
    assert "agents resume" in (caught.value.hint or "")


def test_a_run_that_cannot_be_prepared_is_over_with_its_reason(scene: Scene) -> None:
    agent = scene.agent()
    change(scene, agent, adapter_config={"command": 5})
    with pytest.raises(ConfigError):
        prepare_here(scene.db, Ask(agent.id), load_adapter, LENT, scene.clock)
    (view,) = scene.store.list()
    assert view.status == "failed"
    assert not is_driven(scene.db.home, view.id)


def test_a_detached_run_is_left_to_a_worker(scene: Scene, tmp_path: Path) -> None:
    agent = echo(scene, tmp_path)
    drive = prepare_here(scene.db, Ask(agent.id), load_adapter, LENT, scene.clock)
    assert detach_here(scene.db, drive, Heard()) is None
    assert [found.need for found in Survey(scene.db).look(set())] == ["take_over"]
    assert take_over(scene.db.home, drive.run_id, load_adapter).state == "succeeded"
