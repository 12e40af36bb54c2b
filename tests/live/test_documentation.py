"""What the documentation tells people to type works with a real CLI in a fresh home."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.live.agent import Agent
from tests.live.install import search_path
from tests.live.runtimes import CLAUDE

pytestmark = [
    pytest.mark.live,
    pytest.mark.parametrize("agent", [CLAUDE], ids=["claude"], indirect=True),
]
PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "test-without-an-account.md"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def test_claude_runs_from_the_words_of_the_page_alone(agent: Agent) -> None:
    text = PAGE.read_text("utf-8")
    script, commands = (
        re.search(rf"```{kind}\n(.*?)```", text, re.S)[1]  # type: ignore[index]
        for kind in ("json", "bash")
    )
    (agent.work / "script.json").write_text(script)
    agent.home.mkdir()
    typed = f"trap 'kill %1; wait' EXIT\n{commands.replace('8787', str(free_port()))}"
    done = subprocess.run(
        ["bash", "-ec", typed],
        cwd=agent.work,
        env={
            "PATH": f"{Path(sys.executable).parent}:{search_path('claude')}",
            "HOME": str(agent.home),
            "BINDERCLIP_HOME": str(agent.folder / "data"),
        },
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Done." in done.stdout and "succeeded" in done.stdout
    assert (agent.work / "hello.txt").read_text() == "hello\n"
