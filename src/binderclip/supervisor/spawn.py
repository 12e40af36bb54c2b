"""Starts the agent: own session, default signals, exactly the given environment and descriptors."""

from __future__ import annotations

import errno
import os
import signal

from binderclip.supervisor import kernel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Mapping, NoReturn, Sequence


class SpawnError(Exception):
    """The program could not be started; the message says what to do."""

    def __init__(self, where: str, number: int | None, message: str) -> None:
        super().__init__(message)
        self.where = where
        self.errno = number

    def to_json(self) -> dict[str, Any]:
        return {"errno": self.errno, "where": self.where, "message": str(self)}


class Program:
    """What to run, and where."""

    def __init__(self, argv: Sequence[str], env: Mapping[str, str], cwd: str) -> None:
        self.argv = argv
        self.env = env
        self.cwd = cwd
        self.umask = 0o022
        self.cgroup: str | None = None
        """The directory of the cgroup to run in; the child runs outside where it may not."""


def spawn(program: Program, stdio: tuple[int, int, int]) -> int:
    """Fork and exec; returns the pid once the program runs. Raises SpawnError."""
    if not program.argv:
        raise SpawnError("exec", None, "The command is empty. Name a program to run.")
    reader, writer = os.pipe()
    # A signal between fork and exec would run our handlers in the child.
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        pid, entered = _fork(program.cgroup)
        if pid == 0:
            _become(program, None if entered else program.cgroup, stdio, writer)
    except OSError as error:
        os.close(reader)
        raise SpawnError("fork", error.errno, "No process could be made: %s." % error) from error
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        complaint = pipe.read()
    if complaint:
        os.waitpid(pid, 0)
        where, number = complaint.decode().split()
        raise SpawnError(where, int(number), _advice(program, where, int(number)))
    return pid


def _fork(cgroup: str | None) -> tuple[int, bool]:
    if cgroup is not None:
        try:
            return kernel.fork_into(cgroup), True
        except OSError:
            return os.fork(), False
    return os.fork(), False


def _become(
    program: Program, cgroup: str | None, stdio: tuple[int, int, int], writer: int
) -> NoReturn:
    where = "session"
    try:
        os.setsid()
        _default_signals()
        os.umask(program.umask)
        _enter(cgroup)
        where = "stdin"
        os.dup2(stdio[0], 0)
        where = "output"
        os.dup2(stdio[1], 1)
        os.dup2(stdio[2], 2)
        where = "chdir"
        os.chdir(program.cwd)
        where = "exec"
        _exec(program)
    except OSError as error:
        os.write(writer, b"%s %d" % (where.encode(), error.errno or 0))
    except ValueError:
        os.write(writer, b"%s %d" % (where.encode(), errno.EINVAL))
    finally:
        os._exit(127)


def _default_signals() -> None:
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals():
        try:
            signal.signal(number, signal.SIG_DFL)
        except OSError:
            continue
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


def _enter(cgroup: str | None) -> None:
    if cgroup is None:
        return
    try:
        with open(os.path.join(cgroup, "cgroup.procs"), "w") as file:
            file.write("0")
    except OSError:
        return


def _exec(program: Program) -> NoReturn:
    worst: OSError = FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    for path in _candidates(program):
        try:
            os.execve(path, list(program.argv), dict(program.env))
        except (FileNotFoundError, NotADirectoryError):
            if os.path.exists(path):
                raise
        except PermissionError as error:
            worst = error
    raise worst


def _candidates(program: Program) -> list[str]:
    name = program.argv[0]
    if "/" in name:
        return [name]
    folders = program.env.get("PATH", os.defpath).split(os.pathsep)
    return [os.path.join(folder or ".", name) for folder in folders]


def _advice(program: Program, where: str, number: int) -> str:
    reason = os.strerror(number)
    if where == "chdir":
        return "The working directory %s cannot be entered: %s. Create it or set another cwd." % (
            program.cwd,
            reason,
        )
    if where != "exec":
        return "The child could not be prepared (%s): %s." % (where, reason)
    name = program.argv[0]
    if number == errno.ENOENT and "/" not in name and not _found(program):
        return "The command %s was not found in PATH (%s). Install it or give its full path." % (
            name,
            program.env.get("PATH", os.defpath),
        )
    return "%s cannot be run: %s. %s" % (name, reason, _HINTS.get(number, "Check the file."))


def _found(program: Program) -> bool:
    return any(os.path.exists(os.path.join(program.cwd, path)) for path in _candidates(program))


_HINTS = {
    errno.ENOENT: "Check the path; for a script, also the interpreter named in its first line.",
    errno.EACCES: "Make it executable (chmod +x) and see that its file system allows it.",
    errno.ENOEXEC: "It needs a #! line, or it was built for another kind of machine.",
    errno.E2BIG: "Arguments and environment are too large; send long text on stdin.",
    errno.EINVAL: "No argument and no variable may hold a NUL character.",
    errno.ETXTBSY: "Somebody is still writing the file; try again.",
}
