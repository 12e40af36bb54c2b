"""Against a real sshd on loopback: connections, runs over there, and cutting them off."""

from __future__ import annotations

import http.server
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from binderclip.contract.errors import ConfigError
from binderclip.contract.ids import new_id
from binderclip.supervisor import processes
from binderclip.workspaces import relay
from binderclip.workspaces.environment import check_environment
from binderclip.workspaces.far import Unreachable
from binderclip.workspaces.git import Git
from binderclip.workspaces.relay import RemoteRun
from binderclip.workspaces.ssh import Ssh
from binderclip.workspaces.trip import Trip
from tests.supervisor.attempts import eventually
from tests.workspaces.conftest import commit, plain_git
from tests.workspaces.sshd import Sshd
from tests.workspaces.test_trip import NAME


@pytest.fixture
def there(tmp_path: Path) -> Path:
    """A directory that belongs to the other machine."""
    path = tmp_path / "there"
    path.mkdir()
    return path


@pytest.fixture
def ssh(sshd: Sshd, there: Path) -> Ssh:
    return sshd.target(there / "root")


def agent(there: Path, code: str, **more: Any) -> dict[str, Any]:
    """What to start over there: a Python program, in a run that no other test has.

    A supervisor ends everything that carries its run's mark, whoever started it.
    """
    run_id = new_id()
    return {
        "runId": run_id,
        "attempt": 1,
        "argv": [sys.executable, "-c", code],
        "env": {"PAPERCLIP_RUN_ID": run_id, "SECRET_TOKEN": "sesame-opens-it"},
        "cwd": str(there),
        "capture": {"stdout": "file", "stderr": "pipe"},
        "limits": {"timeout_sec": 60, "grace_sec": 2},
        "secrets": [],
        "secretEnv": ["SECRET_TOKEN"],
        "path": [],
        "replace": {},
        "stdin": None,
        "leaseSec": 120,
        **more,
    }


def remote_run(ssh: Ssh, there: Path, code: str, **more: Any) -> RemoteRun:
    options = {name: more.pop(name) for name in ("scratch", "api_port") if name in more}
    launch = agent(there, code, **more)
    return RemoteRun(
        ssh=ssh,
        attempt_dir=str(there / "root" / "runs" / launch["runId"] / "attempt-1"),
        launch=launch,
        **options,
    )


@contextmanager
def relayed(run: RemoteRun) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        relay.command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdin
    process.stdin.write(run.to_json())
    process.stdin.close()
    process.stdin = None
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def exit_of(run: RemoteRun) -> dict[str, Any] | None:
    path = Path(run.attempt_dir) / "exit.json"
    return json.loads(path.read_text()) if path.exists() else None


def alive(run: RemoteRun) -> list[int]:
    """Processes over there that carry a run's mark."""
    wanted = f"PAPERCLIP_RUN_ID={run.launch['runId']}".encode()
    pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return [pid for pid in pids if wanted in processes.environment(pid)]


def test_the_environment_test_looks_at_the_machine(ssh: Ssh, there: Path) -> None:
    """E4: the checks run there."""
    checks = check_environment(ssh, ["sh", "no-such-program"])
    found = {(check.code, check.level) for check in checks}
    assert {("ssh_connect", "info"), ("ssh_python", "info"), ("ssh_git", "info")} <= found
    assert ("ssh_command", "error") in found
    missing = check_environment(replace(ssh, python="no-such-python"))
    assert missing[-1].code == "ssh_python"
    assert missing[-1].level == "error"
    gone = check_environment(replace(ssh, in_place=str(there / "nothing")))
    assert ("ssh_in_place", "error") in {(check.code, check.level) for check in gone}


def test_a_host_whose_key_is_not_known_is_refused(sshd: Sshd, there: Path) -> None:
    """The key is verified by default; accepting a new one is a choice, and a warning."""
    (sshd.directory / "known").write_text("")
    (check,) = check_environment(sshd.target(there))
    assert (check.code, check.level) == ("ssh_connect", "error")
    assert "verification failed" in check.message
    checks = check_environment(sshd.target(there, known_hosts="accept-new"))
    assert [check.code for check in checks[:2]] == ["ssh_known_hosts", "ssh_connect"]


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({}, "host"),
        ({"host": "-oProxyCommand=evil"}, "host"),
        ({"host": "h; rm"}, "host"),
        ({"host": "h", "port": "22"}, "port"),
        ({"host": "h", "user": "-l"}, "user"),
        ({"host": "h", "knownHosts": "off"}, "knownHosts"),
        ({"host": "h", "password": "x"}, "password"),
        ({"host": 5}, "host"),
        ({"host": "h", "identityFile": "id_ed25519"}, "identityFile"),
        ({"host": "h", "remoteRoot": "copies"}, "remoteRoot"),
        ({"host": "h", "path": "/opt/bin"}, "path"),
        ({"host": "h", "path": ["bin"]}, "path"),
        ({"host": "h", "inPlace": "src\n"}, "inPlace"),
        ({"host": "h", "leaseSec": 0}, "leaseSec"),
        ({"host": "h", "leaseSec": "long"}, "leaseSec"),
        ({"host": "h", "paths": ["../other"]}, "paths"),
        ({"host": "h", "python": ""}, "python"),
    ],
)
def test_a_wrong_config_names_its_field(config: dict[str, Any], field: str) -> None:
    with pytest.raises(ConfigError) as problem:
        Ssh.from_config(config)
    assert list(problem.value.fields) == [field]


