"""Real attempts for tests: each has its directory, and nothing of it outlives the test."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from binderclip.supervisor import documents, processes
from binderclip.supervisor.cgroup import Cgroup
from binderclip.supervisor.index import read_index
from binderclip.supervisor.launch import (
    Capture,
    ExitRecord,
    Launched,
    Limits,
    Request,
    adopt,
    launch,
    make_fifos,
    read_exit,
    read_meta,
    request_cancel,
)
from binderclip.supervisor.spare import Spare

PATIENCE_SEC = 60.0
BOTH_FILE = Capture("file", "file")
BOTH_PIPE = Capture("pipe", "pipe")
NO_LIMITS = Limits(0, 0, 5, 0, 0)


def python(code: str) -> list[str]:
    """A command that runs `code` in a bare interpreter."""
    return [sys.executable, "-I", "-S", "-c", code]


def eventually(answer: Callable[[], Any], what: str) -> Any:
    """Ask again until the answer is true."""
    deadline = time.monotonic() + PATIENCE_SEC
    while time.monotonic() < deadline:
        found = answer()
        if found:
            return found
        time.sleep(0.01)
    raise AssertionError(f"waited in vain for: {what}")


def wait_for_end_of(pid: int) -> None:
    """Wait until a process that need not be our child is gone."""
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        assert select.select([pidfd], [], [], PATIENCE_SEC)[0], f"process {pid} does not end"
    finally:
        os.close(pidfd)


class Attempt:
    """One attempt that a test starts, disturbs and reads."""

    def __init__(self, folder: Path, nursery: str | Spare | None = None) -> None:
        folder.mkdir(parents=True)
        self.dir = str(folder)
        self.run_id = str(uuid.uuid4())
        self.nursery = nursery
        self.launched: Launched | None = None
        self.held: list[int] = []
        self._cgroup: str | None = None

    def request(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        capture: Capture = BOTH_FILE,
        limits: Limits = NO_LIMITS,
        cwd: str = "/",
        **more: Any,
    ) -> Request:
        marked = {"PATH": os.environ["PATH"], "PAPERCLIP_RUN_ID": self.run_id, **(env or {})}
        return Request(
            self.dir, self.run_id, 1, argv, marked, cwd, capture=capture, limits=limits, **more
        )

    def start(self, argv: Sequence[str], stdin: bytes | None = None, **request: Any) -> Launched:
        asked = self.request(argv, **request)
        self.held = make_fifos(self.dir, asked.capture)
        self.launched = launch(asked, stdin, nursery=self.nursery)
        self._cgroup = self.meta().get("cgroup")
        return self.launched

    def run(self, argv: Sequence[str], stdin: bytes | None = None, **request: Any) -> ExitRecord:
        self.start(argv, stdin, **request)
        return self.end()

    def adopt(self, **more: Any) -> Launched:
        self.launched = adopt(self.dir, nursery=self.nursery, **more)
        return self.launched

    def end(self) -> ExitRecord:
        assert self.launched is not None
        wait_for_end_of(self.launched.supervisor_pid)
        record = read_exit(self.dir)
        assert record is not None, self.complaints()
        return record

    def kill_supervisor(self) -> None:
        assert self.launched is not None
        os.kill(self.launched.supervisor_pid, signal.SIGKILL)
        wait_for_end_of(self.launched.supervisor_pid)

    def path(self, name: str) -> Path:
        return Path(self.dir, name)

    @property
    def stdout(self) -> bytes:
        return self.path("stdout.log").read_bytes()

    @property
    def stderr(self) -> bytes:
        return self.path("stderr.log").read_bytes()

    def meta(self) -> dict[str, Any]:
        meta = read_meta(self.dir)
        assert meta is not None
        return meta

    def index(self) -> list[tuple[int, str, int]]:
        return read_index(str(self.path("index")))[0]

    def visible(self, letter: str = "o") -> bytes:
        """What a reader that obeys the index may see."""
        ends = [end for _, stream, end in self.index() if stream == letter]
        with open(documents.log_path(self.dir, letter), "rb") as log:
            return log.read(ends[-1]) if ends else b""

    def wait_until_visible(self, text: bytes, letter: str = "o") -> None:
        eventually(lambda: text in self.visible(letter), f"{text!r} in the log")

    def living(self) -> list[int]:
        """Processes that carry this run's marker."""
        marker = "PAPERCLIP_RUN_ID=" + self.run_id
        return [p.pid for p in processes.carrying(processes.table(), marker)]

    def complaints(self) -> str:
        log = self.path(documents.COMPLAINTS)
        return log.read_text() if log.exists() else "no complaints"

    def clean_up(self) -> None:
        for fd in self.held:
            os.close(fd)
        if self.launched is not None and read_exit(self.dir) is None:
            request_cancel(self.dir, "test", "the test is over", kill=True)
            with contextlib.suppress(AssertionError):
                wait_for_end_of(self.launched.supervisor_pid)
        for pid in self.living():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if self._cgroup is not None:
            # A test that killed the supervisor for good has nobody else to remove it.
            eventually(Cgroup(self._cgroup).remove, "the removal of the cgroup")


class TinyDisk:
    """A file system of a given size, for what happens when it is full."""

    def __init__(self, folder: Path, size: int) -> None:
        self.folder = folder
        folder.mkdir()
        options = f"size={size},mode=700"
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], check=True)

    def free(self) -> int:
        disk = os.statvfs(self.folder)
        return disk.f_bavail * disk.f_frsize

    def fill(self, leave: int) -> Path:
        ballast = self.folder / "ballast"
        ballast.write_bytes(bytes(self.free() - leave))
        return ballast

    def unmount(self) -> None:
        subprocess.run(["umount", "-l", self.folder], check=True)
