"""What the README tells people to type works as it stands."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text("utf-8")
BINDERCLIP = str(Path(sys.executable).with_name("binderclip"))


def _run(tmp_path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "BINDERCLIP_HOME": str(tmp_path / "home"), "NO_COLOR": "1"}
    return subprocess.run(
        [BINDERCLIP, *words], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
    )


def test_the_adapter_of_the_readme_runs(tmp_path: Path) -> None:
    (code,) = re.findall(r"```python\n# shout.py\n(.*?)```", README, re.S)
    (tmp_path / "shout.py").write_text(code, "utf-8")
    done = _run(tmp_path, "run", "--adapter", "./shout.py", "hello world")
    assert done.returncode == 0, done.stderr
    assert "HELLO WORLD" in done.stdout
    assert "succeeded" in done.stdout


def test_the_first_run_of_the_readme_works(tmp_path: Path) -> None:
    done = _run(tmp_path, "run", "--adapter", "process", "--", "bash", "-c", "echo hello; uname -a")
    assert done.returncode == 0, done.stderr
    assert "hello\n" in done.stdout
    listed = _run(tmp_path, "runs")
    assert "succeeded" in listed.stdout


def test_the_two_commands_exist_and_can_be_executed() -> None:
    for verb in ("script/server", "script/test"):
        assert verb in README
        assert os.access(ROOT / verb, os.X_OK)
