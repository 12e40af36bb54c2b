"""The hostile CLI does what its words say, so that tests of limits and logs can rely on it."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import pytest

from binderclip.sdk.testing import hostile

COMMAND = [sys.executable, "-I", "-S", str(hostile.__file__)]


def done(*words: str, **options: object) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([*COMMAND, *words], capture_output=True, timeout=60, **options)  # type: ignore[call-overload,no-any-return]


def test_words_are_done_in_order_on_both_streams() -> None:
    ran = done("say=a", "err=b", "partial=c", "result", "exit=5")
    assert (ran.stdout, ran.stderr, ran.returncode) == (
        b'a\nc{"type":"result","subtype":"success","is_error":false}\n',
        b"b\n",
        5,
    )


def test_a_failure_can_exit_zero() -> None:
    ran = done("failure", "exit=0")
    assert (json.loads(ran.stdout)["is_error"], ran.returncode) == (True, 0)


@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM", "SIGSEGV", "SIGINT"])
def test_it_dies_of_a_signal_after_its_result(name: str) -> None:
    ran = done("result", f"die={name}")
    assert ran.returncode == -getattr(signal, name)
    assert b"success" in ran.stdout


@pytest.mark.parametrize("size", [1, 80, 65_536, 1_000_003])
def test_floods_and_lines_have_exactly_their_size(size: int) -> None:
    ran = done(f"flood={size}", f"flood-err={size}")
    assert (len(ran.stdout), len(ran.stderr)) == (size, size)
    assert done(f"line={size}").stdout == b"x" * size + b"\n"


def test_bytes_that_no_terminal_should_see() -> None:
    out = done("nul", "ansi", "osc", "invalid-utf8", "crlf").stdout
    for piece in (b"\0", b"\x1b[31m", b"\x1b]0;title\x07", b"\xff\xfe", b"one\r\ntwo\rstill"):
        assert piece in out
    with pytest.raises(UnicodeDecodeError):
        out.decode()


def test_split_characters_are_whole_in_the_end() -> None:
    assert done("split-utf8=0").stdout.decode() == hostile.MIXED_TEXT


def test_it_tells_what_it_was_given(tmp_path: Path) -> None:
    env = {"ONLY": "this"}
    ran = done("env", "cwd", "stdin", input=b"\0in", cwd=tmp_path, env=env)
    told, cwd, rest = ran.stdout.split(b"\n", 2)
    assert json.loads(told).items() >= env.items()
    assert (cwd.decode(), rest) == (str(tmp_path), b"\0in")


def test_a_secret_leaks_in_every_form() -> None:
    """D8: what masking must find."""
    value = 'pä"ss\\word/+1'
    out = done("leak=SECRET", env={"SECRET": value}).stdout.decode()
    once = json.dumps(value)[1:-1]
    forms = [value, once, json.dumps(once)[1:-1], quote(value, safe="")]
    forms += [base64.b64encode(value.encode()).decode()]
    forms += [json.dumps(value, ensure_ascii=False)[1:-1]]
    assert [form for form in forms if form not in out] == []


def test_interleaved_lines_go_to_both_streams() -> None:
    ran = done("interleave=3")
    assert (ran.stdout, ran.stderr) == (b"out 0\nout 1\nout 2\n", b"err 0\nerr 1\nerr 2\n")


def test_a_closed_stdout_is_no_failure_of_its_own() -> None:
    ran = done("say=a", "close-stdout", "err=b")
    assert (ran.stdout, ran.stderr, ran.returncode) == (b"a\n", b"b\n", 0)


def test_reopening_stderr_truncates_a_file_behind_it(tmp_path: Path) -> None:
    """D1: why arbitrary programs are captured by a pipe."""
    log = tmp_path / "log"
    with log.open("ab") as file:
        subprocess.run([*COMMAND, "err=first", "reopen-stderr=last"], stderr=file, check=True)
    assert log.read_bytes() == b"last\n"


def test_sigterm_is_ignored_where_asked() -> None:
    child = subprocess.Popen([*COMMAND, "ignore-term", "say=ready", "hang"], stdout=subprocess.PIPE)
    with child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        child.terminate()
        with pytest.raises(subprocess.TimeoutExpired):
            child.wait(0.3)
        child.kill()
    assert child.returncode == -signal.SIGKILL


def stat_fields(pid: int) -> tuple[int, int, int]:
    """Parent, process group and session of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[1]), int(fields[2]), int(fields[3])


def ignores_sigterm(pid: int) -> bool:
    status = Path(f"/proc/{pid}/status").read_text()
    ignored = int(status.split("SigIgn:")[1].split()[0], 16)
    return bool(ignored >> (signal.SIGTERM - 1) & 1)


@pytest.mark.parametrize(
    ("word", "same_session", "deaf"),
    [
        ("child", True, False),
        ("stubborn-child", True, True),
        ("daemon", False, False),
        ("stubborn-daemon", False, True),
    ],
)
def test_children_and_daemons_are_where_they_say(word: str, same_session: bool, deaf: bool) -> None:
    """D1: what a supervisor has to find and end."""
    parent = subprocess.Popen(
        [*COMMAND, f"{word}=600", "hang"], stdout=subprocess.PIPE, start_new_session=True
    )
    with parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline().split()[1])
        _, group, session = stat_fields(pid)
        told = (group == parent.pid, session == parent.pid, ignores_sigterm(pid))
        os.kill(pid, signal.SIGKILL)
        parent.kill()
    assert told == (same_session, same_session, deaf)


def test_a_chain_is_as_deep_as_asked() -> None:
    parent = subprocess.Popen(
        [*COMMAND, "chain=3", "hang"], stdout=subprocess.PIPE, start_new_session=True
    )
    with parent:
        assert parent.stdout is not None
        pids = [int(parent.stdout.readline().split()[1]) for _ in range(3)]
        parents = [stat_fields(pid)[0] for pid in pids]
        os.killpg(parent.pid, signal.SIGKILL)
    assert parents == [parent.pid, *pids[:2]]


def test_an_unknown_word_is_a_usage_error() -> None:
    ran = done("say=a", "explode")
    assert (ran.returncode, ran.stdout) == (2, b"")
    assert b"no such behaviour: explode" in ran.stderr


def test_every_behaviour_is_in_the_help() -> None:
    helped = done().stderr.decode()
    missing = [name for name in hostile.BEHAVIOURS if name not in helped and name != "reap"]
    assert missing == []


def test_it_runs_as_a_module_too() -> None:
    words = [sys.executable, "-m", "binderclip.sdk.testing.hostile", "say=hi", "exit=3"]
    ran = subprocess.run(words, capture_output=True, check=False)
    assert (ran.stdout, ran.returncode) == (b"hi\n", 3)
