"""A spare interpreter becomes the supervisor of one attempt, or ends with its owner."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from binderclip.supervisor.spare import Spare
from tests.supervisor.attempts import BOTH_PIPE, Attempt, eventually

OWNER = """
import sys
from binderclip.supervisor.spare import Spare
spare = Spare()
print(spare._starter.wait(), flush=True)
print(spare._starter.pid, flush=True)
sys.stdin.read()
"""


def spares_of(session: int) -> list[int]:
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if os.getsid(int(entry.name)) == session:
                found.append(int(entry.name))
        except ProcessLookupError:
            continue
    return found


def test_a_spare_supervises_the_attempt_that_it_is_given(
    new_attempt: Callable[..., Attempt],
) -> None:
    """D1: detached like a cold one: a session of its own, and nothing inherited."""
    with Spare() as spare:
        attempt = new_attempt(nursery=spare)
        pid = attempt.start(["cat"], b"hello", capture=BOTH_PIPE).supervisor_pid
        end = attempt.end()
        assert (end.exit_code, attempt.stdout) == (0, b"hello")
        other = new_attempt(nursery=spare)
        again = other.start(["sleep", "60"]).supervisor_pid
    assert again != pid
    assert os.getsid(again) == again
    assert Path(f"/proc/{again}/comm").read_text() == "binderclip-sup\n"


def test_a_supervisor_that_was_a_spare_keeps_no_socket(
    new_attempt: Callable[..., Attempt],
) -> None:
    """D1: nothing of its driver is left in a supervisor."""
    with Spare() as spare:
        pid = new_attempt(nursery=spare).start(["sleep", "60"]).supervisor_pid
    assert os.getsid(pid) == pid
    links = [link.readlink() for link in Path(f"/proc/{pid}/fd").iterdir()]
    assert not [link for link in links if str(link).startswith("socket:")]


def test_a_spare_that_nobody_needs_ends() -> None:
    """A refused command leaves nothing behind."""
    spare = Spare()
    session = spare._starter.pid
    spare.close()
    eventually(lambda: spares_of(session) == [], "the spare has ended")
    assert spares_of(session) == []
    assert not spare.take("launch", [])


def test_a_spare_ends_with_a_killed_owner() -> None:
    """D1: kill -9 of the driver before it had an attempt."""
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"0\n"
        session = int(owner.stdout.readline())
        assert len(spares_of(session)) == 1
        os.kill(owner.pid, signal.SIGKILL)
    eventually(lambda: spares_of(session) == [], "the spare has ended")
    assert spares_of(session) == []


def test_a_dead_spare_is_replaced_by_a_fresh_interpreter(
    new_attempt: Callable[..., Attempt],
) -> None:
    """D1: killed between two steps, the launch goes on without it."""
    with Spare() as spare:
        spare._starter.wait()
        for pid in spares_of(spare._starter.pid):
            os.kill(pid, signal.SIGKILL)
        eventually(lambda: spares_of(spare._starter.pid) == [], "the spare is dead")
        end = new_attempt(nursery=spare).run(["true"])
    assert end.exit_code == 0
