"""The environment test of another machine: can runs work there, and what is missing (E4)?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from binderclip.contract.check import Check
from binderclip.contract.errors import WorkspaceError
from binderclip.workspaces.far import Far
from binderclip.workspaces.ssh import Ssh

OLDEST_PYTHON = (3, 9)
OLDEST_GIT = (2, 31)
LOW_SPACE = 1 << 30


def check_environment(ssh: Ssh, commands: Sequence[str] = ()) -> list[Check]:
    """Look at a machine; `commands` are programs that runs there will need."""
    return list(_checks(ssh, commands))


def _checks(ssh: Ssh, commands: Sequence[str]) -> Iterator[Check]:
    if ssh.known_hosts != "verify":
        message = "The key of a host that was never seen before is taken as it is."
        yield _warn("ssh_known_hosts", message, "Set `knownHosts` to verify once it is known.")
    try:
        ssh.connect()
        python = ssh.python_version()
        yield _info("ssh_connect", f"{ssh.name} answers, and its key is known.")
        if python is None or python < OLDEST_PYTHON:
            found = ".".join(map(str, python)) if python else "none"
            message = f"Python 3.9 or newer is needed over there; {ssh.python} is {found}."
            yield _error("ssh_python", message, "Install it, or set `python` to its full path.")
            return
        yield _info("ssh_python", f"Python {'.'.join(map(str, python))}")
        yield from _probed(ssh, ssh.far(), commands)
    except WorkspaceError as problem:
        yield _error("ssh_connect", problem.message, problem.hint or _CONNECT_HINT)


def _probed(ssh: Ssh, far: Far, commands: Sequence[str]) -> Iterator[Check]:
    places = [ssh.in_place] if ssh.in_place else []
    told = far.ask(
        "probe",
        root=ssh.root,
        commands=list(commands),
        directories=places,
        path=list(ssh.path),
    )
    yield _info("ssh_root", f"{told['root']} can be written by {told['user']}.")
    if told["uid"] == 0:
        yield _warn("ssh_user", "Agents run as root over there.", "Set `user` to another one.")
    if told["free"] < LOW_SPACE:
        message = f"Only {told['free'] >> 20} MiB are free in {told['root']}."
        yield _warn("ssh_space", message, "Free some space there.")
    git = told["git"]
    if git is None or tuple(map(int, git.split("."))) < OLDEST_GIT:
        message = f"git 2.31 or newer is needed over there; found {git or 'none'}."
        yield _error("ssh_git", message, "Install it there.")
    else:
        yield _info("ssh_git", f"git {git}")
    for place, there in told["directories"].items():
        if not there:
            yield _error("ssh_in_place", f"{place} is no directory over there.", "Set `inPlace`.")
    for name, path in told["commands"].items():
        if path is None:
            hint = "Install it there, or set `path` to the directories that programs are in."
            yield _error("ssh_command", f"{name} was not found over there.", hint)
        else:
            yield _info("ssh_command", f"{name} is {path}")


_CONNECT_HINT = (
    "Try `ssh` by hand: the host's key must be in known_hosts, and a key of yours accepted."
)


def _info(code: str, message: str) -> Check:
    return Check(code=code, level="info", message=message)


def _warn(code: str, message: str, hint: str) -> Check:
    return Check(code=code, level="warn", message=message, hint=hint)


def _error(code: str, message: str, hint: str) -> Check:
    return Check(code=code, level="error", message=message, hint=hint)
