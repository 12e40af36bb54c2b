"""What a launched child is given, and what the driver is told."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from binderclip.supervisor import locks, processes
from binderclip.supervisor.launch import (
    Cancel,
    LaunchRefused,
    SpawnFailed,
    attempt_state,
    launch,
    read_exit,
    request_cancel,
)
from tests.supervisor.attempts import BOTH_FILE, BOTH_PIPE, Attempt, python

DESCRIBE = """
import json, os
print(json.dumps({"env": dict(os.environ), "cwd": os.getcwd(), "pid": os.getpid(),
                  "sid": os.getsid(0), "pgid": os.getpgid(0), "umask": os.umask(0)}))
"""


@pytest.mark.parametrize("code", [0, 1, 7, 255])
def test_the_exit_code_is_kept(attempt: Attempt, code: int) -> None:
    """A9: the exit code is known."""
    end = attempt.run(python(f"raise SystemExit({code})"))
    assert (end.reason, end.exit_code, end.signal) == ("exited", code, None)


def test_death_by_a_signal_is_named(attempt: Attempt) -> None:
    """A9: the signal is known, by name."""
    end = attempt.run(python("import os; os.kill(os.getpid(), 10)"))
    assert (end.reason, end.exit_code, end.signal) == ("exited", None, "SIGUSR1")


def test_the_child_gets_exactly_the_environment_given(attempt: Attempt, tmp_path: Path) -> None:
    """H5: nothing leaks from the driver or the supervisor."""
    env = {"GREETING": "grüß dich", "EMPTY": ""}
    attempt.run(python(DESCRIBE), env=env, cwd=str(tmp_path))
    seen = json.loads(attempt.stdout)
    expected = {"PATH": os.environ["PATH"], "PAPERCLIP_RUN_ID": attempt.run_id, **env}
    # The interpreter of the child itself adds this one in a C locale.
    seen["env"].pop("LC_CTYPE", None)
    assert seen["env"] == expected
    assert seen["cwd"] == str(tmp_path)


@pytest.mark.parametrize("capture", [BOTH_FILE, BOTH_PIPE])
def test_signals_of_the_child_are_neither_ignored_nor_blocked(
    attempt: Attempt, capture: object
) -> None:
    """D1: default signals and an empty mask, whatever the supervisor itself does."""
    # exec of /bin/cat shows the dispositions before any interpreter changed them.
    attempt.run(["cat", "/proc/self/status"], capture=capture)
    status = dict(line.split(":\t") for line in attempt.stdout.decode().splitlines())
    assert int(status["SigIgn"], 16) == 0
    assert int(status["SigBlk"], 16) == 0
    assert int(status["SigCgt"], 16) == 0


def test_the_child_has_no_other_descriptors(new_attempt: Callable[..., Attempt]) -> None:
    """D1: only 0, 1, 2 are handed on; the listing itself needs one more."""
    attempt = new_attempt()
    attempt.run(["ls", "/proc/self/fd"], capture=BOTH_PIPE)
    assert attempt.stdout.split() == [b"0", b"1", b"2", b"3"]


def test_the_child_leads_its_session_and_has_the_drivers_umask(attempt: Attempt) -> None:
    """A11: a process group of its own can be signalled as a whole."""
    before = os.umask(0o027)
    try:
        attempt.run(python(DESCRIBE))
    finally:
        os.umask(before)
    seen = json.loads(attempt.stdout)
    assert seen["pid"] == seen["sid"] == seen["pgid"]
    assert seen["umask"] == 0o027


@pytest.mark.parametrize("capture", [BOTH_FILE, BOTH_PIPE])
def test_a_megabyte_of_stdin_arrives(attempt: Attempt, capture: object) -> None:
    """A10: the prompt travels on stdin."""
    prompt = os.urandom(1 << 20)
    end = attempt.run(["cat"], prompt, capture=capture)
    assert attempt.stdout == prompt
    assert end.stdout_bytes == len(prompt)


def test_without_stdin_the_child_reads_the_end_of_file(attempt: Attempt) -> None:
    """A10: a child that asks for input does not hang."""
    assert attempt.run(["cat"]).exit_code == 0
    assert attempt.stdout == b""


def test_a_missing_command_is_named_with_advice(attempt: Attempt) -> None:
    """A9: command not found is told apart, and the attempt is complete."""
    with pytest.raises(SpawnFailed) as refusal:
        attempt.start(["no-such-agent", "--flag"])
    end = read_exit(attempt.dir)
    assert end is not None and end.reason == "spawn_failed"
    assert end.error == refusal.value.error
    assert end.error is not None and end.error["where"] == "exec"
    assert "no-such-agent was not found in PATH" in end.error["message"]
    assert attempt_state(attempt.dir) == "finished"
    assert attempt.stdout == b"" and "child" not in attempt.meta()


def test_a_missing_directory_is_named(attempt: Attempt, tmp_path: Path) -> None:
    """H3: the error names what is missing."""
    with pytest.raises(SpawnFailed, match="gone") as refusal:
        attempt.start(["true"], cwd=str(tmp_path / "gone"))
    assert refusal.value.error is not None
    assert refusal.value.error["where"] == "chdir"


def test_a_file_that_is_not_executable_is_named(attempt: Attempt, tmp_path: Path) -> None:
    """H3: the error says what to do."""
    script = tmp_path / "agent"
    script.write_text("#!/bin/sh\n")
    with pytest.raises(SpawnFailed, match=r"chmod \+x"):
        attempt.start([str(script)])


def test_a_missing_interpreter_is_hinted_at(attempt: Attempt, tmp_path: Path) -> None:
    """H3: the file exists, what its first line names does not."""
    script = tmp_path / "agent"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    with pytest.raises(SpawnFailed, match="interpreter named in its first line"):
        attempt.start(["agent"], env={"PATH": str(tmp_path)})


def test_too_long_arguments_point_to_stdin(attempt: Attempt) -> None:
    """A10: long prompts belong on stdin."""
    with pytest.raises(SpawnFailed, match="on stdin"):
        attempt.start(["true", "x" * (1 << 20)])


def test_a_directory_that_does_not_exist_is_refused(attempt: Attempt) -> None:
    """D1: without a directory there is no attempt."""
    request = attempt.request(["true"])
    attempt.path(".").rmdir()
    with pytest.raises(SpawnFailed, match="cannot be used"):
        launch(request)


def test_a_second_supervisor_leaves_while_the_first_one_lives(attempt: Attempt) -> None:
    """D1: a supervisor that cannot take the lock leaves without spawning."""
    attempt.start(["sleep", "60"])
    with pytest.raises(LaunchRefused) as refusal:
        launch(attempt.request(["touch", str(attempt.path("second"))]))
    assert refusal.value.reason == "locked"
    assert not attempt.path("second").exists()
    assert attempt_state(attempt.dir) == "supervised"


def test_a_finished_attempt_is_not_started_again(attempt: Attempt) -> None:
    """D1: a supervisor that finds exit.json leaves without spawning."""
    attempt.run(["true"])
    with pytest.raises(LaunchRefused) as refusal:
        launch(attempt.request(["touch", str(attempt.path("second"))]))
    assert refusal.value.reason == "finished"
    assert not attempt.path("second").exists()


def test_an_orphaned_attempt_is_not_started_twice(attempt: Attempt) -> None:
    """D1: what a dead supervisor began is adopted, never spawned again."""
    attempt.start(["sleep", "60"])
    attempt.kill_supervisor()
    assert attempt_state(attempt.dir) == "unattended"
    with pytest.raises(LaunchRefused) as refusal:
        launch(attempt.request(["true"]))
    assert refusal.value.reason == "started"


def test_the_lock_is_held_exactly_while_the_supervisor_lives(attempt: Attempt) -> None:
    """D1: held means alive."""
    attempt.start(["sleep", "60"])
    assert locks.held(attempt.path("lock"))
    attempt.kill_supervisor()
    assert not locks.held(attempt.path("lock"))


def test_meta_holds_the_facts_of_driver_and_supervisor(attempt: Attempt) -> None:
    """D1: what rebuilds the row is in meta.json."""
    launched = attempt.start(["sleep", "60"], meta={"adapter": "process", "env": {"A": "***"}})
    meta = attempt.meta()
    assert meta["adapter"] == "process" and meta["env"] == {"A": "***"}
    assert meta["runId"] == attempt.run_id and meta["attempt"] == 1
    assert meta["argv"] == ["sleep", "60"] and meta["cwd"] == "/"
    assert meta["bootId"] == processes.boot_id()
    assert meta["supervisor"]["pid"] == launched.supervisor_pid
    assert meta["child"]["pid"] == meta["child"]["pgid"] == launched.child_pid
    assert processes.alive(meta["child"]["pid"], meta["child"]["startTime"])
    assert meta["startedAt"] == launched.started_at
    assert attempt.path("meta.json").stat().st_mode & 0o777 == 0o600


def test_files_are_private_and_nothing_temporary_stays(attempt: Attempt) -> None:
    """D8: logs are readable by their owner only."""
    attempt.run(python("print('x')"), capture=BOTH_PIPE)
    names = {path.name for path in attempt.path(".").iterdir()}
    assert names == {"lock", "index", "stdout.log", "stderr.log", "meta.json", "exit.json"}
    assert {path.stat().st_mode & 0o777 for path in attempt.path(".").iterdir()} == {0o600}


def test_no_command_line_and_no_file_shows_a_secret(attempt: Attempt) -> None:
    """D8: secrets reach the child by its environment and nobody else."""
    secret = "s3cr3t-value-of-some-length"
    launched = attempt.start(
        ["sh", "-c", "sleep 60 # " + secret], env={"TOKEN": secret}, secret_env=["TOKEN"]
    )
    shown = processes.command(launched.supervisor_pid)
    assert secret not in shown
    assert secret not in os.fsdecode(b"\n".join(processes.environment(launched.supervisor_pid)))
    for path in attempt.path(".").iterdir():
        assert secret.encode() not in path.read_bytes(), path
    assert attempt.meta()["argv"] == ["sh", "-c", "sleep 60 # " + "*" * len(secret)]


def test_the_supervisor_is_detached(attempt: Attempt) -> None:
    """D1: own session, cwd /, no terminal, a name of its own, no zombie for the driver."""
    launched = attempt.start(["sleep", "60"])
    proc = Path(f"/proc/{launched.supervisor_pid}")
    assert os.getsid(launched.supervisor_pid) == launched.supervisor_pid
    assert (proc / "comm").read_text().strip() == "binderclip-sup"
    assert (proc / "cwd").readlink() == Path("/")
    assert {(proc / "fd" / str(n)).readlink() for n in range(3)} == {Path("/dev/null")}
    seen = processes.look(launched.supervisor_pid)
    assert seen is not None and seen.parent != os.getpid()


def test_a_hangup_does_not_disturb_the_supervisor(attempt: Attempt) -> None:
    """D1: it survives the terminal it was started from."""
    launched = attempt.start(["sleep", "60"])
    os.kill(launched.supervisor_pid, signal.SIGHUP)
    request_cancel(attempt.dir, "test", "over")
    end = attempt.end()
    assert (end.reason, end.cancel) == ("cancelled", Cancel("test", "over"))
