"""A machine behind a cable: a network namespace whose only link can be pulled out."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_SUBNET = "10.213.{number}.{host}"


class Cable:
    """A pair of virtual network cards; the far one lies in a namespace of its own."""

    def __init__(self, number: int) -> None:
        self.space = f"bc{os.getpid()}"
        self.near, self.far = f"bcn{os.getpid()}", f"bcf{os.getpid()}"
        self.host = _SUBNET.format(number=number, host=2)
        self._own = _SUBNET.format(number=number, host=1)
        self.inside = ("ip", "netns", "exec", self.space)

    def lay(self) -> None:
        _ip("netns", "add", self.space)
        pair = ("type", "veth", "peer", "name", self.far, "netns", self.space)
        _ip("link", "add", self.near, *pair)
        _ip("addr", "add", f"{self._own}/30", "dev", self.near)
        _ip("-n", self.space, "addr", "add", f"{self.host}/30", "dev", self.far)
        _ip("-n", self.space, "link", "set", "lo", "up")
        _ip("link", "set", self.near, "up")
        self.plug()

    def remove(self) -> None:
        # First the cable: the namespace itself lives as long as anybody in it.
        _ip("link", "del", self.near)
        _ip("netns", "del", self.space)

    def pull(self) -> None:
        """From now on every packet is lost, and nobody is told."""
        _ip("-n", self.space, "link", "set", self.far, "down")

    def plug(self) -> None:
        _ip("-n", self.space, "link", "set", self.far, "up")

    def passed(self) -> int:
        """Bytes that went through, both ways."""
        counts = Path(f"/sys/class/net/{self.near}/statistics")
        return sum(int((counts / name).read_text()) for name in ("rx_bytes", "tx_bytes"))

    @contextmanager
    def pulled_after(self, size: int) -> Iterator[None]:
        """Pull the cable as soon as so many bytes have passed."""
        start, over = self.passed(), threading.Event()

        def watch() -> None:
            while self.passed() - start < size:
                if over.wait(0.001):
                    return
            self.pull()

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            yield
        finally:
            over.set()
            watcher.join()


@contextmanager
def cable() -> Iterator[Cable]:
    """A cable for as long as the block lasts."""
    laid = Cable(os.getpid() % 254 + 1)
    laid.lay()
    try:
        yield laid
    finally:
        laid.remove()


def _ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True)
    assert done.returncode == 0, f"ip {' '.join(words)}: {done.stderr}"
