"""What a driver calls: start or adopt a supervisor, cancel it, read what it left.

A supervisor is a process of its own session that outlives its driver; nothing here keeps a child
process, a thread or a descriptor, except the FIFOs that `make_fifos` returns.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import select
import signal
import socket
import subprocess
import sys
from typing import TYPE_CHECKING, Any, Iterable, Iterator, Literal, Mapping, Union

from binderclip.supervisor import documents, locks, processes
from binderclip.supervisor.records import (
    Cancel,
    Capture,
    ExitRecord,
    Launched,
    LaunchRefused,
    Leftover,
    Limits,
    Request,
    SpawnFailed,
    Truncation,
)

__all__ = [
    "Cancel",
    "Capture",
    "ExitRecord",
    "LaunchRefused",
    "Launched",
    "Leftover",
    "Limits",
    "Request",
    "SpawnFailed",
    "Truncation",
    "adopt",
    "attempt_state",
    "declare_dead",
    "launch",
    "make_fifos",
    "read_exit",
    "read_meta",
    "request_cancel",
]

if TYPE_CHECKING:
    from binderclip.supervisor.spare import Spare

StrPath = Union[str, "os.PathLike[str]"]

_ANSWER_SEC = 30.0
_COLD = (
    "import sys; sys.path.insert(0, sys.argv[1]); "
    "from binderclip.supervisor.main import main; main(sys.argv[2:])"
)


def launch(
    request: Request, stdin: bytes | None = None, *, nursery: str | Spare | None = None
) -> Launched:
    """Start the attempt and return once the child runs.

    `stdin` becomes the child's standard input, None is /dev/null. `nursery` is the socket of a
    running nursery, or a spare interpreter; when it is None, dead, used up or its path is too
    long, a fresh interpreter is started instead. Raises SpawnFailed when the program cannot be
    started (the attempt is then complete), LaunchRefused when the attempt is already somebody's.
    For pipe capture call `make_fifos` first.
    """
    return _ask("launch", request.to_json(), stdin, nursery)


def adopt(
    attempt_dir: StrPath, *, secrets: Iterable[str] = (), nursery: str | Spare | None = None
) -> Launched:
    """Put a new supervisor in charge of an attempt whose supervisor died.

    It continues index, masking, limits and cancel. When nothing of the attempt is alive it
    finishes the attempt at once, and `child_pid` is None. `secrets` are masked together with the
    secret values found in the living processes. Raises LaunchRefused (`locked`, `finished`).
    """
    document = {"attemptDir": os.path.abspath(attempt_dir), "secrets": list(secrets)}
    return _ask("adopt", document, None, nursery)


def declare_dead(
    attempt_dir: StrPath, *, secrets: Iterable[str] = (), nursery: str | Spare | None = None
) -> ExitRecord | None:
    """Finish an attempt that has no supervisor: its exit record, or None while parts of it live.

    An adopter decides, under the lock: it writes exit.json when nothing is alive, and otherwise
    stays in charge.
    """
    with contextlib.suppress(LaunchRefused):
        adopt(attempt_dir, secrets=secrets, nursery=nursery)
    return read_exit(attempt_dir)


def attempt_state(attempt_dir: StrPath) -> Literal["finished", "supervised", "unattended"]:
    """`finished`: exit.json is there; `supervised`: its lock is held; `unattended`: adopt it."""
    supervised = locks.held(os.path.join(attempt_dir, documents.LOCK))
    # The lock is asked first: it is freed only after exit.json is in place.
    if os.path.exists(os.path.join(attempt_dir, documents.EXIT)):
        return "finished"
    return "supervised" if supervised else "unattended"


def request_cancel(attempt_dir: StrPath, by: str, reason: str, kill: bool = False) -> None:
    """Ask for the end of the attempt: SIGTERM, grace, SIGKILL; `kill` shortens the grace to zero.

    The wish is a file, so it also reaches a supervisor that adopts the attempt later. On a full
    disk it is a signal, which says neither who nor why; only a second one ends the grace.
    """
    wish: dict[str, Any] = {"by": by, "reason": reason}
    if kill:
        wish["kill"] = True
    try:
        documents.write_document(os.fspath(attempt_dir), documents.CANCEL, wish)
    except OSError as problem:
        full = problem.errno in (errno.ENOSPC, errno.EDQUOT)
        if not full or not _signal_supervisor(attempt_dir, signal.SIGTERM):
            raise
        return
    _signal_supervisor(attempt_dir, signal.SIGCONT)


def _signal_supervisor(attempt_dir: StrPath, number: int) -> bool:
    meta = read_meta(attempt_dir)
    if meta is None or meta.get("bootId") != processes.boot_id():
        return False
    supervisor = meta["supervisor"]
    return processes.send(supervisor["pid"], supervisor["startTime"], number)


def make_fifos(attempt_dir: StrPath, capture: Capture) -> list[int]:
    """Make the FIFOs of pipe capture and return descriptors that the driver keeps until the end.

    Holding them keeps what the child wrote when it ends between two supervisors. Also right for a
    driver that takes over: FIFOs that are there are opened, missing ones of a finished attempt
    are not made again.
    """
    if read_exit(attempt_dir) is not None:
        return []
    held = []
    for letter, mode in (("o", capture.stdout), ("e", capture.stderr)):
        if mode == "pipe":
            path = documents.fifo_path(os.fspath(attempt_dir), letter)
            with contextlib.suppress(FileExistsError):
                os.mkfifo(path, 0o600)
            held.append(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))
    return held


def read_exit(attempt_dir: StrPath) -> ExitRecord | None:
    """The end of the attempt, or None while it has none.

    One that a power cut left unreadable is an end of which nothing more is known.
    """
    directory = os.fspath(attempt_dir)
    try:
        document = documents.read_document(directory, documents.EXIT)
        return None if document is None else ExitRecord.from_json(document)
    except (ValueError, LookupError, TypeError):
        return _unknown_end(directory)


def _unknown_end(attempt_dir: str) -> ExitRecord:
    path = os.path.join(attempt_dir, documents.EXIT)
    document = documents.end_before_start({"where": path, "message": "%s is damaged." % path})
    ended = documents.iso(os.stat(path).st_mtime)
    return ExitRecord.from_json({**document, "reason": "exited", "endedAt": ended})


def read_meta(attempt_dir: StrPath) -> dict[str, Any] | None:
    """meta.json: the driver's facts and the supervisor's; None when there is none to be read."""
    try:
        return documents.read_document(os.fspath(attempt_dir), documents.META)
    except ValueError:
        return None


def _ask(
    mode: str, document: dict[str, Any], stdin: bytes | None, nursery: str | Spare | None
) -> Launched:
    document["driver"] = os.getpid()
    document["umask"] = _umask()
    with (
        _in_memory(json.dumps(document).encode()) as request_fd,
        _standard_input(stdin) as input_fd,
    ):
        answer = b""
        if nursery is not None:
            answer = _through_nursery(nursery, mode, request_fd, input_fd)
        # Safe after any silence: under the lock a second supervisor sees what the first one did.
        answer = answer or _cold(mode, request_fd, input_fd)
    return _understand(answer, document["attemptDir"])


def _through_nursery(nursery: str | Spare, mode: str, request_fd: int, input_fd: int) -> bytes:
    with _Reply() as reply:
        fds = [request_fd, input_fd, reply.writer]
        if not (_sent(nursery, mode, fds) if isinstance(nursery, str) else nursery.take(mode, fds)):
            return b""
        reply.handed_over()
        return reply.read_line()


def _sent(path: str, mode: str, fds: list[int]) -> bool:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(_ANSWER_SEC)
        try:
            connection.connect(path)
            socket.send_fds(connection, [mode.encode() + b"\n"], fds)
        except OSError:
            return False
    return True


def _cold(mode: str, request_fd: int, input_fd: int) -> bytes:
    with _Reply() as reply:
        fds = (request_fd, input_fd, reply.writer)
        starter = start_cold(mode, fds)
        reply.handed_over()
        # The starter forks the supervisor and ends, so no zombie is left to this process.
        starter.wait()
        return reply.read_line()


def start_cold(mode: str, fds: tuple[int, ...]) -> subprocess.Popen[bytes]:
    """Start `main` in a fresh interpreter that gets these descriptors and nothing else.

    The process forks the one that does the work and ends at once: wait for it.
    """
    return subprocess.Popen(
        [*cold_python(), mode, *map(str, fds)],
        pass_fds=fds,
        env=clean_environment(),
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        # A Ctrl-C at the terminal is for the driver, which then asks for a cancel.
        start_new_session=True,
    )


def cold_python() -> list[str]:
    """The command that runs `main` in an interpreter that imports almost nothing."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    return [sys.executable, "-I", "-S", "-c", _COLD, os.path.dirname(package)]


