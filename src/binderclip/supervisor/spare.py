"""A supervisor's interpreter that starts before its attempt is known, so that nobody waits for it.

It serves one attempt at most and ends with whoever started it, unless it got an attempt by then.
"""

from __future__ import annotations

import os
import socket

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType


class Spare:
    """The driver's side; `launch` takes it in the place of a nursery."""

    def __init__(self) -> None:
        from binderclip.supervisor.launch import start_cold

        self._socket, theirs = socket.socketpair()
        with theirs:
            self._starter = start_cold("spare", (theirs.fileno(),))

    def __enter__(self) -> Spare:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def take(self, mode: str, fds: list[int]) -> bool:
        """Give it an attempt; False if it had one already or is gone."""
        if self._socket.fileno() < 0:
            return False
        try:
            socket.send_fds(self._socket, [mode.encode()], fds)
        except OSError:
            return False
        finally:
            self.close()
        return True

    def close(self) -> None:
        """Let it go; without an attempt it ends."""
        self._socket.close()
        self._starter.wait()


def serve(socket_fd: int) -> None:
    """The process: wait for an attempt, then be its supervisor."""
    from binderclip.supervisor import main

    with socket.socket(fileno=socket_fd) as connection:
        message, fds, _, _ = socket.recv_fds(connection, 16, 3)
    if len(fds) == 3:
        main.serve(message.decode("ascii"), *fds)
    os._exit(0)
