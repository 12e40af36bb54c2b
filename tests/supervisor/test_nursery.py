"""The nursery forks supervisors; it may die at any time."""

from __future__ import annotations

import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from binderclip.supervisor import processes
from binderclip.supervisor.launch import SpawnFailed, request_cancel
from binderclip.supervisor.nursery import start_nursery, stop_nursery
from tests.supervisor.attempts import BOTH_PIPE, Attempt, eventually, python, wait_for_end_of


@pytest.fixture
def nursery(tmp_path: Path) -> Iterator[tuple[str, int]]:
    path = str(tmp_path / "nursery.sock")
    pid = start_nursery(path)
    yield path, pid
    if processes.look(pid) is not None:
        os.kill(pid, signal.SIGKILL)


def children_of(pid: int) -> list[str]:
    """States of all children, zombies included."""
    states = []
    for stat_file in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat_file.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            states.append(fields[0])
    return states


def test_a_launch_through_the_nursery_is_its_child(
    nursery: tuple[str, int], new_attempt: Callable[..., Attempt]
) -> None:
    """D1: the nursery forks supervisors on request."""
    path, pid = nursery
    attempt = new_attempt(nursery=path)
    launched = attempt.start(["cat"], b"hello", capture=BOTH_PIPE)
    supervisor = processes.look(launched.supervisor_pid)
    assert supervisor is None or supervisor.parent == pid
    end = attempt.end()
    assert (end.exit_code, attempt.stdout) == (0, b"hello")


def test_a_forked_supervisor_has_its_own_session_and_no_socket(
    nursery: tuple[str, int], new_attempt: Callable[..., Attempt]
) -> None:
    """D1: detached like a cold one."""
    attempt = new_attempt(nursery=nursery[0])
    pid = attempt.start(["sleep", "60"]).supervisor_pid
    assert os.getsid(pid) == pid
    links = [link.readlink() for link in Path(f"/proc/{pid}/fd").iterdir()]
    assert not [link for link in links if str(link).startswith("socket:")]
    assert Path(f"/proc/{pid}/comm").read_text() == "binderclip-sup\n"


def test_finished_supervisors_leave_no_zombies(
    nursery: tuple[str, int], new_attempt: Callable[..., Attempt]
) -> None:
    """D1: finished supervisors vanish."""
    path, pid = nursery
    for _ in range(5):
        new_attempt(nursery=path).run(["true"])
    eventually(lambda: children_of(pid) == [], "no children of the nursery")
    assert children_of(pid) == []


def test_supervisors_outlive_a_killed_nursery_and_launches_go_on(
    nursery: tuple[str, int], new_attempt: Callable[..., Attempt]
) -> None:
    """D1: it holds nothing of any attempt; without it the same code starts cold."""
    path, pid = nursery
    running = new_attempt(nursery=path)
    running.start(["sleep", "60"])
    os.kill(pid, signal.SIGKILL)
    wait_for_end_of(pid)
    later = new_attempt(nursery=path)
    assert later.run(python("print('cold')")).exit_code == 0
    request_cancel(running.dir, "test", "over")
    assert running.end().reason == "cancelled"


def test_a_nursery_that_is_asked_to_stop_takes_its_socket_away(
    nursery: tuple[str, int], new_attempt: Callable[..., Attempt]
) -> None:
    """D1: it ends when asked, its supervisors go on."""
    path, pid = nursery
    running = new_attempt(nursery=path)
    running.start(["sleep", "60"])
    stop_nursery(path)
    wait_for_end_of(pid)
    assert not Path(path).exists()
    assert processes.look(running.meta()["supervisor"]["pid"]) is not None


def test_the_socket_is_the_owners_only(nursery: tuple[str, int]) -> None:
    """D1: whoever reaches it can start programs."""
    assert stat.S_IMODE(Path(nursery[0]).stat().st_mode) == 0o600


def test_the_nursery_is_detached_and_clean(nursery: tuple[str, int]) -> None:
    """D1: own session, clean environment, nothing of the worker's."""
    pid = nursery[1]
    names = {v.partition(b"=")[0] for v in processes.environment(pid)} - {b""}
    assert names <= {b"LANG", b"PATH", b"LD_LIBRARY_PATH", b"LC_CTYPE"}
    assert os.getsid(pid) == pid
    seen = processes.look(pid)
    assert seen is not None and seen.parent != os.getpid()


def test_a_missing_nursery_and_a_path_too_long_for_a_socket_start_cold(
    tmp_path: Path, new_attempt: Callable[..., Attempt]
) -> None:
    """D1: dead, not started yet, or unreachable."""
    for path in (str(tmp_path / "none.sock"), str(tmp_path / ("x" * 200))):
        assert new_attempt(nursery=path).run(["true"]).exit_code == 0


def test_noise_on_the_socket_does_not_disturb_it(
    nursery: tuple[str, int], new_attempt: Callable[..., Attempt]
) -> None:
    """D1: one connection is one request."""
    for noise in (b"", b"launch\n", b"\xff" * 100):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(nursery[0])
            connection.sendall(noise)
    assert new_attempt(nursery=nursery[0]).run(["true"]).exit_code == 0
    assert processes.look(nursery[1]) is not None


def test_spawn_errors_come_back_through_the_nursery(
    nursery: tuple[str, int], new_attempt: Callable[..., Attempt]
) -> None:
    """A9: command not found is the same either way."""
    with pytest.raises(SpawnFailed, match="was not found in PATH"):
        new_attempt(nursery=nursery[0]).start(["no-such-agent"])


def test_a_new_nursery_replaces_a_stale_socket(tmp_path: Path) -> None:
    """D1: after a crash the worker just starts another one."""
    path = str(tmp_path / "nursery.sock")
    first = start_nursery(path)
    os.kill(first, signal.SIGKILL)
    wait_for_end_of(first)
    second = start_nursery(path)
    stop_nursery(path)
    wait_for_end_of(second)
    assert second != first


def test_a_nursery_ends_with_the_process_that_started_it(
    tmp_path: Path, new_attempt: Callable[..., Attempt]
) -> None:
    """D1: a worker that was killed leaves its supervisors behind, and nothing else."""
    path = str(tmp_path / "nursery.sock")
    code = "import sys; from binderclip.supervisor.nursery import start_nursery as start\n"
    code += "print(start(sys.argv[1]), flush=True); sys.stdin.read()"
    worker = subprocess.Popen(
        [sys.executable, "-c", code, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with worker:
        assert worker.stdout is not None
        nursery = int(worker.stdout.readline())
        running = new_attempt(nursery=path)
        running.start(["cat"], b"still here")
        worker.kill()
    wait_for_end_of(nursery)
    assert running.end().exit_code == 0
    assert running.stdout == b"still here"


def test_a_path_too_long_for_a_nursery_is_an_error(tmp_path: Path) -> None:
    """D1: the worker then goes without."""
    with pytest.raises(OSError, match="too long"):
        start_nursery(str(tmp_path / ("x" * 200)))
