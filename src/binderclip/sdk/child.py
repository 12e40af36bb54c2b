"""Running one child process from an adapter host (H4): exact bytes, bounded memory, no leftovers.

When `run_child_process` returns or raises, nothing of the child's process group is alive.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from binderclip.contract.errors import SpawnError
from binderclip.contract.run import SpawnInfo
from binderclip.contract.wire import iso_time
from binderclip.sdk.env import clean_env, ensure_absolute_directory, ensure_command_resolvable

if TYPE_CHECKING:
    import asyncio

READ_BYTES = 256 * 1024
LEFTOVER_SEC = 5.0
"""How long the rest of a group may take to obey SIGTERM once the child itself is gone."""
KILLED_SEC = 2.0
LAST_BYTES = 1024 * 1024
"""What a pipe can hold: a stranger that keeps it open is not read beyond this."""
POLL_SEC = 0.02

OnBytes = Callable[[bytes], Awaitable[None]]


class ChildOptions(msgspec.Struct, frozen=True):
    """How a child runs; a limit of 0 means none. Callbacks are awaited before more is read."""

    cwd: str | Path | None = None
    env: Mapping[str, str] | None = None
    """The child's environment besides its run id; the clean part of this process's if None."""
    stdin: bytes | None = None
    timeout_sec: float = 0
    idle_timeout_sec: float = 0
    grace_sec: float = 15
    on_stdout: OnBytes | None = None
    on_stderr: OnBytes | None = None
    on_spawn: Callable[[SpawnInfo], Awaitable[None]] | None = None
    tail_bytes: int = 16 * 1024


class ChildResult(msgspec.Struct, frozen=True):
    """How a child ended, and the last bytes of both streams."""

    exit_code: int | None
    signal: str | None
    reason: Literal["exited", "timeout", "idle_timeout"]
    pid: int
    started_at: str
    stdout_tail: bytes
    stderr_tail: bytes

    @property
    def timed_out(self) -> bool:
        return self.reason != "exited"


async def run_child_process(
    run_id: str, command: str, args: Sequence[str], opts: ChildOptions | None = None
) -> ChildResult:
    """Run a program to its end, without a shell, in a process group of its own."""
    opts = opts or ChildOptions()
    process = _spawn(run_id, command, args, opts)
    child = _Child(process, opts)
    try:
        return await child.run()
    finally:
        await child.close()


def _spawn(
    run_id: str, command: str, args: Sequence[str], opts: ChildOptions
) -> subprocess.Popen[bytes]:
    cwd = ensure_absolute_directory(str(opts.cwd or Path.cwd()))
    given = clean_env(os.environ) if opts.env is None else opts.env
    env = {**given, "PAPERCLIP_RUN_ID": run_id}
    program = ensure_command_resolvable(command, cwd, env)
    try:
        return subprocess.Popen(
            [str(program), *args],
            bufsize=0,
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL if opts.stdin is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            process_group=0,
        )
    except (OSError, ValueError) as problem:
        raise SpawnError(
            f"{program} could not be started: {problem}", hint="Check the file and its first line."
        ) from problem


class _Child:
    """One running child: its pumps, its limits, and the end of its group."""

    def __init__(self, process: subprocess.Popen[bytes], opts: ChildOptions) -> None:
        import asyncio

        self._process = process
        self._opts = opts
        self._loop = asyncio.get_running_loop()
        self._started = self._loop.time()
        self._last_output = self._started
        self._exited = asyncio.Event()
        self._over = asyncio.Event()
        self._waiting: set[asyncio.Future[None]] = set()
        self._tails = {"stdout": bytearray(), "stderr": bytearray()}
        self._started_at = iso_time(time.time())
        # A thread waits on every Unix; child watchers of event loops differ by version.
        threading.Thread(target=self._wait, name="binderclip-wait", daemon=True).start()

    async def run(self) -> ChildResult:
        """Pump and watch until the child has ended and its output is drained."""
        import asyncio

        opts, process = self._opts, self._process
        if opts.on_spawn:
            pid = process.pid
            await opts.on_spawn(
                SpawnInfo(pid=pid, process_group_id=pid, started_at=self._started_at)
            )
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._pump("stdout", opts.on_stdout))
                tasks.create_task(self._pump("stderr", opts.on_stderr))
                tasks.create_task(self._feed(opts.stdin or b""))
                watching = tasks.create_task(self._watch())
        except BaseExceptionGroup as group:
            # Callers know the exceptions of their own callbacks, not groups of them.
            raise group.exceptions[0] from None
        code = process.returncode
        return ChildResult(
            exit_code=code if code >= 0 else None,
            signal=_signal_name(-code) if code < 0 else None,
            reason=watching.result(),
            pid=process.pid,
            started_at=self._started_at,
            stdout_tail=bytes(self._tails["stdout"]),
            stderr_tail=bytes(self._tails["stderr"]),
        )

    async def close(self) -> None:
        """End what is left, also after a cancel or a failing callback; idempotent."""
        import asyncio

        if not self._over.is_set():
            ending = asyncio.ensure_future(self._end())
            try:
                await asyncio.shield(ending)
            except asyncio.CancelledError:
                self._kill(signal.SIGKILL)
                await ending
                raise
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None and not pipe.closed:
                pipe.close()

    def _wait(self) -> None:
        self._process.wait()
        self._loop.call_soon_threadsafe(self._exited.set)

    async def _watch(self) -> Literal["exited", "timeout", "idle_timeout"]:
        reason = await self._limit()
        await self._end()
        return reason

    async def _limit(self) -> Literal["exited", "timeout", "idle_timeout"]:
        """Wait for the child's end or for the limit that comes first."""
        opts = self._opts
        while True:
            now = self._loop.time()
            wall = self._started + opts.timeout_sec - now if opts.timeout_sec else None
            idle = self._last_output + opts.idle_timeout_sec - now
            idle_left = idle if opts.idle_timeout_sec else None
            if wall is not None and wall <= 0:
                return "timeout"
            if idle_left is not None and idle_left <= 0:
                return "idle_timeout"
            left = [limit for limit in (wall, idle_left) if limit is not None]
            if await self._exits_within(min(left) if left else None):
                return "exited"

    async def _end(self) -> None:
        """SIGTERM, grace, SIGKILL for the child; then the same for the rest of its group."""
        if not self._exited.is_set():
            self._kill(signal.SIGTERM)
            self._kill(signal.SIGCONT)
            if not await self._exits_within(self._opts.grace_sec):
                self._kill(signal.SIGKILL)
                await self._exited.wait()
        self._kill(signal.SIGTERM)
        if not await self._empties_within(min(self._opts.grace_sec, LEFTOVER_SEC)):
            self._kill(signal.SIGKILL)
            await self._empties_within(KILLED_SEC)
        self._over.set()
        for future in self._waiting:
            _resolve(future)

    def _kill(self, number: signal.Signals) -> None:
        """Signal the group, if anybody is left in it; macOS refuses where all are dead."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    async def _exits_within(self, seconds: float | None) -> bool:
        import asyncio

        try:
            await asyncio.wait_for(self._exited.wait(), seconds)
        except TimeoutError:
            return False
        return True

    async def _empties_within(self, seconds: float) -> bool:
        """The kernel tells nobody when a group becomes empty, so look."""
        import asyncio

        deadline = self._loop.time() + seconds
        while _group_lives(self._process.pid):
            if self._loop.time() >= deadline:
                return False
            await asyncio.sleep(POLL_SEC)
        return True

    async def _pump(self, name: Literal["stdout", "stderr"], callback: OnBytes | None) -> None:
        """Read until the end, or until the group is gone and only strangers hold the pipe."""
        import asyncio

        pipe = getattr(self._process, name)
        os.set_blocking(pipe.fileno(), False)
        read_after_end = 0
        while read_after_end < LAST_BYTES:
            try:
                chunk = os.read(pipe.fileno(), READ_BYTES)
            except BlockingIOError:
                if self._over.is_set():
                    return
                await self._ready(pipe.fileno(), self._loop.add_reader, self._loop.remove_reader)
                continue
            if not chunk:
                return
            read_after_end += len(chunk) if self._over.is_set() else 0
            self._keep(self._tails[name], chunk)
            if callback is not None:
                await callback(chunk)
            self._last_output = self._loop.time()
            await asyncio.sleep(0)

    async def _feed(self, data: bytes) -> None:
        """Write stdin as fast as the child takes it, then close it."""
        pipe = self._process.stdin
        if pipe is None:
            return
        os.set_blocking(pipe.fileno(), False)
        left = memoryview(data)
        while left and not self._over.is_set():
            try:
                left = left[os.write(pipe.fileno(), left[:READ_BYTES]) :]
            except BlockingIOError:
                await self._ready(pipe.fileno(), self._loop.add_writer, self._loop.remove_writer)
            except BrokenPipeError:
                break
        pipe.close()

    async def _ready(
        self, fd: int, watch: Callable[..., object], unwatch: Callable[[int], object]
    ) -> None:
        future: asyncio.Future[None] = self._loop.create_future()
        self._waiting.add(future)
        watch(fd, _resolve, future)
        try:
            await future
        finally:
            unwatch(fd)
            self._waiting.discard(future)

    def _keep(self, tail: bytearray, chunk: bytes) -> None:
        tail += chunk[-self._opts.tail_bytes :] if self._opts.tail_bytes else b""
        del tail[: -self._opts.tail_bytes]


def _group_lives(group: int) -> bool:
    """Whether anybody in the group still runs; the dead that nobody reaped yet do not count."""
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return False
    stats = list(Path("/proc").glob("[0-9]*/stat"))
    return not stats or any(_runs_in(path, group) for path in stats)


def _runs_in(stat: Path, group: int) -> bool:
    try:
        fields = stat.read_bytes().rpartition(b")")[2].split()
    except OSError:
        return False
    return int(fields[2]) == group and fields[0] not in (b"Z", b"X")


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIG{number}"
