"""`run --agent` of an agent on another machine: it reaches the API, or the run says why not."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from binderclip.cli.asking import Api
from tests.cli.conftest import Cli
from tests.cli.test_environments import fields
from tests.server.conftest import serving
from tests.server.test_guarded import CLI
from tests.workspaces.conftest import commit, plain_git
from tests.workspaces.sshd import Sshd, running


@pytest.fixture
def sshd() -> Iterator[Sshd]:
    with running() as daemon:
        yield daemon


@pytest.fixture
def far(cli: Cli, sshd: Sshd, tmp_path: Path) -> str:
    """An agent whose program, on the other machine, asks the API who it is; its id."""
    plain_git(cli.cwd, "init", "-q", "-b", "main")
    commit(cli.cwd, "first", a="one\n")
    program = tmp_path / "bin" / "claude"
    program.parent.mkdir()
    program.write_text(CLI.format(python=sys.executable))
    program.chmod(0o755)
    words = [*fields(sshd, tmp_path / "remote"), "--config", f'path=["{program.parent}"]']
    cli("environments", "create", "box", *words)
    cli("agents", "create", "Far", "--adapter", "claude_local", "-c", f"cwd={cli.cwd}")
    with Api(cli.home) as api:
        (place,) = api.get("/api/environments")["items"]
        (agent,) = api.get("/api/agents")["items"]
        changed = api.patch(f"/api/agents/{agent['id']}", {"environmentId": place["id"]})
    return str(changed["id"])


@pytest.mark.parametrize("server", [False, True])
def test_an_agent_elsewhere_reaches_the_api(cli: Cli, far: str, server: bool) -> None:
    """W6: through the server's listener if there is one, else through one of this process."""
    around: Any = serving(cli.home.path) if server else nullcontext()
    with around:
        told = cli("run", "--agent", "Far", "look around")
    assert json.loads((cli.cwd / "answer").read_text())["id"] == far
    assert "cannot reach the API" not in told.stderr + told.stdout
    assert (cli.home.path / "guarded.json").exists() == server


def test_a_run_that_is_left_without_a_server_says_that_there_is_no_api(cli: Cli, far: str) -> None:
    left = cli("run", "--agent", "Far", "--detach", "look around")
    assert "cannot reach the API" in left.stderr + left.stdout
    cli("watch", left.stdout.split()[0], code=None)
    assert "cannot reach the API" in cli("workspaces", "show", "heartbeat").stdout