def test_an_agent_over_there_prints_here_and_ends_here(ssh: Ssh, there: Path) -> None:
    """W6: exact bytes of both streams, its input, its directory, its exit status."""
    code = (
        "import os, sys; sys.stdout.buffer.write(sys.stdin.buffer.read() * 50000)\n"
        "sys.stdout.write(os.getcwd()); sys.stderr.write('careful\\n'); sys.exit(3)"
    )
    run = remote_run(ssh, there, code, stdin=relay.encoded(b"\x00\xffline\n"))
    with relayed(run) as process:
        out, err = process.communicate(timeout=60)
    assert out == b"\x00\xffline\n" * 50000 + str(there).encode()
    assert (err, process.returncode) == (b"careful\n", 3)


def test_no_secret_is_in_an_argument_or_a_log(ssh: Ssh, there: Path) -> None:
    """D8: secrets go by standard input; over there they are masked as they are here."""
    code = (
        "import os, subprocess; print(os.environ['SECRET_TOKEN'], flush=True)\n"
        "print(subprocess.run(['ps', 'axww', '-o', 'args'], capture_output=True, text=True).stdout)"
    )
    run = remote_run(ssh, there, code)
    with relayed(run) as process:
        out, _ = process.communicate(timeout=60)
    assert out.startswith(b"***************\n")
    assert b"sesame" not in out
    kept = [path for path in there.rglob("*") if path.is_file()]
    assert [path for path in kept if b"sesame" in path.read_bytes()] == []


