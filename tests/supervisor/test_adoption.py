"""A supervisor dies; another one takes over, and nothing is lost or done twice."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from binderclip.supervisor import processes
from binderclip.supervisor.launch import (
    Cancel,
    Capture,
    LaunchRefused,
    Limits,
    attempt_state,
    declare_dead,
    read_exit,
    request_cancel,
)
from tests.supervisor.attempts import (
    BOTH_FILE,
    BOTH_PIPE,
    Attempt,
    eventually,
    python,
    wait_for_end_of,
)

BOTH_WAYS = pytest.mark.parametrize("capture", [BOTH_FILE, BOTH_PIPE], ids=["file", "pipe"])
COUNT = (
    "import os, sys, time\n"
    "for n in range(int(sys.argv[1])):\n"
    "    os.write(1, b'line %06d\\n' % n)\n"
    "    time.sleep(0.002)\n"
    "    while n == 20 and not os.path.exists(sys.argv[2]): time.sleep(0.01)\n"
)


def count(lines: int, go: Path) -> list[str]:
    """Print so many lines, but wait after the twentieth until `go` exists."""
    return [*python(COUNT), str(lines), str(go)]


def counted(lines: int) -> bytes:
    return b"".join(b"line %06d\n" % n for n in range(lines))


@BOTH_WAYS
def test_a_living_child_is_adopted_and_notices_nothing(attempt: Attempt, capture: Capture) -> None:
    """D1: index and capture go on; the exit status cannot be had."""
    go = attempt.path("go")
    first = attempt.start(count(400, go), capture=capture)
    attempt.wait_until_visible(b"line 000020\n")
    attempt.kill_supervisor()
    go.touch()
    assert attempt_state(attempt.dir) == "unattended"
    second = attempt.adopt()
    assert second.child_pid == first.child_pid and second.started_at == first.started_at
    assert attempt.meta()["supervisor"]["pid"] == second.supervisor_pid
    end = attempt.end()
    assert (end.reason, end.exit_code, end.signal, end.adopted) == ("exited", None, None, True)
    assert attempt.visible() == attempt.stdout == counted(400)
    ends = [end for _, _, end in attempt.index()]
    assert ends == sorted(set(ends))


@BOTH_WAYS
def test_output_of_a_child_that_ended_unattended_is_kept(
    attempt: Attempt, capture: Capture
) -> None:
    """D1: the driver holds the FIFO open, so what sits in it waits for the adopter."""
    go = attempt.path("go")
    launched = attempt.start(count(200, go), capture=capture)
    attempt.wait_until_visible(b"line 000020\n")
    attempt.kill_supervisor()
    go.touch()
    assert launched.child_pid is not None
    wait_for_end_of(launched.child_pid)
    assert attempt.adopt().child_pid is None
    end = attempt.end()
    assert (end.reason, end.exit_code, end.adopted) == ("exited", None, True)
    assert attempt.visible() == attempt.stdout == counted(200)
    assert not attempt.path("stdout.fifo").exists()


@BOTH_WAYS
def test_secrets_printed_while_nobody_watched_are_masked(
    attempt: Attempt, capture: Capture
) -> None:
    """D8: the adopter finds the values in the living child and masks from the last record on."""
    code = (
        "import os, time\n"
        "os.write(1, b'ready\\n')\n"
        "while not os.path.exists(os.environ['GO']): time.sleep(0.01)\n"
        "os.write(1, os.environ['TOKEN'].encode() + b' and a given-value\\n')\n"
        "os.write(1, b'done\\n')\n"
        "time.sleep(60)\n"
    )
    go = attempt.path("go")
    env = {"TOKEN": "value-that-nobody-sees", "GO": str(go)}
    attempt.start(python(code), capture=capture, env=env, secret_env=["TOKEN"])
    attempt.wait_until_visible(b"ready\n")
    attempt.kill_supervisor()
    go.touch()
    if capture is BOTH_FILE:
        eventually(lambda: b"done" in attempt.stdout, "unattended output")
    attempt.adopt(secrets=["given-value"])
    attempt.wait_until_visible(b"done\n")
    assert attempt.visible() == b"ready\n" + b"*" * 22 + b" and a " + b"*" * 11 + b"\ndone\n"
    assert b"nobody-sees" not in attempt.stdout


def test_limits_count_from_the_first_start(attempt: Attempt) -> None:
    """D1: the wall clock is that of the attempt, not of the adopter."""
    limits = Limits(3, 0, 5, 0, 0)
    attempt.start(["sleep", "60"], limits=limits)
    attempt.kill_supervisor()
    meta = json.loads(attempt.path("meta.json").read_text())
    meta["startedAt"] = re.sub(r"^\d{4}", "2001", meta["startedAt"])
    attempt.path("meta.json").write_text(json.dumps(meta))
    attempt.adopt()
    end = attempt.end()
    assert (end.reason, end.adopted) == ("timeout", True)
    assert not attempt.living()


def test_an_adopted_run_can_be_cancelled(attempt: Attempt) -> None:
    """D1: cancel goes on."""
    attempt.start(["sleep", "60"], capture=BOTH_PIPE)
    attempt.kill_supervisor()
    attempt.adopt()
    request_cancel(attempt.dir, "ada", "enough")
    end = attempt.end()
    assert (end.reason, end.cancel) == ("cancelled", Cancel("ada", "enough"))
    assert not attempt.living()


def test_a_cancel_from_the_time_without_supervisor_is_obeyed(attempt: Attempt) -> None:
    """D1: the wish is a file."""
    attempt.start(["sleep", "60"])
    attempt.kill_supervisor()
    request_cancel(attempt.dir, "ada", "enough")
    attempt.adopt()
    assert attempt.end().reason == "cancelled"


def test_leftovers_of_an_adopted_run_are_ended(attempt: Attempt) -> None:
    """D1: later daemons are found by the run id in their environment or by the cgroup."""
    code = (
        "import os, time\n"
        "os.write(1, b'ready\\n')\n"
        "while not os.path.exists(os.environ['GO']): time.sleep(0.01)\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork() == 0: time.sleep(60)\n"
        "    os._exit(0)\n"
        "os.wait()\n"
    )
    go = attempt.path("go")
    attempt.start(python(code), env={"GO": str(go)})
    attempt.wait_until_visible(b"ready\n")
    attempt.kill_supervisor()
    attempt.adopt()
    go.touch()
    end = attempt.end()
    assert len(end.leftovers) == 1 and not end.killed
    assert not attempt.living()


def test_leftovers_of_a_child_that_is_gone_are_ended(attempt: Attempt) -> None:
    """D1: also when the main child ended before the adoption."""
    code = "import os, time\nif os.fork() == 0: os.setsid(); time.sleep(60)\ntime.sleep(60)\n"
    launched = attempt.start(python(code))
    eventually(lambda: len(attempt.living()) == 2, "the grandchild")
    attempt.kill_supervisor()
    assert launched.child_pid is not None
    os.kill(launched.child_pid, signal.SIGKILL)
    wait_for_end_of(launched.child_pid)
    attempt.adopt()
    end = attempt.end()
    assert end.adopted and len(end.leftovers) == 1
    assert not attempt.living()


def test_an_attempt_that_never_began_is_declared_dead(attempt: Attempt) -> None:
    """D1: whoever declares an attempt dead takes the lock first and says aborted."""
    end = declare_dead(attempt.dir)
    assert end is not None
    assert (end.reason, end.exit_code, end.adopted) == ("aborted", None, True)
    assert end.error is not None and "before the program was started" in end.error["message"]


def test_an_attempt_whose_supervisor_died_before_the_spawn_is_aborted(attempt: Attempt) -> None:
    """D1: nothing ever spawned and nothing alive."""
    attempt.start(["true"])
    attempt.end()
    meta = attempt.meta()
    del meta["child"], meta["startedAt"]
    attempt.path("meta.json").write_text(json.dumps(meta))
    attempt.path("exit.json").unlink()
    end = declare_dead(attempt.dir)
    assert end is not None and end.reason == "aborted"


def test_a_child_that_was_not_yet_recorded_is_found_by_the_marker(attempt: Attempt) -> None:
    """D1: the supervisor died between the spawn and its record of it."""
    launched = attempt.start(["sleep", "60"])
    attempt.kill_supervisor()
    meta = attempt.meta()
    del meta["child"], meta["startedAt"]
    attempt.path("meta.json").write_text(json.dumps(meta))
    assert attempt.adopt().child_pid == launched.child_pid
    request_cancel(attempt.dir, "test", "over")
    assert attempt.end().reason == "cancelled"


def test_a_pid_that_belongs_to_somebody_else_is_left_alone(attempt: Attempt) -> None:
    """D1: a process is its pid and its start time."""
    attempt.start(["true"])
    attempt.end()
    meta = attempt.meta()
    meta["child"]["pid"] = os.getpid()
    attempt.path("meta.json").write_text(json.dumps(meta))
    attempt.path("exit.json").unlink()
    end = declare_dead(attempt.dir)
    assert end is not None and end.reason == "exited"
    assert processes.look(os.getpid()) is not None


def test_an_attempt_of_an_earlier_boot_has_nobody_alive(attempt: Attempt) -> None:
    """D1: start times mean nothing across boots."""
    attempt.start(["sleep", "60"])
    attempt.kill_supervisor()
    meta = attempt.meta()
    meta["bootId"] = "another boot"
    meta["marker"] = ""
    meta.pop("cgroup", None)
    attempt.path("meta.json").write_text(json.dumps(meta))
    assert attempt.adopt().child_pid is None
    assert attempt.end().reason == "exited"


def test_nobody_adopts_what_is_supervised_or_finished(attempt: Attempt) -> None:
    """D1: the lock decides."""
    attempt.start(["sleep", "60"])
    with pytest.raises(LaunchRefused) as refusal:
        Attempt.adopt(attempt)
    assert refusal.value.reason == "locked"
    assert declare_dead(attempt.dir) is None
    request_cancel(attempt.dir, "test", "over")
    end = attempt.end()
    with pytest.raises(LaunchRefused) as refusal:
        Attempt.adopt(attempt)
    assert refusal.value.reason == "finished"
    assert declare_dead(attempt.dir) == end


def test_an_adopter_can_be_adopted(attempt: Attempt) -> None:
    """D1: it is a supervisor like any other; file capture never loses a byte."""
    attempt.start(count(600, attempt.path(".")))
    attempt.wait_until_visible(b"line 000010\n")
    for _ in range(3):
        attempt.kill_supervisor()
        attempt.adopt()
    attempt.end()
    assert attempt.visible() == attempt.stdout == counted(600)


def test_truncation_while_unattended_is_noticed(attempt: Attempt) -> None:
    """D1: the guard holds across supervisors."""
    attempt.start(python("import time; print('some line', flush=True); time.sleep(60)"))
    attempt.wait_until_visible(b"some line\n")
    attempt.kill_supervisor()
    os.truncate(attempt.path("stdout.log"), 3)
    attempt.adopt()
    request_cancel(attempt.dir, "test", "over")
    end = attempt.end()
    assert [(cut.stream, cut.at) for cut in end.truncated] == [("stdout", 10)]
    assert end.stdout_bytes == len(attempt.stdout) >= 10


FLOOD = (
    "import os, sys, time\n"
    "n = 0\n"
    "while not os.path.exists(sys.argv[1]):\n"
    "    os.write(1, b''.join(b'%015d\\n' % m for m in range(n, n + 4096)))\n"
    "    n += 4096\n"
    "    time.sleep(0.001)\n"
)


def test_killing_in_the_middle_of_a_flood_loses_one_read_at_most(attempt: Attempt) -> None:
    """D1: in pipe capture the read in flight is lost with its reader; all the rest is there."""
    go = attempt.path("go")
    attempt.start([*python(FLOOD), str(go)], capture=BOTH_PIPE)
    attempt.wait_until_visible(b"000000000020000\n")
    attempt.kill_supervisor()
    attempt.adopt()
    go.touch()
    attempt.end()
    log = attempt.stdout
    count = int(log[-16:]) + 1
    whole = b"".join(b"%015d\n" % n for n in range(count))
    pairs = enumerate(zip(whole, log, strict=False))
    same = next((at for at, (told, kept) in pairs if told != kept), len(log))
    assert count % 4096 == 0
    assert 0 <= len(whole) - len(log) <= 256 << 10
    assert whole.endswith(log[same:])
    assert attempt.visible() == log


@pytest.mark.parametrize("broken", ["[]", "{", ""])
def test_a_broken_meta_file_does_not_keep_an_attempt_open(attempt: Attempt, broken: str) -> None:
    """D1: it is written down, and nobody waits for ever."""
    attempt.path("meta.json").write_text(broken)
    end = declare_dead(attempt.dir)
    assert end is not None and end.reason == "aborted"
    assert "Error" in attempt.complaints()


def test_a_broken_meta_file_does_not_deny_what_the_agent_printed(attempt: Attempt) -> None:
    """D1: aborted means that nothing ran, and here something did."""
    attempt.path("meta.json").write_text("{")
    attempt.path("stdout.log").write_bytes(b"said\n")
    end = declare_dead(attempt.dir)
    assert end is not None and (end.reason, end.stdout_bytes) == ("exited", 5)


@pytest.mark.parametrize("broken", ["", "{", "[]", '{"reason": "exited"}'])
def test_a_broken_exit_file_is_an_end_of_which_nothing_is_known(
    attempt: Attempt, broken: str
) -> None:
    """D1: a power cut can leave one; the attempt stays ended and its exit status unknown."""
    attempt.path("exit.json").write_text(broken)
    end = read_exit(attempt.dir)
    assert end is not None
    assert (end.reason, end.exit_code, end.signal) == ("exited", None, None)
    assert end.error is not None and "exit.json is damaged" in end.error["message"]
    assert attempt_state(attempt.dir) == "finished"


def test_killing_at_any_moment_leaves_an_attempt_that_can_be_finished(
    new_attempt: Callable[..., Attempt],
) -> None:
    """D1: whatever the supervisor was doing, an adopter completes the record."""
    for delay in (0.0, 0.001, 0.003, 0.01, 0.03):
        attempt = new_attempt()
        attempt.start(count(20, attempt.path(".")))
        time.sleep(delay)
        attempt.kill_supervisor()
        if read_exit(attempt.dir) is None:
            attempt.adopt()
            attempt.end()
        end = read_exit(attempt.dir)
        assert end is not None and end.reason == "exited"
        assert attempt.stdout == counted(20)
