"""The history of a plugin's run names the plugin's own runtime and version (N1, N3, N4)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from binderclip.contract.event import CompleteRun, InitializeRuntime, StopRunByError
from binderclip.jobs import parse_external_output
from binderclip.jobs.history import RunHistory
from binderclip.jobs.runtimes import adapter_of, is_structured
from binderclip.jobs.store import JobStore
from binderclip.plugins.adapter import _processes, end_process
from binderclip.plugins.records import PluginStore
from binderclip.plugins.service import Plugins
from binderclip.store.home import Home
from binderclip.store.runfile import read_order
from tests.plugins.conftest import ECHO, Run, write_npm

Start = Callable[..., str]
NAMED = ECHO.replace(
    'version="{version}")', 'version="{version}", runtime="echo-engine", structured=False)'
)


@pytest.fixture
def plugins(home: Home, monkeypatch: pytest.MonkeyPatch) -> Iterator[Plugins]:
    monkeypatch.setenv("BINDERCLIP_HOME", str(home.path))
    yield Plugins(PluginStore(home.path))
    for directory in list(_processes):
        end_process(Path(directory))


@pytest.fixture
def ran(plugins: Plugins, home: Home, tmp_path: Path) -> Start:
    """Run an installed adapter to its end; the run's id."""

    def start(type: str, **config: Any) -> str:
        return Run(plugins.load(type), home.path, tmp_path, "go", **config)().drive.run_id

    return start


def python_plugin(folder: Path, version: str = "7") -> str:
    path = folder / "echo.py"
    path.write_text(NAMED.replace("{type}", "echo_agent").replace("{version}", version))
    return str(path)


def test_a_python_plugins_run_names_its_runtime_and_version(
    home: Home, plugins: Plugins, ran: Start, tmp_path: Path
) -> None:
    """N3, N4: name and version are the plugin's, in events and checkpoint."""
    plugins.install(python_plugin(tmp_path))
    run_id = ran("echo_agent")
    history = RunHistory(home, run_id)
    begin, *_, end = history.events()
    assert isinstance(begin, InitializeRuntime) and isinstance(end, CompleteRun)
    assert (begin.runtime_version, begin.model) == ("external:echo-engine", "echo-engine:default")
    metadata = end.checkpoint.metadata or {}
    assert (metadata["runtime"], metadata["adapterVersion"]) == ("echo-engine", "7")
    assert end.checkpoint.expert.version == "7"
    assert history.summary().runtime == "echo-engine"
    assert not is_structured(read_order(home, run_id))


def test_an_npm_plugins_run_names_its_runtime_version_and_usage(
    home: Home, plugins: Plugins, ran: Start, tmp_path: Path
) -> None:
    """N4: an adapter written for Paperclip says its type, version, model and usage."""
    plugins.install(str(write_npm(tmp_path / "speaker")))
    history = RunHistory(home, ran("speaker", word="hi"))
    begin, *_, end = history.events()
    assert isinstance(begin, InitializeRuntime) and isinstance(end, CompleteRun)
    assert (begin.runtime_version, begin.model) == ("external:speaker", "speaker:m1")
    assert (end.text, end.checkpoint.expert.version) == ("spoken", "1.0.0")
    assert (end.usage.input_tokens, end.usage.output_tokens) == (10, 2)
    assert end.step.usage == end.usage


def test_a_plugins_run_that_never_started_names_them_too_after_the_plugin_is_gone(
    home: Home, plugins: Plugins, ran: Start, tmp_path: Path
) -> None:
    """N4: a job is made of the run's own files, so a rebuild writes the same without the plugin."""
    plugins.install(python_plugin(tmp_path))
    plugins.set_disabled("echo_agent", True)
    run_id = ran("echo_agent")
    assert home.attempts(run_id) == []
    store = JobStore(home)
    store.record(run_id)
    before = list(store.events(run_id))
    (checkpoint,) = store.checkpoints(run_id)
    assert (checkpoint.metadata or {})["runtime"] == "echo-engine"
    assert checkpoint.expert.version == "7"
    plugins.remove("echo_agent")
    store.rebuild(lambda run_id, problem: pytest.fail(f"{run_id}: {problem}"))
    assert list(store.events(run_id)) == before
    last = list(RunHistory(home, run_id).events())[-1]
    assert isinstance(last, StopRunByError)


def test_saved_output_is_read_by_the_plugin_that_names_the_runtime(
    plugins: Plugins, tmp_path: Path
) -> None:
    """N1: a runtime is found by its name or type; a built-in one is not hidden by a plugin."""
    assert parse_external_output(" as it is \n", "echo-engine").final_output == " as it is \n"
    plugins.install(python_plugin(tmp_path))
    assert parse_external_output(" said \n", "echo-engine").final_output == "said"
    found, claude = adapter_of("echo-engine"), adapter_of("claude-code")
    assert found is not None and found.type == "echo_agent"
    assert claude is not None and claude.type == "claude_local"
    assert adapter_of("nothing-like-it") is None
