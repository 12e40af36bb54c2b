"""Nothing that an agent started outlives its run."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from binderclip.supervisor import processes
from binderclip.supervisor.cgroup import Cgroup
from binderclip.supervisor.launch import Limits, request_cancel
from tests.supervisor.attempts import BOTH_FILE, BOTH_PIPE, Attempt, eventually, python

OPPONENTS = Path(__file__).with_name("opponents.py")
SOURCE = Path(processes.__file__).parents[2]
SHORT = Limits(0, 0, 0.2, 0, 0)


def opponent(kind: str) -> list[str]:
    return [sys.executable, "-I", "-S", str(OPPONENTS), kind]


@pytest.mark.parametrize("capture", [BOTH_FILE, BOTH_PIPE], ids=["file", "pipe"])
def test_a_daemon_in_a_session_of_its_own_dies_with_the_run(
    attempt: Attempt, capture: object
) -> None:
    """D1: a daemon that an agent left behind is ended and listed."""
    end = attempt.run(opponent("daemon"), capture=capture)
    assert (end.reason, end.exit_code) == ("exited", 0)
    assert [left.command for left in end.leftovers] == [" ".join(opponent("daemon"))]
    assert not attempt.living()


def test_a_leftover_that_ignores_sigterm_is_killed(attempt: Attempt) -> None:
    """D1: SIGTERM, at most five seconds, SIGKILL."""
    end = attempt.run(opponent("stubborn_daemon"))
    assert end.exit_code == 0 and end.killed
    assert len(end.leftovers) == 1
    assert not attempt.living()


@pytest.mark.parametrize("kind", ["chain", "chains", "bush"])
def test_processes_that_keep_forking_are_all_killed(attempt: Attempt, kind: str) -> None:
    """A11: nothing of the tree is left alive."""
    attempt.start(opponent(kind), limits=SHORT)
    attempt.wait_until_visible(b"ready\n")
    request_cancel(attempt.dir, "test", "enough", kill=True)
    end = attempt.end()
    assert end.reason == "cancelled" and end.killed
    assert not attempt.living()


@pytest.mark.parametrize("kind", ["daemon", "chain", "chains", "bush"])
def test_without_a_cgroup_the_ladder_kills_them_too(kind: str) -> None:
    """A11: stop first, kill in rounds, until nobody is left."""
    marker = f"PAPERCLIP_RUN_ID=ladder-{kind}-{os.getpid()}"
    ladder = Path(__file__).with_name("ladder.py")
    command = [sys.executable, "-I", "-S", str(ladder), str(SOURCE), marker, *opponent(kind)]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=100, check=True)
    assert answer.stdout == "left: 0, status seen: True\n"
    assert processes.carrying(processes.table(), marker) == []


def test_a_stray_that_left_the_tree_is_found_by_the_marker(attempt: Attempt) -> None:
    """D1: what still escapes is found by the run id in its environment."""
    env = {"PATH": os.environ["PATH"], "PAPERCLIP_RUN_ID": attempt.run_id}
    with subprocess.Popen(["sleep", "60"], env=env) as stray:
        end = attempt.run(["true"])
        assert [left.pid for left in end.leftovers] == [stray.pid]
        assert stray.wait() == -15


def test_a_longer_run_id_is_not_mistaken_for_ours(attempt: Attempt) -> None:
    """D1: the marker is matched exactly, between NULs."""
    env = {"PAPERCLIP_RUN_ID": attempt.run_id + "0", "NOTE": "PAPERCLIP_RUN_ID=" + attempt.run_id}
    with subprocess.Popen(["/bin/sleep", "60"], env=env) as other:
        end = attempt.run(["true"])
        assert end.leftovers == ()
        assert other.poll() is None
        other.kill()


def test_the_driver_is_never_taken_for_a_leftover(attempt: Attempt) -> None:
    """D1: never the driver or anything above us, not even with the marker in its environment."""
    code = (
        "import sys; sys.path[:0] = [sys.argv[1], sys.argv[2]]\n"
        "from binderclip.supervisor.launch import Request, launch, read_exit\n"
        "from tests.supervisor.attempts import wait_for_end_of\n"
        "asked = Request(sys.argv[3], sys.argv[4], 1, ['/bin/true'], {}, '/')\n"
        "wait_for_end_of(launch(asked).supervisor_pid)\n"
        "print('driver lives', read_exit(sys.argv[3]).leftovers)\n"
    )
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", code, str(SOURCE), str(root), attempt.dir, attempt.run_id]
    env = {**os.environ, "PAPERCLIP_RUN_ID": attempt.run_id}
    answer = subprocess.run(command, capture_output=True, text=True, env=env, check=True)
    assert answer.stdout == "driver lives ()\n"


def test_a_run_inside_a_run_ends_with_it(
    attempt: Attempt, new_attempt: Callable[..., Attempt]
) -> None:
    """D1: a nested run has its own marker and supervisor, and does not outlive the outer run."""
    inner = new_attempt()
    code = (
        "import sys, time; sys.path.insert(0, sys.argv[1])\n"
        "from binderclip.supervisor.launch import Limits, Request, launch\n"
        "env = {'PAPERCLIP_RUN_ID': sys.argv[3]}\n"
        "asked = Request(sys.argv[2], sys.argv[3], 1, ['/bin/sleep', '60'], env, '/')\n"
        "launch(asked)\n"
        "print('ready', flush=True)\n"
        "time.sleep(60)\n"
    )
    command = [sys.executable, "-c", code, str(SOURCE), inner.dir, inner.run_id]
    attempt.start(command)
    attempt.wait_until_visible(b"ready\n")
    assert inner.living()
    request_cancel(attempt.dir, "test", "outer is over")
    assert attempt.end().reason == "cancelled"
    assert not attempt.living() and not inner.living()
    assert inner.path("exit.json").exists()


def test_the_first_status_of_the_main_child_counts(attempt: Attempt) -> None:
    """D1: reaping others meanwhile does not swallow or replace it."""
    code = (
        "import os\n"
        "for n in range(40):\n"
        "    if os.fork() == 0: os.setsid(); os._exit(n)\n"
        "os._exit(42)\n"
    )
    assert attempt.run(python(code)).exit_code == 42


def test_the_cgroup_of_an_attempt_is_removed_at_its_end(attempt: Attempt) -> None:
    """D1: a cgroup is used where one can be made, and leaves no trace."""
    attempt.start(opponent("daemon"))
    attempt.end()
    assert not Path(attempt.meta().get("cgroup", "/nowhere")).is_dir()


def test_a_cgroup_knows_and_kills_its_members(tmp_path: Path) -> None:
    """D1: cgroup.kill, where a cgroup can be made; where not, nothing pretends to be one."""
    group = Cgroup.make(f"binderclip-test-{os.getpid()}")
    if group is None:
        assert Cgroup(str(tmp_path / "none")).kill() is False
        return
    with subprocess.Popen(["sleep", "60"]) as member:
        Path(group.path, "cgroup.procs").write_text(str(member.pid))
        assert group.members() == [member.pid]
        assert group.kill()
        assert member.wait() == -9
    eventually(group.remove, "the removal of an empty group")
    assert not Path(group.path).is_dir()


def test_a_command_name_with_parentheses_is_read_right() -> None:
    """D1: fields of /proc/PID/stat count from the last parenthesis."""
    code = "open('/proc/self/comm', 'w').write('a) S 1 (b'); print(flush=True); input()"
    with subprocess.Popen(python(code), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None and child.stdout.readline() == b"\n"
        seen = processes.look(child.pid)
        assert seen is not None and seen.parent == os.getpid()
        assert processes.alive(child.pid, seen.start)
        assert not processes.alive(child.pid, seen.start + 1)
        assert not processes.send(child.pid, seen.start + 1, 9)
        child.kill()


def test_a_zombie_counts_as_dead() -> None:
    """D1: an init that does not reap must not keep a run alive."""
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert processes.look(pid) is None
    os.waitpid(pid, 0)


def test_supervisors_of_other_runs_are_not_touched(new_attempt: Callable[..., Attempt]) -> None:
    """D1: the tree of one run is not that of another."""
    one, other = new_attempt(), new_attempt()
    one.start(["sleep", "60"])
    other.run(opponent("daemon"))
    assert one.living() == [one.meta()["child"]["pid"]]
