"""Cancelling an attempt: by file, by signal, gently and at once."""

from __future__ import annotations

import json
import os
import signal

import pytest

from binderclip.supervisor.launch import Cancel, Capture, Limits, request_cancel
from tests.supervisor.attempts import BOTH_FILE, BOTH_PIPE, Attempt, eventually, python

# Written past the buffer: the signal may come while `ready` is still being flushed.
STUBBORN = (
    "import os, signal, time\n"
    "signal.signal(signal.SIGTERM, lambda *_: os.write(1, b'heard\\n'))\n"
    "print('ready', flush=True)\n"
    "while True: time.sleep(60)\n"
)
LONG_GRACE = Limits(0, 0, 600, 0, 0)


@pytest.mark.parametrize("capture", [BOTH_FILE, BOTH_PIPE], ids=["file", "pipe"])
def test_a_cancel_ends_the_run_and_says_who_wanted_it(attempt: Attempt, capture: Capture) -> None:
    """D1: cancel is a file, and the supervisor obeys."""
    attempt.start(["sleep", "60"], capture=capture)
    request_cancel(attempt.dir, "ada", "wrong branch")
    end = attempt.end()
    assert (end.reason, end.signal, end.killed) == ("cancelled", "SIGTERM", False)
    assert end.cancel == Cancel("ada", "wrong branch")


def test_a_second_cancel_with_kill_ends_the_grace(attempt: Attempt) -> None:
    """D1: kill shortens the grace to zero; the first reason stays."""
    attempt.start(python(STUBBORN), limits=LONG_GRACE)
    attempt.wait_until_visible(b"ready\n")
    request_cancel(attempt.dir, "ada", "first")
    attempt.wait_until_visible(b"heard\n")
    request_cancel(attempt.dir, "grace", "second", kill=True)
    end = attempt.end()
    assert (end.reason, end.signal, end.killed) == ("cancelled", "SIGKILL", True)
    assert end.cancel == Cancel("ada", "first")


def test_a_cancel_without_the_nudge_is_found_within_a_tick(attempt: Attempt) -> None:
    """D1: SIGCONT only hurries it."""
    attempt.start(["sleep", "60"])
    attempt.path("cancel.new").write_text(json.dumps({"by": "file", "reason": "only"}))
    attempt.path("cancel.new").rename(attempt.path("cancel.json"))
    assert attempt.end().cancel == Cancel("file", "only")


def test_a_cancel_that_came_before_the_start_counts(attempt: Attempt) -> None:
    """D1: the wish waits for whoever takes charge."""
    request_cancel(attempt.dir, "ada", "too late")
    assert attempt.run(["sleep", "60"]).reason == "cancelled"


def test_an_unreadable_cancel_is_noted_and_the_next_one_obeyed(attempt: Attempt) -> None:
    """D1: a slip of whoever writes the file does not end a run."""
    attempt.start(["sleep", "60"])
    attempt.path("cancel.json").write_text("{")
    eventually(lambda: "JSONDecodeError" in attempt.complaints(), "a complaint")
    request_cancel(attempt.dir, "ada", "properly")
    assert attempt.end().cancel == Cancel("ada", "properly")


def test_a_supervisor_that_fails_still_ends_the_run_in_order(attempt: Attempt) -> None:
    """D1: an unforeseen error kills the tree, drains the logs and says aborted."""
    attempt.start(python(STUBBORN), capture=BOTH_PIPE)
    attempt.wait_until_visible(b"ready\n")
    attempt.path("cancel.json").mkdir()
    end = attempt.end()
    assert (end.reason, end.signal, end.killed) == ("aborted", "SIGKILL", True)
    assert end.error is not None and "supervisor.log" in end.error["message"]
    assert "IsADirectoryError" in attempt.complaints()
    assert attempt.stdout == attempt.visible() == b"ready\n"
    assert not attempt.living()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_the_supervisor_is_a_cancel(attempt: Attempt, number: signal.Signals) -> None:
    """D1: whoever ends the supervisor politely ends the run."""
    launched = attempt.start(["sleep", "60"])
    os.kill(launched.supervisor_pid, number)
    end = attempt.end()
    assert end.reason == "cancelled"
    assert end.cancel == Cancel("signal", number.name)
    assert not attempt.living()
