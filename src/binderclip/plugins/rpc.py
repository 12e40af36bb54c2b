"""Asking a plugin's own process: JSON-RPC 2.0 on descriptor 3, one JSON object a line.

A crash or a hang ends that call only: the process is killed and the next call starts another.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import signal
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

from binderclip.contract.errors import AdapterError

LONGEST_ANSWER = 32 * 1024 * 1024
KEPT_LOG = 64 * 1024
DESCRIPTOR = 3
_FREE = 20


class PluginProcess:
    """One process that answers calls; started by the first one, gone when it idles out."""

    def __init__(self, name: str, argv: Sequence[str], env: Mapping[str, str]) -> None:
        self.name = name
        self._argv = list(argv)
        self._env = dict(env)
        self._lock = threading.Lock()
        self._pid: int | None = None
        self._socket: socket.socket | None = None
        self._drain: threading.Thread | None = None
        self._log = bytearray()
        self._buffer = b""
        self._number = 0

    @property
    def log(self) -> str:
        """The last that the plugin printed; never part of an answer."""
        return bytes(self._log).decode("utf-8", "replace")

    @property
    def pid(self) -> int | None:
        return self._pid

    def call(self, method: str, params: Any = None, *, seconds: float = 15) -> Any:
        """The result of one call, or `AdapterError` that says what the plugin did."""
        if not self._lock.acquire(timeout=seconds):
            raise AdapterError(f"The plugin {self.name} is busy with another call.")
        try:
            fresh = self._socket is None
            try:
                return self._once(method, params, seconds)
            except _Gone:
                self._end()
                # An idle process may have left between two calls; a fresh one may not.
                if fresh:
                    raise self._failed(f"ended during {method}") from None
                return self._again(method, params, seconds)
        finally:
            self._lock.release()

    def close(self) -> None:
        with self._lock:
            self._end()

    def _again(self, method: str, params: Any, seconds: float) -> Any:
        try:
            return self._once(method, params, seconds)
        except _Gone:
            self._end()
            raise self._failed(f"ended during {method}") from None

    def _once(self, method: str, params: Any, seconds: float) -> Any:
        if self._socket is None:
            self._start()
        self._number += 1
        wish = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        deadline = time.monotonic() + seconds
        self._send(json.dumps(wish).encode() + b"\n", deadline, method)
        while True:
            answer = self._understand(self._line(deadline, method), method)
            if answer.get("id") == self._number:
                return self._result(answer, method)

    def _result(self, answer: dict[str, Any], method: str) -> Any:
        problem = answer.get("error")
        if problem is None:
            return answer.get("result")
        told = problem.get("message") if isinstance(problem, dict) else str(problem)
        first = str(told).strip().split("\n")[0]
        raise AdapterError(f"{self.name} failed in {method}: {first[:2000]}")

    def _understand(self, line: bytes, method: str) -> dict[str, Any]:
        try:
            answer = json.loads(line)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            self._end()
            raise self._failed(f"answered {method} with something that is no JSON-RPC")
        return answer

    def _send(self, data: bytes, deadline: float, method: str) -> None:
        assert self._socket is not None
        self._socket.settimeout(max(0.01, deadline - time.monotonic()))
        try:
            self._socket.sendall(data)
        except TimeoutError:
            self._end()
            raise self._failed(f"did not read the call {method} in time") from None
        except OSError:
            raise _Gone from None

    def _line(self, deadline: float, method: str) -> bytes:
        assert self._socket is not None
        pieces = [self._buffer]
        size = len(self._buffer)
        while b"\n" not in pieces[-1]:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._socket], [], [], left)[0]:
                self._end()
                raise self._failed(f"did not answer {method} in time and was ended")
            piece = self._read()
            pieces.append(piece)
            size += len(piece)
            if size > LONGEST_ANSWER:
                self._end()
                raise self._failed(f"answered {method} with more than {LONGEST_ANSWER} bytes")
        line, _, self._buffer = b"".join(pieces).partition(b"\n")
        return line

    def _read(self) -> bytes:
        assert self._socket is not None
        try:
            piece = self._socket.recv(256 * 1024)
        except OSError:
            piece = b""
        if not piece:
            raise _Gone
        return piece

    def _start(self) -> None:
        ours, theirs = socket.socketpair()
        reading, writing = os.pipe()
        # Above the descriptors that are set up for the child, so that none is set up over another.
        high = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _FREE) for fd in (theirs.fileno(), writing)]
        actions = [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_DUP2, high[1], 1),
            (os.POSIX_SPAWN_DUP2, high[1], 2),
            (os.POSIX_SPAWN_DUP2, high[0], DESCRIPTOR),
        ]
        try:
            self._pid = os.posix_spawn(
                self._argv[0], self._argv, self._env, file_actions=actions, setpgroup=0
            )
        except OSError as problem:
            ours.close()
            os.close(reading)
            raise AdapterError(f"{self.name} cannot be started: {problem}") from problem
        finally:
            theirs.close()
            for fd in (writing, *high):
                os.close(fd)
        self._socket, self._buffer = ours, b""
        self._log.clear()
        self._drain = threading.Thread(target=self._keep, args=(reading,), daemon=True)
        self._drain.start()

    def _keep(self, reading: int) -> None:
        """Read what the plugin prints, however much, and keep the end of it."""
        with open(reading, "rb", buffering=0) as pipe:
            while piece := pipe.read(64 * 1024):
                self._log += piece
                del self._log[:-KEPT_LOG]
        # Nobody may call again for days: a process that idled out is not left as a zombie.
        if self._lock.acquire(blocking=False):
            try:
                self._drain = None
                self._end()
            finally:
                self._lock.release()

    def _end(self) -> None:
        """Kill what is left of the process, with everything in its group."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        if self._pid is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self._pid, 0)
            self._pid = None
        if self._drain is not None:
            # A grandchild in a session of its own may hold the pipe; the thread is a daemon.
            self._drain.join(1)
            self._drain = None

    def _failed(self, what: str) -> AdapterError:
        last = [line for line in self.log.strip().splitlines() if line.strip()][-6:]
        return AdapterError(
            f"The plugin {self.name} {what}.",
            hint="It printed last: " + " | ".join(last)[-1500:] if last else None,
        )


class _Gone(Exception):
    """The process closed its end."""
