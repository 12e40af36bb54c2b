"""The installed `binderclip`: what a shell gets when a command ends."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BINDERCLIP = Path(sys.executable).with_name("binderclip")


def started(*words: str, home: Path) -> subprocess.CompletedProcess[bytes]:
    env = {"BINDERCLIP_HOME": str(home), "PATH": "/usr/bin:/bin", "HOME": str(home)}
    return subprocess.run([BINDERCLIP, *words], env=env, capture_output=True, check=False)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--version",), 0),
        (("run", "--adapter", "process", "--", "true"), 0),
        (("run", "--adapter", "process", "--", "false"), 1),
        (("run", "--adapter", "nobody", "--", "true"), 2),
        (("nonsense",), 2),
    ],
)
def test_the_exit_code_is_the_commands(words: tuple[str, ...], code: int, tmp_path: Path) -> None:
    """Design 6: 0 succeeded, 1 failed, 2 usage."""
    done = started(*words, home=tmp_path)
    assert done.returncode == code, done.stderr.decode()


def test_everything_is_written_before_it_ends(tmp_path: Path) -> None:
    """The last lines of a long output are not lost in a buffer."""
    words = ("run", "--adapter", "process", "--", "seq", "1", "50000")
    shown = started(*words, home=tmp_path).stdout.decode().splitlines()
    assert shown.count("50000") == 1
    assert [line for line in shown if line.isdecimal()] == [str(n) for n in range(1, 50001)]
    assert "succeeded" in "\n".join(shown[-4:])


def test_a_reader_that_goes_away_is_no_crash(tmp_path: Path) -> None:
    command = f"{BINDERCLIP} --help | head -c 10"
    env = {"BINDERCLIP_HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    done = subprocess.run(["sh", "-c", command], env=env, capture_output=True, check=True)
    assert done.stdout == b"Usage: bin"
    assert b"Traceback" not in done.stderr
