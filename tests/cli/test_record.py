"""`binderclip record`: a command becomes a fixture, without the secrets it printed."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from binderclip.sdk.testing.fixtures import read_case
from tests.cli.conftest import SPEAKER, Cli

SECRET = 'sk-very"secret-value'


def test_a_recording_is_a_case_without_secrets(cli: Cli, tmp_path: Path) -> None:
    """D8: neither the output nor the command line keeps a secret variable's value."""
    code = (
        "import os, sys, json; print(json.dumps({'key': os.environ['MY_API_KEY']}));"
        "sys.stderr.write(os.environ['MY_API_KEY']); sys.exit(3)"
    )
    words = ("record", "--name", "failing", "--out", str(tmp_path / "out"), "--")
    told = cli(*words, sys.executable, "-c", code, SECRET, MY_API_KEY=SECRET).stdout
    case = read_case(tmp_path / "out" / "failing")
    assert (case.exit_code, case.signal) == (3, None)
    assert json.loads(case.stdout) == {"key": "***"}
    assert (case.stderr, case.argv[-1]) == (b"***", "***")
    assert "exit code 3" in told and "binderclip replay --adapter TYPE" in told


def test_a_recording_for_an_adapter_says_how_to_go_on(cli: Cli, tmp_path: Path) -> None:
    words = ("record", "-a", SPEAKER, "-n", "hello", "--out", str(tmp_path), "--", "echo", "hello")
    told = cli(*words).stdout
    assert "binderclip.sdk.testing.expect" in told and "binderclip.sdk.testing.shapes" in told
    assert (tmp_path / "hello" / "stdout.txt").read_bytes() == b"hello\n"
    told = json.loads((tmp_path / "hello" / "cmd.json").read_text())
    assert (told["argv"], told["version"]) == (["echo", "hello"], None)


def test_a_recording_that_takes_too_long_is_ended_with_all_it_started(
    cli: Cli, tmp_path: Path
) -> None:
    script = "echo begun; cat /dev/zero > /dev/null & wait"
    words = ("record", "-n", "long", "--out", str(tmp_path), "--timeout", "0.5", "--")
    assert "SIGTERM" in cli(*words, "sh", "-c", script).stdout
    case = read_case(tmp_path / "long")
    assert (case.stdout, case.exit_code, case.signal) == (b"begun\n", None, "SIGTERM")


def test_wrong_words_are_told(cli: Cli, tmp_path: Path) -> None:
    assert "follows `--`" in cli("record", "--name", "x", code=2).stderr
    assert "--out DIR" in cli("record", "--name", "x", "--", "true", code=2).stderr
    out = ("--out", str(tmp_path))
    assert "one word" in cli("record", "--name", "a/b", *out, "--", "true", code=2).stderr
    cli("record", "--name", "x", *out, "--", "true")
    assert "already" in cli("record", "--name", "x", *out, "--", "true", code=2).stderr
    missing = cli("record", "--name", "y", *out, "--", "no-such-program", code=1).stderr
    assert "cannot be started" in missing
