"""A first-party Paperclip adapter, unchanged, drives the real Codex; its result equals ours."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from binderclip.contract.entry import Assistant, ToolCall
from binderclip.plugins.records import PluginStore
from binderclip.plugins.service import Plugins
from binderclip.sdk.testing.scripted_model import Shell, Turn, Usage
from tests.live.agent import Agent, Ran, missing
from tests.live.runtimes import CODEX, KEY

SPEC = "npm:@paperclipai/adapter-codex-local@2026.824.1"
CACHE = Path(__file__).resolve().parents[2] / ".cache" / "npm-plugins"
TURNS = (
    Turn(
        text="Let me look.",
        calls=(Shell("echo hello from the shell"),),
        usage=Usage(input=1000, output=60, cache_read=700),
    ),
    Turn(text="Done: I looked around.", usage=Usage(input=50, output=20, cache_read=1700)),
)

pytestmark = [pytest.mark.live, pytest.mark.timeout(400), pytest.mark.xdist_group("npm")]


@pytest.fixture(scope="module")
def installed() -> Path:
    """A data directory with the package, made once: it unpacks to more than 400 MB."""
    home = CACHE / "installed"
    CACHE.mkdir(parents=True, exist_ok=True)
    # Another test process may want it at the same moment.
    with (CACHE / "installed.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        plugins = Plugins(PluginStore(home))
        if plugins.store.find("codex_local") is None:
            os.environ["NPM_CONFIG_CACHE"] = str(CACHE)
            plugins.install(SPEC, override=True, builtin_parser=True)
    return home


@pytest.fixture
def npm(installed: Path, tmp_path: Path) -> Iterator[Agent]:
    """Codex by the npm adapter, in a data directory of its own."""
    if problem := missing(CODEX):
        pytest.fail(problem)
    agent = Agent(CODEX, tmp_path / "npm")
    data = tmp_path / "npm" / "data"
    data.mkdir()
    (data / "plugins").symlink_to(installed / "plugins")
    shutil.copy(installed / "adapter-plugins.json", data)
    yield agent
    agent.stop()


def settings(agent: Agent) -> list[str]:
    env = {"CODEX_HOME": str(agent.home / ".codex"), "OPENAI_API_KEY": KEY}
    return ["--config", f"env={json.dumps(env)}", "--config", "engine=cli"]


def test_the_result_equals_that_of_our_own_adapter(npm: Agent, tmp_path: Path) -> None:
    """P1: session, usage, text and transcript, as far as the foreign contract has words."""
    own = Agent(CODEX, tmp_path / "own")
    outcomes: list[Ran] = []
    for agent, words in ((own, []), (npm, settings(npm))):
        with agent.model(*TURNS) as model:
            outcomes.append(agent.run(model, *words, "look around"))
    ours, theirs = outcomes
    assert (ours.code, theirs.code) == (0, 0), theirs
    assert theirs.result["summary"] == ours.result["summary"] == "Done: I looked around."
    assert ours.usage is not None
    assert theirs.usage is not None
    for bucket in ("inputTokens", "cachedInputTokens", "outputTokens"):
        assert theirs.usage[bucket] == ours.usage[bucket], (ours.usage, theirs.usage)
    assert theirs.result["sessionParams"]["cwd"] == str(npm.work)
    assert theirs.result["sessionId"] == theirs.result["sessionParams"]["sessionId"]
    kinds = [type(entry).__name__ for entry in ours.entries]
    assert [type(entry).__name__ for entry in theirs.entries] == kinds
    assert [entry.text for entry in theirs.of(Assistant)] == [e.text for e in ours.of(Assistant)]
    assert theirs.of(ToolCall)[0].input == ours.of(ToolCall)[0].input
    own.stop()


def test_a_session_is_resumed_through_the_npm_adapter(npm: Agent) -> None:
    """S1: the parameters that its codec wrote come back to it."""
    with npm.model(Turn(text="First."), Turn(text="Second.")) as model:
        first = npm.run(model, *settings(npm), "one")
        second = npm.run(model, *settings(npm), "--continue", "two")
    assert (first.code, second.code) == (0, 0), second
    assert second.result["sessionId"] == first.result["sessionId"]
    assert second.result["summary"] == "Second."
