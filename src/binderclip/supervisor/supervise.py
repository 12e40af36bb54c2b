"""The life of one attempt under its lock: follow the child, enforce limits, end everything.

Order at the end: main child gone, leftovers ended, logs drained, last index record, exit.json.
"""

from __future__ import annotations

import os
import signal
import time

from binderclip.supervisor import documents, kernel, processes
from binderclip.supervisor.capture import FileCapture, LogRoom, PipeCapture
from binderclip.supervisor.index import NO_SPACE, IndexWriter
from binderclip.supervisor.limits import Limits
from binderclip.supervisor.masking import mask_text
from binderclip.supervisor.wakeups import Wakeups

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from binderclip.supervisor.capture import Capture
    from binderclip.supervisor.tree import Tree

_TICK_SEC = 1.0
_POLL_SEC = 0.05
_SHORTEST_PAUSE_SEC = 0.001
_LONGEST_PAUSE_SEC = 0.008
_FLOOD_BYTES = 16 << 10
_LEFTOVER_PATIENCE_SEC = 5.0
_LEFTOVERS_LISTED = 100
_RESERVED_BYTES = 64 << 10
_DOCUMENT_PATIENCE_SEC = 600


class Supervision:
    """One attempt from the moment its lock is held; `meta` is the content of its meta.json."""

    def __init__(self, attempt_dir: str, meta: dict[str, Any], needles: list[bytes], tree: Tree):
        self.dir = attempt_dir
        self.meta = meta
        self.tree = tree
        self._needles = needles
        self.adopted = False
        self.reason: str | None = None
        self.error: dict[str, Any] | None = None
        self._cancel: dict[str, str] | None = None
        self._cancel_seen: tuple[int, int] | None = None
        self._kill_at = float("inf")
        self._hurry = False
        self._killed = False
        self._leftovers: dict[tuple[int, int], dict[str, Any]] = {}
        self._next_tick = 0.0
        self._more = False
        self._pause = 0.0
        """How long output is left alone: an agent that floods must not be slowed by its reader."""
        self._reserve_space()
        self.wakeups = Wakeups()
        self.index = IndexWriter(os.path.join(attempt_dir, documents.INDEX))
        self.room = LogRoom(int(meta["limits"].get("maxLogBytes", 0)))
        self.captures = [self._capture(letter) for letter in documents.STREAMS]
        self.room.captures = self.captures
        self._watch_logs()
        self.limits = Limits(meta["limits"], time.monotonic())

    def _capture(self, letter: str) -> Capture:
        if self.meta["capture"][documents.STREAMS[letter]] == "pipe":
            return PipeCapture(self.dir, letter, self._needles, self.index, self.room)
        return FileCapture(self.dir, letter, self._needles, self.index)

    def _watch_logs(self) -> None:
        files = [c.path for c in self.captures if isinstance(c, FileCapture)]
        self._inotify = kernel.watch_changes(files) if files else None
        self._must_poll = bool(files) and self._inotify is None
        self._writes_directly = bool(files)
        self.wakeups.watch(self._inotify)

    def _reserve_space(self) -> None:
        path = os.path.join(self.dir, documents.RESERVE)
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            documents.write_all(fd, bytes(_RESERVED_BYTES))
        finally:
            os.close(fd)

    def _release_space(self) -> None:
        path = os.path.join(self.dir, documents.RESERVE)
        if os.path.exists(path):
            os.unlink(path)

    def begin_clock(self, started: float) -> None:
        """The child started at `started` (unix seconds): limits count from there."""
        self.meta["startedAt"] = documents.iso(started)
        passed = max(0.0, time.time() - started)
        self.limits = Limits(self.meta["limits"], time.monotonic() - passed)

    def save_meta(self) -> None:
        documents.write_document(self.dir, documents.META, self.meta)

    def watch_main(self) -> None:
        """Be woken by the end of a main child that is not ours to wait for."""
        if self.tree.main is not None and hasattr(os, "pidfd_open"):
            try:
                self.wakeups.watch(os.pidfd_open(self.tree.main.pid))
            except OSError:
                self._must_poll = True

    def follow(self) -> None:
        """Stay with the main child until it is gone."""
        while not self.tree.main_gone():
            self._round(self._patience())
        self.reason = self.reason or "exited"

    def finish(self) -> None:
        """End what is left, complete the logs, and say so."""
        self.reason = self.reason or "exited"
        self._end_leftovers()
        self._drain()
        self.write_end()

    def abort(self, error: dict[str, Any]) -> None:
        """Something unforeseen happened: end the attempt all the same."""
        self.reason, self.error = "aborted", error
        self._killed = True
        self.tree.kill()
        try:
            self._drain()
        except Exception:
            documents.complain(self.dir)
        self.write_end()

    def stop(self, reason: str) -> None:
        """Begin the end: SIGTERM now, SIGKILL after the grace. The first reason stays."""
        if self.reason is None:
            self.reason = reason
            self._kill_at = time.monotonic() + self.limits.grace
            self.tree.terminate()

    def _patience(self) -> float:
        if self._more:
            return 0.0
        if self._pause:
            return self._pause
        until = min(self._next_tick, self._kill_at)
        if self.reason is None:
            until = min(until, self.limits.next_deadline())
        patience = max(0.0, until - time.monotonic())
        return min(patience, _POLL_SEC) if self._must_poll else patience

    def _round(self, patience: float) -> None:
        heard = self.wakeups.wait(patience, only_signals=self._pause > 0)
        self._pump()
        self.tree.reap()
        self._hear(heard)
        now = time.monotonic()
        if signal.SIGCONT in heard or now >= self._next_tick:
            self._tick()
        if self.reason is None:
            broken = self.limits.broken(self.captures, self.room)
            if broken:
                self.stop(broken)
        if now >= self._kill_at:
            self._kill()

    def _hear(self, heard: set[int]) -> None:
        if heard & {signal.SIGTERM, signal.SIGINT}:
            name = "SIGTERM" if signal.SIGTERM in heard else "SIGINT"
            # Whoever signals again does not want to wait.
            again = self.reason == "cancelled"
            self._obey({"by": "signal", "reason": name, "kill": again})

    def _kill(self) -> None:
        self._kill_at = float("inf")
        self._killed = True
        self.tree.kill()

    def _tick(self) -> None:
        self._next_tick = time.monotonic() + _TICK_SEC
        self._look_for_cancel()
        if self._writes_directly and self.limits.disk_is_low(self.dir):
            self.stop("disk_full")

    def _look_for_cancel(self) -> None:
        path = os.path.join(self.dir, documents.CANCEL)
        try:
            stat = os.stat(path)
        except FileNotFoundError:
            return
        if self._cancel_seen == (stat.st_ino, stat.st_mtime_ns):
            return
        self._cancel_seen = (stat.st_ino, stat.st_mtime_ns)
        try:
            wish = documents.read_document(self.dir, documents.CANCEL)
        except ValueError:
            documents.complain(self.dir)
            return
        if wish is not None:
            self._obey(wish)

    def _obey(self, wish: dict[str, Any]) -> None:
        if self.reason is None:
            self._cancel = {"by": str(wish.get("by")), "reason": str(wish.get("reason"))}
        self.stop("cancelled")
        if wish.get("kill"):
            self._hurry = True
            self._kill_at = min(self._kill_at, time.monotonic())

    def _pump(self) -> None:
        if self._inotify is not None:
            kernel.drain(self._inotify)
        self._more = False
        before = self._seen()
        for capture in self.captures:
            self._more = capture.pump() or self._more
            self.wakeups.watch(capture.readable_fd, capture.stalled_since is None)
        self.index.flush()
        self._pause = self._next_pause(self._seen() - before)

    def _seen(self) -> int:
        return sum(capture.seen for capture in self.captures)

    def _next_pause(self, came: int) -> float:
        """Nothing while it is quiet, a millisecond while lines come, more in a flood."""
        if came >= _FLOOD_BYTES:
            return min(_LONGEST_PAUSE_SEC, max(_SHORTEST_PAUSE_SEC, 2 * self._pause))
        return _SHORTEST_PAUSE_SEC if came or self.index.waiting else 0.0

    def _end_leftovers(self) -> None:
        deadline = time.monotonic() + _LEFTOVER_PATIENCE_SEC
        while True:
            left = self.tree.members()
            if not left and self.tree.is_empty():
                return
            for process in left:
                self._ask_to_go(process)
            if self._hurry or time.monotonic() >= deadline:
                self._kill()
                return
            self._round(0.0 if self._more else _POLL_SEC)

    def _ask_to_go(self, process: processes.Process) -> None:
        key = (process.pid, process.start)
        if key in self._leftovers or len(self._leftovers) >= _LEFTOVERS_LISTED:
            return
        command = mask_text(processes.command(process.pid), self._needles)
        if processes.send(process.pid, process.start, signal.SIGTERM):
            self._leftovers[key] = {"pid": process.pid, "command": command}
            processes.send(process.pid, process.start, signal.SIGCONT)

    def _drain(self) -> None:
        unfinished = list(self.captures)
        while unfinished:
            self._pump()
            if not self._more:
                unfinished = [capture for capture in unfinished if not capture.finish()]
            if unfinished and not self._more:
                self._hear(self.wakeups.wait(_TICK_SEC))
                self._tick()
                if self._hurry or self.limits.disk_wait_is_over(self.captures):
                    self._lose_the_rest()
                    return

    def _lose_the_rest(self) -> None:
        # Whatever the reason was before: the logs are not whole, and that must be seen.
        self.reason = "disk_full"
        message = "The disk of %s stayed full; the end of the output is lost. Free some space."
        self.error = {"where": "drain", "message": message % self.dir}

    def write_end(self) -> None:
        """Put meta.json and exit.json in place; this ends the attempt."""
        self._release_space()
        self.index.flush(final=True)
        self.meta["masked"] = sum(capture.masker.masked for capture in self.captures)
        self._write_patiently(documents.META, self.meta)
        self._remove_cgroup()
        for capture in self.captures:
            capture.close()
        self.index.close()
        self._write_patiently(documents.EXIT, self._exit_record())

    def _write_patiently(self, name: str, document: dict[str, Any]) -> None:
        for _ in range(_DOCUMENT_PATIENCE_SEC):
            try:
                documents.write_document(self.dir, name, document)
                return
            except OSError as error:
                if error.errno not in NO_SPACE:
                    raise
            self.wakeups.wait(1.0)
        documents.write_document(self.dir, name, document)

    def _remove_cgroup(self) -> None:
        # A process that was just reaped may keep its group busy for a moment.
        for _ in range(20):
            if self.tree.cgroup is None or self.tree.cgroup.remove():
                return
            self.wakeups.wait(0.01)

    def _exit_record(self) -> dict[str, Any]:
        code, number = _outcome(self.tree.status)
        record = documents.end_before_start(self.error)
        record.update(
            exitCode=code,
            signal=number,
            reason=self.reason,
            startedAt=self.meta.get("startedAt"),
            stdoutBytes=self.index.covered["o"],
            stderrBytes=self.index.covered["e"],
            masked=self.meta["masked"],
            leftovers=list(self._leftovers.values()),
            truncated=[cut for capture in self.captures for cut in capture.truncated],
            adopted=self.adopted,
            cancel=self._cancel,
            killed=self._killed,
        )
        return record


def _outcome(status: int | None) -> tuple[int | None, str | None]:
    if status is None:
        return None, None
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        try:
            return None, signal.Signals(number).name
        except ValueError:
            return None, "SIG%d" % number
    return os.WEXITSTATUS(status), None
