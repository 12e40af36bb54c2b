"""Models are asked of the runtime, with a deadline; the answer says where they come from (A3)."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from binderclip.contract.check import CheckRequest
from binderclip.contract.manifest import Manifest, Model
from binderclip.plugins.models import FAILED_KEPT_SECONDS, KEPT_SECONDS, ModelList, ModelLists
from binderclip.plugins.service import Plugins
from binderclip.sdk.adapter import Adapter
from binderclip.sdk.checks import CheckCall

from .conftest import write_npm

DECLARED = Model(id="known", label="Known")
PYTHON = """
from binderclip.sdk import Adapter, Manifest, Model

class Told(Adapter):
    manifest = Manifest(id="told", label="T", version="1", models=(Model(id="a", label="A"),))

    def list_models(self, call):
        return [Model(id=call.env["MODEL"], label="From the environment")]

    def detect_model(self, call):
        return "its own"

    async def execute(self, ctx):
        raise NotImplementedError

def create_adapter():
    return Told()
"""


class Asked(Adapter):
    """Counts how often it is asked, and waits until it may answer."""

    manifest = Manifest(id="asked", label="Asked", version="1", models=(DECLARED,))

    def __init__(self) -> None:
        self.times = 0
        self.may = threading.Event()
        self.may.set()
        self.problem: Exception | None = None

    def list_models(self, call: CheckCall) -> Sequence[Model]:
        self.times += 1
        self.may.wait(60)
        if self.problem:
            raise self.problem
        return [Model(id=f"m{self.times}", label="Told")]


class Clock:
    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def ask(lists: ModelLists, adapter: Adapter, refresh: bool = False) -> ModelList:
    request = CheckRequest(company_id="c", adapter_type=adapter.type, config={})
    return lists.get(adapter, request, os.environ, refresh=refresh)


def ids(told: ModelList) -> list[str]:
    return [model.id for model in told.models]


def test_an_answer_is_kept_until_it_is_old_or_refreshed() -> None:
    clock, adapter = Clock(), Asked()
    lists = ModelLists(clock)
    first = ask(lists, adapter)
    assert (ids(first), first.source, first.problem) == (["m1"], "runtime", None)
    assert ask(lists, adapter) == first
    assert ids(ask(lists, adapter, refresh=True)) == ["m2"]
    clock.now += KEPT_SECONDS + 1
    assert ids(ask(lists, adapter)) == ["m3"]


def test_a_slow_runtime_keeps_nobody_waiting_and_is_asked_once() -> None:
    adapter, lists = Asked(), ModelLists(Clock(), wait=0.05)
    adapter.may.clear()
    late = [ask(lists, adapter) for _ in range(3)]
    assert [(ids(each), each.source) for each in late] == [(["known"], "declared")] * 3
    assert "did not tell its models within 0.05 s" in (late[0].problem or "")
    adapter.may.set()
    lists._wait = 30
    assert (ids(ask(lists, adapter)), adapter.times) == (["m1"], 1)


def test_a_late_refresh_leaves_what_was_known() -> None:
    adapter, lists = Asked(), ModelLists(Clock(), wait=30)
    ask(lists, adapter)
    adapter.may.clear()
    lists._wait = 0.05
    again = ask(lists, adapter, refresh=True)
    adapter.may.set()
    assert (ids(again), again.source) == (["m1"], "runtime")
    assert again.problem


def test_a_failure_is_told_beside_the_declared_models_and_soon_tried_again() -> None:
    clock, adapter = Clock(), Asked()
    lists = ModelLists(clock)
    adapter.problem = ValueError("no network")
    told = ask(lists, adapter)
    assert (ids(told), told.source) == (["known"], "declared")
    assert "no network" in (told.problem or "")
    adapter.problem = None
    clock.now += FAILED_KEPT_SECONDS + 1
    assert ask(lists, adapter).source == "runtime"


def test_a_python_plugin_is_asked_in_its_own_process(
    plugins: Plugins, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "told.py").write_text(PYTHON.replace('"T",', '"T", pass_env=("MODEL",),'))
    plugins.install(str(tmp_path / "told.py"))
    monkeypatch.setenv("MODEL", "e1")
    told = ask(ModelLists(Clock()), plugins.load("told"))
    assert (ids(told), told.source, told.detected) == (["e1"], "runtime", "its own")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("", (["m2"], "runtime", "m3", None)),
        ("listModels: async () => { throw new Error('no key'); },", (["m1"], "declared", None, "")),
        ("listModels: async () => 7,", (["m1"], "declared", "m3", None)),
        ("listModels: async () => [{ id: 5 }, null, 'x'],", (["m1"], "declared", "m3", None)),
    ],
    ids=["answers", "throws", "no list", "odd entries"],
)
def test_an_npm_plugin_is_asked_in_its_own_process(
    plugins: Plugins, tmp_path: Path, change: str, expected: Any
) -> None:
    """P4: whatever it answers, there is a list."""
    execute = f"{change} execute: async () => ({{ exitCode: 0 }}),"
    plugins.install(str(write_npm(tmp_path / "speaker", execute=execute)))
    told = ask(ModelLists(Clock()), plugins.load("speaker"))
    problem = "" if told.problem and "no key" in told.problem else told.problem
    assert (ids(told), told.source, told.detected, problem) == expected


def test_a_refresh_uses_the_adapters_own_hook(plugins: Plugins, tmp_path: Path) -> None:
    execute = (
        "refreshModels: async () => [{ id: 'new', label: 'New' }], "
        "execute: async () => ({ exitCode: 0 }),"
    )
    plugins.install(str(write_npm(tmp_path / "speaker", execute=execute)))
    lists, adapter = ModelLists(Clock()), plugins.load("speaker")
    assert ids(ask(lists, adapter)) == ["m2"]
    assert ids(ask(lists, adapter, refresh=True)) == ["new"]


def test_a_command_that_is_not_there_is_the_reason() -> None:
    class Missing(Adapter):
        manifest = Manifest(id="gone", label="G", version="1", command="no-such-cli")

    told = ask(ModelLists(Clock()), Missing())
    assert (told.models, told.source) == ((), "declared")
    assert "no-such-cli" in (told.problem or "")