def clean_environment() -> dict[str, str]:
    """What a supervisor gets of this process's environment: only what the interpreter needs."""
    env = {"LANG": "C.UTF-8", "PATH": os.defpath}
    for name in ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"):
        if name in os.environ:
            env[name] = os.environ[name]
    return env


def _understand(answer: bytes, attempt_dir: str) -> Launched:
    if not answer:
        message = "The supervisor of %s ended without an answer; see supervisor.log there."
        raise LaunchRefused("no_answer", message % attempt_dir)
    reply: Mapping[str, Any] = json.loads(answer)
    if reply["ok"]:
        return Launched(reply["supervisorPid"], reply["childPid"], reply["startedAt"])
    error: Mapping[str, Any] = reply["error"]
    refusal = SpawnFailed if reply["reason"] == "spawn_failed" else LaunchRefused
    raise refusal(reply["reason"], error["message"], error)


class _Reply:
    """The pipe of one answer; its writing end is closed here once the supervisor has it."""

    def __init__(self) -> None:
        self.reader, self.writer = os.pipe()

    def __enter__(self) -> _Reply:
        return self

    def __exit__(self, *exc: object) -> None:
        self.handed_over()
        os.close(self.reader)

    def handed_over(self) -> None:
        if self.writer >= 0:
            os.close(self.writer)
            self.writer = -1

    def read_line(self) -> bytes:
        """The answer; empty when the other side is gone or silent."""
        line = b""
        poller = select.poll()
        poller.register(self.reader, select.POLLIN)
        while poller.poll(int(_ANSWER_SEC * 1000)):
            part = os.read(self.reader, 1 << 16)
            line += part
            if not part or line.endswith(b"\n"):
                break
        return line if line.endswith(b"\n") else b""


@contextlib.contextmanager
def _in_memory(data: bytes) -> Iterator[int]:
    fd = _unnamed_file()
    try:
        documents.write_all(fd, data)
        os.lseek(fd, 0, os.SEEK_SET)
        yield fd
    finally:
        os.close(fd)


def _unnamed_file() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("binderclip", os.MFD_CLOEXEC)
    import tempfile

    fd, path = tempfile.mkstemp(prefix="binderclip-")
    os.unlink(path)
    return fd


@contextlib.contextmanager
def _standard_input(data: bytes | None) -> Iterator[int]:
    if data is not None:
        with _in_memory(data) as fd:
            yield fd
        return
    fd = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield fd
    finally:
        os.close(fd)


def _umask() -> int:
    # os.umask can only be read by setting it, which another thread could notice.
    try:
        with open("/proc/self/status") as status:
            line = next(line for line in status if line.startswith("Umask:"))
        return int(line.split()[1], 8)
    except (OSError, StopIteration):
        return 0o022
