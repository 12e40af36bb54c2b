"""The small JSON documents of an attempt's directory: whole or absent, never half written."""

from __future__ import annotations

import json
import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LOCK = "lock"
META = "meta.json"
EXIT = "exit.json"
CANCEL = "cancel.json"
INDEX = "index"
RESERVE = "reserve"
COMPLAINTS = "supervisor.log"
STREAMS = {"o": "stdout", "e": "stderr"}


def log_path(attempt_dir: str, letter: str) -> str:
    """Path of the log of stream `o` or `e`."""
    return os.path.join(attempt_dir, STREAMS[letter] + ".log")


def fifo_path(attempt_dir: str, letter: str) -> str:
    """Path of the FIFO of stream `o` or `e`; it exists only in pipe capture, until the end."""
    return os.path.join(attempt_dir, STREAMS[letter] + ".fifo")


def write_document(attempt_dir: str, name: str, document: dict[str, Any]) -> None:
    """Put a document in place, readable by its owner only."""
    path = os.path.join(attempt_dir, name)
    put(path, json.dumps(document, indent=2).encode() + b"\n")


def put(path: str, data: bytes, *, durable: bool = False) -> None:
    """Write a file by rename (0600): readers see the old one or all of the new one.

    `durable` waits for the disk, which can take longer than starting an agent.
    """
    scratch = "%s.%d.tmp" % (path, os.getpid())
    fd = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        try:
            write_all(fd, data)
            if durable:
                os.fsync(fd)
        finally:
            os.close(fd)
        os.rename(scratch, path)
    except BaseException:
        os.unlink(scratch)
        raise


def read_document(attempt_dir: str, name: str) -> dict[str, Any] | None:
    """Read a document; None when there is none. ValueError when it is not a JSON object."""
    try:
        with open(os.path.join(attempt_dir, name), "rb") as file:
            document = json.loads(file.read())
    except FileNotFoundError:
        return None
    if not isinstance(document, dict):
        raise ValueError("%s of %s is not a JSON object" % (name, attempt_dir))
    return document


def write_all(fd: int, data: bytes) -> None:
    """Write every byte; the descriptor is blocking."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def read_all(fd: int) -> bytes:
    """Read a file from its beginning whatever its offset, which descriptors may share."""
    parts: list[bytes] = []
    offset = 0
    while True:
        part = os.pread(fd, 1 << 20, offset)
        if not part:
            return b"".join(parts)
        parts.append(part)
        offset += len(part)


def end_before_start(error: dict[str, Any] | None) -> dict[str, Any]:
    """The exit record of an attempt of which nothing ever ran."""
    return {
        "exitCode": None,
        "signal": None,
        "reason": "spawn_failed",
        "startedAt": None,
        "endedAt": iso(time.time()),
        "stdoutBytes": 0,
        "stderrBytes": 0,
        "masked": 0,
        "leftovers": [],
        "truncated": [],
        "adopted": False,
        "cancel": None,
        "error": error,
        "killed": False,
    }


def complain(attempt_dir: str) -> None:
    """Write the exception being handled into the attempt's supervisor.log."""
    import traceback

    with open(os.path.join(attempt_dir, COMPLAINTS), "a") as file:
        traceback.print_exc(file=file)


def iso(seconds: float) -> str:
    """A time as ISO 8601 UTC with milliseconds and Z."""
    milliseconds = int(seconds * 1000)
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(milliseconds // 1000))
    return "%s.%03dZ" % (stamp, milliseconds % 1000)


def seconds_of(stamp: str) -> float:
    """The inverse of `iso`."""
    import calendar

    whole, _, fraction = stamp.rstrip("Z").partition(".")
    return calendar.timegm(time.strptime(whole, "%Y-%m-%dT%H:%M:%S")) + float("0." + fraction)
