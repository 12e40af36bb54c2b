"""A plugin's run outlives its driver, an upgrade and the plugin's removal (P4, D4)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from binderclip.plugins.registry import load_adapter
from binderclip.plugins.service import Plugins
from binderclip.runs.recover import take_over
from binderclip.store.home import Home

from .conftest import write_npm, write_python

WAIT = """execute: async (ctx) => {
      await ctx.onLog("stdout", "begun\\n");
      const child = spawn("sh", ["-c", "until [ -e $GATE ]; do sleep 0.05; done; echo over"]);
      child.stdout.on("data", (chunk) => ctx.onLog("stdout", String(chunk)));
      await new Promise((done) => child.on("close", done));
      return { exitCode: 0, signal: null, timedOut: false, summary: text,
        sessionParams: { id: "s9" } };
    },"""
PYTHON = """
import asyncio
from pathlib import Path
from binderclip.sdk import Adapter, ExecutionResult, Manifest

class Waiting(Adapter):
    manifest = Manifest(id="waiting", label="Waiting", version="1", structured=False)

    async def execute(self, ctx):
        await ctx.on_log("stdout", "begun\\n")
        while not Path(ctx.env["GATE"]).exists():
            await asyncio.sleep(0.05)
        await ctx.on_log("stdout", "over\\n")
        return ExecutionResult(exit_code=0, signal=None, timed_out=False, summary="first",
                               session_params={"id": "s9"})

def create_adapter():
    return Waiting()
"""


def python_plugin(folder: Path) -> str:
    (folder / "waiting.py").write_text(PYTHON)
    return str(folder / "waiting.py")


def npm_plugin(folder: Path) -> str:
    return str(write_npm(folder / "waiting", "waiting", WAIT))


@pytest.mark.parametrize("write", [python_plugin, npm_plugin], ids=["python", "npm"])
def test_a_killed_driver_loses_nothing(
    plugins: Plugins, home: Path, tmp_path: Path, write: Callable[[Path], str]
) -> None:
    """D4: killed, taken over by the version that it began with, although the plugin is gone."""
    plugins.install(write(tmp_path))
    gate = tmp_path / "gate"
    words = ["run", "--adapter", "waiting", "--json", "--config", f"env.GATE={gate}", "go"]
    driver = subprocess.Popen(
        [sys.executable, "-c", "from binderclip.cli import main; main()", *words],
        env=dict(os.environ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    )
    assert driver.stdout is not None
    with driver.stdout as lines:
        run_id = json.loads(lines.readline())["runId"]
        assert any(b'"begun"' in line for line in lines)
    driver.kill()
    driver.wait()
    plugins.remove("waiting")
    gate.touch()
    outcome = take_over(Home(home), run_id, load_adapter)
    assert outcome.state == "succeeded", outcome
    assert outcome.result is not None
    assert (outcome.result.summary, outcome.result.session_params) == ("first", {"id": "s9"})
    log = Home(home).attempt_dir(run_id, 1) / "stdout.log"
    assert log.read_bytes().startswith(b"begun\nover\n")
    plugins.install(str(write_python(tmp_path / "other.py", "other_agent")))
    assert [path.parent.name for path in plugins.store.folder.glob("*/*")] == ["other"]
