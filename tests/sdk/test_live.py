"""The live check: one real call, bounded, by the way every run goes."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from binderclip.sdk import Call, CheckCall, CheckRequest, CliAdapter, CliConfig, Command, Manifest
from binderclip.sdk.config import read_config
from binderclip.sdk.live import live_check


class Scripted(CliAdapter):
    """Runs Python code given as a model's name."""

    manifest = Manifest(id="scripted", label="Scripted", structured=False)

    def command(self, call: Call) -> Command:
        return Command(argv=(sys.executable, "-c", call.config.model), stdin=call.prompt)


def asked(code: str, cwd: Path, seconds: float = 60) -> tuple[str, str, str | None]:
    config = {"model": code, "cwd": str(cwd)}
    request = CheckRequest(company_id="c", adapter_type="scripted", config=config, depth="live")
    env = {"PATH": os.environ["PATH"]}
    call = CheckCall(request, read_config(CliConfig, config), cwd, env, None)
    found = live_check(Scripted(), call, seconds)
    return found.code, found.level, found.detail


def test_an_answer_is_a_pass_with_its_words(tmp_path: Path) -> None:
    """E2: live makes a tiny real call; it works in a directory of its own."""
    code = "import os; print('ok', len(input()) > 0, os.listdir())"
    assert asked(code, tmp_path) == ("live_ok", "info", "ok True []")


def test_a_failure_is_an_error_with_its_class(tmp_path: Path) -> None:
    assert asked("raise SystemExit(3)", tmp_path)[:2] == ("live_process_failed", "error")


def test_a_call_that_hangs_is_stopped_with_all_its_children(tmp_path: Path) -> None:
    """A11: nothing of the tree is left alive."""
    code = (
        "import subprocess, sys, pathlib;"
        f"child = subprocess.Popen(['sleep', '600']);"
        f"pathlib.Path({str(tmp_path / 'pid')!r}).write_text(str(child.pid)); child.wait()"
    )
    assert asked(code, tmp_path, seconds=2)[:2] == ("live_timeout", "error")
    state = Path("/proc", (tmp_path / "pid").read_text(), "stat")
    assert not state.exists() or ") Z " in state.read_text()


def test_a_command_that_is_not_there_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    assert asked("", tmp_path)[:2] == ("live_failed", "error")