def test_files_that_are_lent_travel_and_their_paths_are_right_there(
    ssh: Ssh, there: Path, tmp_path: Path
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    (tmp_path / "skill.md").write_text("do it well")
    (scratch / "skill.md").symlink_to(tmp_path / "skill.md")
    code = "import sys; print(open(sys.argv[1]).read())"
    argv = [sys.executable, "-c", code, str(scratch / "skill.md")]
    moved = {str(scratch): "@scratch"}
    run = remote_run(ssh, there, code, argv=argv, replace=moved, scratch=str(scratch))
    with relayed(run) as process:
        out, err = process.communicate(timeout=60)
    assert (out, err) == (b"do it well\n", b"")


def test_a_program_that_is_missing_over_there_is_told(ssh: Ssh, there: Path) -> None:
    run = remote_run(ssh, there, "", argv=["no-such-agent"])
    with relayed(run) as process:
        _, err = process.communicate(timeout=60)
    assert process.returncode == 127
    assert b"no-such-agent was not found" in err


WAITING = (
    "import os, sys, time\n"
    "print('begun', flush=True)\n"
    "while not os.path.exists('go'): time.sleep(0.02)\n"
    "print('done', flush=True)\n"
)


def test_a_run_survives_a_connection_that_is_cut_and_comes_back(
    sshd: Sshd, ssh: Ssh, there: Path
) -> None:
    """W6: a short loss of the network; nothing is printed twice, nothing is missing."""
    run = remote_run(ssh, there, WAITING)
    with relayed(run) as process:
        assert process.stdout
        assert process.stdout.readline() == b"begun\n"
        sshd.stop()
        sshd.start()
        cut_all(sshd, ssh)
        (there / "go").touch()
        out, _ = process.communicate(timeout=60)
    assert (out, process.returncode) == (b"done\n", 0)


def cut_all(sshd: Sshd, ssh: Ssh) -> None:
    """End the shared connection from this side too, since its server may be of an older daemon."""
    ssh.close()
    sshd.cut()


def test_a_run_ends_when_its_lease_is_not_renewed(sshd: Sshd, ssh: Ssh, there: Path) -> None:
    """W6: the remote process tree dies with the run even when the connection stays cut."""
    code = (
        "import subprocess, sys, time\n"
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'],"
        " start_new_session=True)\n"
        "print('begun', flush=True)\ntime.sleep(600)"
    )
    run = remote_run(ssh, there, code, leaseSec=2)
    with relayed(run) as process:
        assert process.stdout
        assert process.stdout.readline() == b"begun\n"
        assert len(alive(run)) == 2
        process.kill()
        cut_all(sshd, ssh)
        eventually(lambda: exit_of(run) is not None, 60)
    ended = exit_of(run)
    assert ended is not None
    assert (ended["reason"], ended["cancel"]["by"]) == ("cancelled", "lease")
    eventually(lambda: alive(run) == [], 30)


def test_ending_the_relay_ends_the_agent(ssh: Ssh, there: Path) -> None:
    """A11: SIGTERM here is SIGTERM there, for the whole tree."""
    run = remote_run(ssh, there, WAITING)
    with relayed(run) as process:
        assert process.stdout
        assert process.stdout.readline() == b"begun\n"
        os.kill(process.pid, signal.SIGTERM)
        process.communicate(timeout=60)
    assert process.returncode == -signal.SIGTERM
    ended = exit_of(run)
    assert ended is not None
    assert ended["reason"] == "cancelled"
    assert alive(run) == []


def test_a_wish_to_end_that_did_not_arrive_is_told_again(ssh: Ssh, there: Path) -> None:
    """A11: a connection that fails at that moment does not let the agent go on."""
    python, broken = there / "python", there / "broken"
    python.write_text(
        f'#!/bin/sh\nif rm {broken} 2>/dev/null; then exit 1; fi\nexec {sys.executable} "$@"\n'
    )
    python.chmod(0o755)
    run = remote_run(replace(ssh, python=str(python)), there, WAITING)
    with relayed(run) as process:
        assert process.stdout
        assert process.stdout.readline() == b"begun\n"
        broken.touch()
        os.kill(process.pid, signal.SIGTERM)
        process.communicate(timeout=60)
    assert not broken.exists()
    ended = exit_of(run)
    assert ended is not None
    assert ended["reason"] == "cancelled"


def test_whatever_is_left_is_ended_before_the_work_comes_back(ssh: Ssh, there: Path) -> None:
    run = remote_run(ssh, there, WAITING)
    with relayed(run) as process:
        assert process.stdout
        assert process.stdout.readline() == b"begun\n"
        process.kill()
    told = ssh.far().ask("finish", attemptDir=run.attempt_dir)
    assert told == {"ended": True}
    assert alive(run) == []


def test_a_relay_that_was_killed_goes_on_with_the_same_agent(ssh: Ssh, there: Path) -> None:
    """D1: a second relay for the attempt starts nothing twice."""
    run = remote_run(ssh, there, WAITING)
    with relayed(run) as process:
        assert process.stdout
        assert process.stdout.readline() == b"begun\n"
        process.kill()
    (there / "go").touch()
    with relayed(run) as process:
        out, _ = process.communicate(timeout=60)
    assert (out, process.returncode) == (b"begun\ndone\n", 0)


def test_the_agent_reaches_a_listener_here_through_the_forward(ssh: Ssh, there: Path) -> None:
    """W6: a reverse forward to one port of this machine's loopback, and to nothing else."""

    class Listener(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"guarded")

        def log_message(self, *_: object) -> None:
            return

    code = (
        "import os, urllib.request\n"
        "print(urllib.request.urlopen(os.environ['PAPERCLIP_API_URL']).read().decode())"
    )
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Listener) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        run = remote_run(ssh, there, code, api_port=server.server_port)
        with relayed(run) as process:
            out, err = process.communicate(timeout=60)
        server.shutdown()
    assert (out, err) == (b"guarded\n", b"")


class TestRoundTrip:
    """W6 over a real connection."""

    def trip(self, ssh: Ssh, repository: Path, tmp_path: Path) -> Trip:
        copy = f"{ssh.root}/copies/{NAME}/project"
        return Trip(Git(repository), NAME, ssh.far(), copy, tmp_path / "restore.json")

    def test_work_goes_there_and_comes_back(
        self, ssh: Ssh, repository: Path, tmp_path: Path
    ) -> None:
        (repository / "dirty").write_text("dirty")
        self.trip(ssh, repository, tmp_path).out()
        copy = Path(ssh.root) / "copies" / NAME / "project"
        assert (copy / "dirty").read_text() == "dirty"
        done = commit(copy, "over there", c="sea\n")
        self.trip(ssh, repository, tmp_path).back()
        assert plain_git(repository, "rev-parse", "HEAD") == done
        assert plain_git(repository, "remote") == ""

    def test_a_restore_that_cannot_reach_the_machine_is_tried_again(
        self, sshd: Sshd, ssh: Ssh, repository: Path, tmp_path: Path
    ) -> None:
        trip = self.trip(ssh, repository, tmp_path)
        trip.out()
        done = commit(Path(ssh.root) / "copies" / NAME / "project", "there", c="sea\n")
        cut_all(sshd, ssh)
        sshd.stop()
        with pytest.raises(Unreachable):
            trip.back()
        sshd.start()
        self.trip(ssh, repository, tmp_path).back()
        assert plain_git(repository, "rev-parse", "HEAD") == done
