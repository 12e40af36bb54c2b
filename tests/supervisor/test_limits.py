"""Limits hold, and what breaks one ends with everything it started."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from binderclip.supervisor.launch import (
    Cancel,
    Capture,
    Limits,
    SpawnFailed,
    read_exit,
    request_cancel,
)
from tests.supervisor.attempts import (
    BOTH_FILE,
    BOTH_PIPE,
    NO_LIMITS,
    Attempt,
    TinyDisk,
    eventually,
    python,
)

BOTH_WAYS = pytest.mark.parametrize("capture", [BOTH_FILE, BOTH_PIPE], ids=["file", "pipe"])
STUBBORN = (
    "import signal, time\n"
    "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "print('ready', flush=True)\n"
    "while True: time.sleep(60)\n"
)
CHATTY = "import os\nwhile True: os.write(1, b'x' * 999 + b'\\n')\n"


def limits(**changed: Any) -> Limits:
    return NO_LIMITS._replace(**changed)


def test_the_wall_clock_ends_a_run(attempt: Attempt) -> None:
    """A11: timeoutSec, SIGTERM first."""
    end = attempt.run(["sleep", "60"], limits=limits(timeout_sec=0.3))
    assert (end.reason, end.signal, end.killed) == ("timeout", "SIGTERM", False)
    assert not attempt.living()


def test_a_child_that_ignores_sigterm_is_killed_after_the_grace(attempt: Attempt) -> None:
    """A11: SIGKILL after the grace, for the whole tree."""
    code = "import os; os.fork(); os.fork()\n" + STUBBORN
    end = attempt.run(python(code), limits=limits(timeout_sec=1, grace_sec=0.3))
    assert (end.reason, end.signal, end.killed) == ("timeout", "SIGKILL", True)
    assert not attempt.living()


def test_a_child_may_end_by_itself_within_the_grace(attempt: Attempt) -> None:
    """A11: what it does with SIGTERM is its own affair, and its output is kept."""
    code = (
        "import signal, sys, time\n"
        "def stop(*_): print('saved', flush=True); sys.exit(9)\n"
        "signal.signal(signal.SIGTERM, stop)\n"
        "print('ready', flush=True)\n"
        "while True: time.sleep(60)\n"
    )
    end = attempt.run(python(code), limits=limits(timeout_sec=1.5, grace_sec=60))
    assert (end.reason, end.exit_code, end.killed) == ("timeout", 9, False)
    assert attempt.stdout == b"ready\nsaved\n"


def test_a_stopped_child_hears_sigterm(attempt: Attempt) -> None:
    """A11: it is continued, so that the grace is not wasted."""
    code = "import os; os.kill(os.getpid(), 19)"
    end = attempt.run(python(code), limits=limits(timeout_sec=0.5, grace_sec=60))
    assert (end.reason, end.signal, end.killed) == ("timeout", "SIGTERM", False)


@BOTH_WAYS
def test_silence_on_both_streams_ends_a_run(attempt: Attempt, capture: Capture) -> None:
    """A11: idleTimeoutSec counts from the last output on either stream."""
    code = (
        "import os, time\n"
        "for n in range(8): os.write(1 + n % 2, b'.'); time.sleep(0.2)\n"
        "time.sleep(60)\n"
    )
    end = attempt.run(python(code), capture=capture, limits=limits(idle_timeout_sec=1.2))
    assert end.reason == "idle_timeout"
    assert (end.stdout_bytes, end.stderr_bytes) == (4, 4)


def test_the_log_limit_is_exact_in_pipe_capture(attempt: Attempt) -> None:
    """A11: maxLogBytes counts both logs together."""
    code = "import os\nos.write(2, b'e' * 5000)\n" + CHATTY
    end = attempt.run(python(code), capture=BOTH_PIPE, limits=limits(max_log_bytes=1_000_000))
    assert end.reason == "output_limit"
    assert end.stdout_bytes + end.stderr_bytes == 1_000_000
    assert len(attempt.stdout) + len(attempt.stderr) == 1_000_000


def test_the_log_limit_ends_a_run_in_file_capture(attempt: Attempt) -> None:
    """A11: what the child wrote before it was stopped is kept."""
    end = attempt.run(python(CHATTY), limits=limits(max_log_bytes=1_000_000, grace_sec=0))
    assert end.reason == "output_limit"
    assert end.stdout_bytes == len(attempt.stdout) > 1_000_000


def test_output_of_exactly_the_limit_is_fine(attempt: Attempt) -> None:
    """A11: the limit is broken by the byte after it."""
    code = "import os; os.write(1, b'x' * 1000)"
    end = attempt.run(python(code), capture=BOTH_PIPE, limits=limits(max_log_bytes=1000))
    assert (end.reason, end.stdout_bytes) == ("exited", 1000)


def test_zero_means_no_limit(attempt: Attempt) -> None:
    """A11: 0 means no limit."""
    end = attempt.run(python("print('x' * 100000)"), limits=limits())
    assert (end.reason, end.stdout_bytes) == ("exited", 100001)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Callable[[int], TinyDisk]]:
    made: list[TinyDisk] = []

    def make(size: int) -> TinyDisk:
        made.append(TinyDisk(tmp_path / "disk", size))
        return made[-1]

    yield make
    for one in made:
        one.unmount()


def test_a_disk_that_runs_low_ends_a_run_in_file_capture(
    disk: Callable[[int], TinyDisk], new_attempt: Callable[..., Attempt]
) -> None:
    """D1: free disk space is watched; what was written before is kept, and so is the end."""
    small = disk(8 << 20)
    attempt = new_attempt(small.folder / "attempt")
    code = (
        "import os, time\n"
        "for n in range(600): os.write(1, b'%015d\\n' % n * 625); time.sleep(0.005)\n"
        "time.sleep(60)\n"
    )
    end = attempt.run(python(code), limits=limits(disk_reserve_bytes=4 << 20))
    assert (end.reason, end.signal) == ("disk_full", "SIGTERM")
    assert end.stdout_bytes == len(attempt.stdout) > 3 << 20
    lines = attempt.stdout.split(b"\n")[:-1]
    assert lines == sorted(lines)


def test_pipe_capture_waits_for_space_and_loses_nothing(
    disk: Callable[[int], TinyDisk], new_attempt: Callable[..., Attempt]
) -> None:
    """D1: not reading until there is space: the child just waits."""
    small = disk(4 << 20)
    attempt = new_attempt(small.folder / "attempt")
    ballast = small.fill(leave=1 << 20)
    code = "import os\nfor n in range(1600): os.write(1, b'%015d\\n' % n * 125)\n"
    attempt.start(python(code), capture=BOTH_PIPE, limits=limits(idle_timeout_sec=1))
    eventually(lambda: small.free() < 4096, "a full disk")
    # Longer than the idle limit: whoever waits for space is not idle.
    deadline = time.monotonic() + 2.5
    eventually(lambda: time.monotonic() > deadline, "the idle limit to pass")
    assert read_exit(attempt.dir) is None
    ballast.unlink()
    end = attempt.end()
    assert (end.reason, end.exit_code) == ("exited", 0)
    assert attempt.stdout == b"".join(b"%015d\n" % n * 125 for n in range(1600))


def test_pipe_capture_gives_up_on_a_disk_that_stays_full(
    disk: Callable[[int], TinyDisk], new_attempt: Callable[..., Attempt]
) -> None:
    """D1: up to a limit; exit.json and the last index record still fit, their room was reserved."""
    small = disk(4 << 20)
    attempt = new_attempt(small.folder / "attempt")
    small.fill(leave=1 << 20)
    end = attempt.run(
        python(CHATTY), capture=BOTH_PIPE, limits=limits(disk_wait_sec=1, grace_sec=1)
    )
    assert end.reason == "disk_full"
    assert end.stdout_bytes == len(attempt.stdout) > 500_000
    assert attempt.visible() == attempt.stdout


def test_a_run_can_be_cancelled_on_a_full_disk(
    disk: Callable[[int], TinyDisk], new_attempt: Callable[..., Attempt]
) -> None:
    """D1: where no file fits, a signal carries the wish."""
    small = disk(4 << 20)
    attempt = new_attempt(small.folder / "attempt")
    small.fill(leave=1 << 20)
    attempt.start(python(CHATTY), capture=BOTH_PIPE)
    eventually(lambda: small.free() < 4096, "a full disk")
    request_cancel(attempt.dir, "ada", "no space")
    eventually(lambda: attempt.living() == [], "the end of the agent")
    request_cancel(attempt.dir, "ada", "still no space", kill=True)
    end = attempt.end()
    assert (end.reason, end.cancel) == ("disk_full", Cancel("signal", "SIGTERM"))
    assert end.stdout_bytes == len(attempt.stdout) > 500_000


def test_output_that_never_fits_is_reported_after_a_normal_exit(
    disk: Callable[[int], TinyDisk], new_attempt: Callable[..., Attempt]
) -> None:
    """D1: exit.json says that the logs are not whole, whatever other limit has passed meanwhile."""
    small = disk(4 << 20)
    attempt = new_attempt(small.folder / "attempt")
    small.fill(leave=512 << 10)
    end = attempt.run(
        python("import os; os.write(1, b'x' * 900_000)"),
        capture=BOTH_PIPE,
        limits=limits(timeout_sec=0.9, disk_wait_sec=1.5),
    )
    assert (end.reason, end.exit_code) == ("disk_full", 0)
    assert end.error is not None and "is lost" in end.error["message"]
    assert end.stdout_bytes == len(attempt.stdout) < 900_000


def test_a_disk_without_any_space_is_a_clear_refusal(
    disk: Callable[[int], TinyDisk], new_attempt: Callable[..., Attempt]
) -> None:
    """D1: nothing is started that could not be recorded."""
    small = disk(1 << 20)
    attempt = new_attempt(small.folder / "attempt")
    small.fill(leave=0)
    with pytest.raises(SpawnFailed, match="No space left"):
        attempt.start(["touch", str(small.folder / "started")])
    assert not (small.folder / "started").exists()
