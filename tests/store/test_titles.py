"""What lists call a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from binderclip.contract.ids import new_id
from binderclip.contract.run import AgentRef, RunOrder
from binderclip.store.home import Home
from binderclip.store.runfile import write_order
from binderclip.store.titles import title_in, title_of

COMMAND = {"command": "make", "args": ["all", "NAME=a b"]}


@pytest.mark.parametrize(
    ("prompt", "config", "title"),
    [
        ("\n Fix it \nplease", COMMAND, "Fix it"),
        (None, COMMAND, "make all 'NAME=a b'"),
        (" \n", {"command": "true", "args": []}, "true"),
        (None, {"command": "/opt/agent"}, None),
        (None, {"command": 3, "args": []}, None),
        ("x" * 900, {}, "x" * 200),
    ],
)
def test_the_prompt_counts_before_the_command_line(
    tmp_path: Path, prompt: str | None, config: dict[str, Any], title: str | None
) -> None:
    """U4: the same by a run's row and by its files."""
    home = Home(tmp_path / "home").ensure()
    agent = AgentRef(id="cli", company_id="local", name="cli", adapter_type="process")
    order = RunOrder(
        id=new_id(),
        adapter_type="process",
        agent=agent,
        cwd="/",
        created_at="2026-01-01T00:00:00.000Z",
        prompt=prompt,
        config=config,
    )
    write_order(home, order)
    assert title_of(order) == title_in(str(home.run_dir(order.id)), prompt) == title


def test_a_run_of_a_task_is_called_like_the_task(tmp_path: Path) -> None:
    """U4: not like the command line of its agent."""
    home = Home(tmp_path / "home").ensure()
    order = RunOrder(
        id=new_id(),
        adapter_type="process",
        agent=AgentRef(id="a", company_id="local", name="Ada", adapter_type="process"),
        cwd="/",
        created_at="2026-01-01T00:00:00.000Z",
        config=COMMAND,
        context={"wakeReason": "assignment", "task": {"identifier": "T-1", "title": "Mend it"}},
    )
    write_order(home, order)
    assert title_of(order) == title_in(str(home.run_dir(order.id)), None) == "Mend it"


def test_a_run_whose_files_are_gone_has_no_title(tmp_path: Path) -> None:
    assert title_in(str(tmp_path), None) is None
