"""A small server that forks supervisors, because a fork is faster than a fresh interpreter.

It holds nothing of any attempt: killing it disturbs no supervisor, and without it `launch` starts
the same code cold.
"""

from __future__ import annotations

import ctypes  # noqa: F401, here so that the forked supervisors have it already
import gc
import json
import os
import select
import signal
import socket
import sys

from binderclip.supervisor import documents, main

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

_BACKLOG = 128
_MESSAGE_SEC = 1.0


def start_nursery(socket_path: str) -> int:
    """Start a nursery that listens at `socket_path` (0600) and return its pid.

    It ends by `stop_nursery`, or with this process where the kernel tells of that. OSError when
    the path is too long for a socket; launches then work without a nursery.
    """
    import subprocess

    from binderclip.supervisor.launch import clean_environment, cold_python

    with listening(socket_path) as listener:
        reader, writer = os.pipe()
        owner = _own_life()
        with os.fdopen(reader, "rb") as answer:
            fds = (listener.fileno(), writer, *owner)
            command = [*cold_python(), "nursery", *map(str, fds)]
            try:
                null = subprocess.DEVNULL
                subprocess.run(
                    command, pass_fds=fds, env=clean_environment(), cwd="/", stdin=null, check=True
                )
            finally:
                for fd in (writer, *owner):
                    os.close(fd)
            return int(json.loads(answer.readline())["supervisorPid"])


def _own_life() -> tuple[int, ...]:
    """A descriptor that becomes readable when this process is gone; none on macOS."""
    return (os.pidfd_open(os.getpid()),) if sys.platform.startswith("linux") else ()


def stop_nursery(socket_path: str) -> None:
    """Ask the nursery to end; supervisors that it forked go on."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(_MESSAGE_SEC)
        connection.connect(socket_path)
        connection.sendall(b"stop\n")
        connection.recv(1)


def listening(socket_path: str) -> socket.socket:
    """A listening socket that only its owner can reach, in place of whatever had that path."""
    listener = socket.socket(socket.AF_UNIX)
    try:
        if os.path.lexists(socket_path):
            os.unlink(socket_path)
        listener.bind(socket_path)
        # Nobody can connect before listen, so there is no moment with a wider mode.
        os.chmod(socket_path, 0o600)
        listener.listen(_BACKLOG)
    except BaseException:
        listener.close()
        raise
    return listener


def serve(listener_fd: int, reply_fd: int, *owner: int) -> NoReturn:
    """The nursery process; the life of its owner is a descriptor where there is one."""
    main.detach({listener_fd, reply_fd, *owner}, "binderclip-nur")
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    listener = socket.socket(fileno=listener_fd)
    gc.collect()
    gc.freeze()
    answer = {"supervisorPid": os.getpid()}
    documents.write_all(reply_fd, json.dumps(answer).encode() + b"\n")
    os.close(reply_fd)
    while _wanted(listener, owner):
        connection, _ = listener.accept()
        with connection:
            if _answer(connection) == "stop":
                os.unlink(listener.getsockname())
                break
    os._exit(0)


def _wanted(listener: socket.socket, owner: tuple[int, ...]) -> bool:
    """Sleep until somebody asks; false when the owner is gone.

    The socket's path then stays: a successor's socket may have it already.
    """
    ready, _, _ = select.select([listener.fileno(), *owner], [], [])
    return not set(owner) & set(ready)


def _answer(connection: socket.socket) -> str:
    connection.settimeout(_MESSAGE_SEC)
    try:
        message, fds, _, _ = socket.recv_fds(connection, 64, 3)
    except OSError:
        return ""
    mode = message.decode("ascii", "replace").strip()
    try:
        if mode in ("launch", "adopt") and len(fds) == 3:
            _fork(mode, fds)
    except OSError:
        # No process to be had: closing the descriptors tells the driver to go on without us.
        mode = ""
    finally:
        for fd in fds:
            os.close(fd)
    return mode


def _fork(mode: str, fds: list[int]) -> None:
    if os.fork():
        return
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        main.serve(mode, *fds)
    finally:
        os._exit(0)
