"""Installations side by side, and what a killed one leaves behind (P2, P5)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from binderclip.contract.errors import AdapterNotFound
from binderclip.plugins.records import PluginStore
from binderclip.plugins.service import Plugins

from .conftest import ECHO, Run, write_python

Start = Callable[..., Run]
SLOW = """
import time
from pathlib import Path
Path({begun!r}).touch()
while not Path({gate!r}).exists():
    time.sleep(0.02)
"""


def slow(folder: Path, type: str = "slow_agent") -> Path:
    """A plugin whose loading waits for a gate."""
    wait = SLOW.format(begun=str(folder / "begun"), gate=str(folder / "gate"))
    file = folder / f"{type}.py"
    file.write_text(wait + ECHO.replace("{type}", type).replace("{version}", "1"))
    return file


class Installing(threading.Thread):
    """An installation that has begun to load its plugin."""

    def __init__(self, work: Callable[[], object], folder: Path) -> None:
        super().__init__()
        self.problem: BaseException | None = None
        self._work = work
        self.start()
        while not (folder / "begun").exists() and self.is_alive():
            time.sleep(0.02)

    def run(self) -> None:
        try:
            self._work()
        except BaseException as problem:
            self.problem = problem


def test_two_installations_do_not_disturb_each_other(
    plugins: Plugins, run: Start, tmp_path: Path
) -> None:
    """P2: whoever is done first tidies up, but not what the other one is making."""
    file = slow(tmp_path)
    first = Installing(lambda: plugins.install(str(file)), tmp_path)
    other = Plugins(PluginStore(plugins.store.home))
    other.install(str(write_python(tmp_path / "quick.py", "quick_agent")))
    other.remove("quick_agent")
    (tmp_path / "gate").touch()
    first.join()
    assert first.problem is None
    assert run("slow_agent").stdout == b"hello from 1\n"
    assert sorted(path.name for path in plugins.store.folder.glob("*")) == [".lock", "slow_agent"]


def test_a_plugin_that_is_removed_while_it_is_loaded_anew_stays_removed(
    plugins: Plugins, tmp_path: Path
) -> None:
    (tmp_path / "gate").touch()
    file = slow(tmp_path)
    plugins.install(str(file))
    (tmp_path / "gate").unlink()
    (tmp_path / "begun").unlink()
    reloading = Installing(lambda: plugins.reload("slow_agent"), tmp_path)
    plugins.remove("slow_agent")
    (tmp_path / "gate").touch()
    reloading.join()
    assert isinstance(reloading.problem, AdapterNotFound)
    assert plugins.store.records() == []
    assert sorted(path.name for path in plugins.store.folder.glob("*")) == [".lock"]


@pytest.mark.parametrize("deed", [signal.SIGKILL, signal.SIGINT])
def test_what_a_killed_installation_left_is_removed_by_the_next(
    plugins: Plugins, tmp_path: Path, deed: signal.Signals
) -> None:
    """P5: nothing half made is ever in force, and it does not stay on disk."""
    words = ["-c", "from binderclip.cli import main; main()", "adapters", "install"]
    child = subprocess.Popen(
        [sys.executable, *words, str(slow(tmp_path))],
        env=dict(os.environ),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    while not (tmp_path / "begun").exists():
        assert child.poll() is None
        time.sleep(0.02)
    child.send_signal(deed)
    child.wait(30)
    (tmp_path / "gate").touch()
    assert plugins.store.records() == []
    left = list(plugins.store.folder.glob("slow_agent/*"))
    assert bool(left) is (deed == signal.SIGKILL)
    plugins.install(str(write_python(tmp_path / "quick.py", "quick_agent")))
    assert sorted(path.name for path in plugins.store.folder.glob("*")) == [".lock", "quick"]
