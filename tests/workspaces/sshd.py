"""A real sshd on loopback, with keys, config and a port of its own, which can be cut off."""

from __future__ import annotations

import getpass
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from binderclip.workspaces.ssh import Ssh


class Sshd:
    """The daemon; its clients' keys lie in the same directory."""

    def __init__(
        self, directory: Path, host: str = "127.0.0.1", inside: tuple[str, ...] = ()
    ) -> None:
        """`inside` is the beginning of a command that runs the rest of it somewhere else."""
        self.directory = directory
        self.host = host
        self._inside = inside
        self.port = _free_port()
        self._process: subprocess.Popen[bytes] | None = None
        for name in ("host", "user"):
            key = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(directory / name)]
            subprocess.run(key, check=True)
        shutil.copy(directory / "user.pub", directory / "authorized")
        host_key = (directory / "host.pub").read_text()
        (directory / "known").write_text(f"[{host}]:{self.port} {host_key}")
        (directory / "config").write_text(
            f"Port {self.port}\nListenAddress {host}\nHostKey {directory / 'host'}\n"
            f"AuthorizedKeysFile {directory / 'authorized'}\nPidFile none\nStrictModes no\n"
            "UsePAM no\nPasswordAuthentication no\nAllowTcpForwarding yes\n"
            "PermitRootLogin yes\nMaxSessions 50\nMaxStartups 50\n"
        )

    def start(self) -> None:
        if os.getuid() == 0:
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        command = [*self._inside, "/usr/sbin/sshd", "-D", "-e", "-f"]
        command.append(str(self.directory / "config"))
        with (self.directory / "log").open("ab") as log:
            self._process = subprocess.Popen(command, stderr=log, stdin=subprocess.DEVNULL)
        _until_listening(self.host, self.port)

    def stop(self) -> None:
        """Take no more connections; those that are open stay."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait()
            self._process = None

    def cut(self) -> None:
        """End every open connection, as if the network had."""
        assert self._process is not None
        for pid in _descendants(self._process.pid):
            if _command(pid).startswith("sshd"):
                os.kill(pid, signal.SIGKILL)

    def target(self, root: Path, **more: object) -> Ssh:
        return Ssh(
            host=self.host,
            port=self.port,
            user=getpass.getuser(),
            identity_file=str(self.directory / "user"),
            known_hosts_file=str(self.directory / "known"),
            root=str(root),
            control=str(self.directory),
            **more,  # type: ignore[arg-type]
        )


@contextmanager
def running(host: str = "127.0.0.1", inside: tuple[str, ...] = ()) -> Iterator[Sshd]:
    """A daemon for as long as the block lasts; its directory has a short name, for sockets."""
    with tempfile.TemporaryDirectory(prefix="bcs-") as folder:
        daemon = Sshd(Path(folder), host, inside)
        daemon.start()
        try:
            yield daemon
        finally:
            daemon.target(Path(folder)).close()
            daemon.cut()
            daemon.stop()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _until_listening(host: str, port: int) -> None:
    deadline = time.monotonic() + 20
    while True:
        try:
            socket.create_connection((host, port), 1).close()
            return
        except ConnectionRefusedError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def _descendants(pid: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    found, todo = [], [pid]
    while todo:
        below = children.get(todo.pop(), [])
        found += below
        todo += below
    return found


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text()
    except OSError:
        return ""
