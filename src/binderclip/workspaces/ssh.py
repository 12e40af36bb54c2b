"""Another machine by the system's ssh: one connection for everything, its host key verified.

No secret is ever part of a command line: what is said goes through standard input.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import stat
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from binderclip.contract.errors import WorkspaceError
from binderclip.workspaces.far import Far, Unreachable, outpost_file
from binderclip.workspaces.sshconfig import check

DEFAULT_ROOT = "~/.binderclip-remote"
_CONNECT_SEC = 15
_KEYS = {
    "host": "host",
    "port": "port",
    "user": "user",
    "identityFile": "identity_file",
    "knownHosts": "known_hosts",
    "knownHostsFile": "known_hosts_file",
    "remoteRoot": "root",
    "python": "python",
    "path": "path",
    "inPlace": "in_place",
    "leaseSec": "lease_sec",
    "paths": "paths",
}


@dataclass(frozen=True)
class Ssh:
    """How to reach a machine, and where binderclip keeps its things there."""

    host: str
    port: int | None = None
    user: str | None = None
    identity_file: str | None = None
    known_hosts: str = "verify"
    """`verify` needs a known key; `accept-new` takes the key of a host never seen before."""
    known_hosts_file: str | None = None
    root: str = DEFAULT_ROOT
    python: str = "python3"
    path: tuple[str, ...] = ()
    """Directories in front of PATH over there."""
    in_place: str | None = None
    """A checkout that lives over there: runs work in it, and nothing travels."""
    lease_sec: float = 120.0
    """How long a run goes on without hearing from this machine."""
    paths: tuple[str, ...] = ()
    """Ignored paths that travel all the same."""
    control: str = field(default_factory=lambda: _control_directory())

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Ssh:
        """Read an environment's config; ConfigError names the field that is wrong."""
        check(config)
        values = {_KEYS.get(key, key): value for key, value in config.items() if value is not None}
        for name in ("path", "paths"):
            if name in values:
                values[name] = tuple(values[name])
        return cls(**values)

    @property
    def name(self) -> str:
        """What people call it."""
        return f"{self.user}@{self.host}" if self.user else self.host

    def to_json(self) -> dict[str, Any]:
        """As `from_json` reads it; it holds no secret."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Ssh:
        return cls(**{**data, "path": tuple(data["path"]), "paths": tuple(data["paths"])})

    def command(self, remote: str | None = None, *options: str) -> list[str]:
        """An ssh command line; `remote` is what the shell over there runs."""
        words = ["ssh", "-T", *self._options(), *options, "--", self.host]
        return words if remote is None else [*words, remote]

    def far(self) -> Far:
        """The outpost over there, brought up to date."""
        self.connect()
        return Far(self.command(self._start()), self.name)

    def follower(self) -> list[str]:
        """The command that starts an outpost for a long conversation."""
        return self.command(self._start())

    def connect(self) -> None:
        """Open the one connection that all others share, and put our file there."""
        if not self._control("check"):
            self._open()
        path = self._outpost()
        if self._run(f"test -s {path}").returncode:
            data, _ = outpost_file()
            folder = self._under_root("outpost")
            line = f"umask 077; mkdir -p {folder} && cat > {path}.$$ && mv {path}.$$ {path}"
            done = self._run(line, data)
            if done.returncode:
                said = done.stderr.decode("utf-8", "replace").strip()
                raise Unreachable(f"{self.name} did not take our file: {said}")

    def reverse(self, port: int, there: int = 0) -> int:
        """Let programs over there reach a port of this machine's loopback; tells theirs.

        Asking again for the same one after the connection was lost is how it comes back.
        """
        self.connect()
        spec = f"127.0.0.1:{there}:127.0.0.1:{port}"
        words = self.command(None, "-O", "forward", "-R", spec)
        done = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if done.returncode:
            raise Unreachable(f"{self.name} lets nothing be forwarded: {done.stderr.strip()}")
        return int(done.stdout.strip() or there)

    def close(self) -> None:
        """Close the shared connection."""
        self._control("exit")

    def python_version(self) -> tuple[int, ...] | None:
        """The Python over there, or None if there is none of that name."""
        code = "import sys; print(*sys.version_info[:3])"
        done = self._run(f"{shlex.quote(self.python)} -c {shlex.quote(code)}")
        try:
            return tuple(map(int, done.stdout.split())) or None
        except ValueError:
            return None

    def _start(self) -> str:
        return f"exec {shlex.quote(self.python)} -I -S {self._outpost()}"

    def _outpost(self) -> str:
        return self._under_root(f"outpost/{outpost_file()[1][:16]}.zip")

    def _under_root(self, name: str) -> str:
        whole = f"{self.root.rstrip('/')}/{name}"
        # The shell over there knows its home; all else is quoted.
        return f'"$HOME"/{shlex.quote(whole[2:])}' if whole.startswith("~/") else shlex.quote(whole)

    def _run(self, line: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        done = subprocess.run(self.command(line), input=stdin, capture_output=True)
        if done.returncode == 255:
            said = done.stderr.decode("utf-8", "replace").strip()
            raise Unreachable(f"{self.name} cannot be reached: {said}.")
        return done

    def _open(self) -> None:
        words = self.command(None, "-M", "-N", "-f")
        # The connection stays open in the background and keeps its standard error.
        with tempfile.TemporaryFile() as errors:
            code = subprocess.run(
                words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors
            ).returncode
            errors.seek(0)
            said = errors.read().decode("utf-8", "replace").strip()
        if code:
            raise Unreachable(f"{self.name} cannot be reached: {said}.")

    def _control(self, verb: str) -> bool:
        words = self.command(None, "-O", verb)
        return subprocess.run(words, capture_output=True, stdin=subprocess.DEVNULL).returncode == 0

    def _options(self) -> list[str]:
        strict = "yes" if self.known_hosts == "verify" else "accept-new"
        options = {
            "BatchMode": "yes",
            "ConnectTimeout": str(_CONNECT_SEC),
            "ServerAliveInterval": "5",
            "ServerAliveCountMax": "3",
            "StrictHostKeyChecking": strict,
            "ControlPath": f"{self.control}/%C",
            "ControlPersist": "600",
            "ExitOnForwardFailure": "yes",
            "ForwardAgent": "no",
            "ForwardX11": "no",
            "PermitLocalCommand": "no",
            "LogLevel": "ERROR",
        }
        if self.known_hosts_file:
            options["UserKnownHostsFile"] = self.known_hosts_file
        if self.identity_file:
            options["IdentityFile"] = str(Path(self.identity_file).expanduser())
            options["IdentitiesOnly"] = "yes"
        words = [word for key, value in options.items() for word in ("-o", f"{key}={value}")]
        words += ["-p", str(self.port)] if self.port else []
        return [*words, "-l", self.user] if self.user else words


def _control_directory() -> str:
    """A short private path, since a socket's name may have only about a hundred letters."""
    path = Path(tempfile.gettempdir()) / f"binderclip-{os.getuid()}"
    with contextlib.suppress(FileExistsError):
        path.mkdir(mode=0o700)
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise WorkspaceError(f"{path} is not a private directory of this user.")
    return str(path)
