"""Programs that try to outlive their run; the argument names which."""

from __future__ import annotations

import os
import signal
import sys
import time


def ready() -> None:
    os.write(1, b"ready\n")


def sleep_for_ever() -> None:
    while True:
        time.sleep(60)


def daemonize() -> bool:
    """Double fork into a new session; True in the daemon."""
    if os.fork():
        return False
    os.setsid()
    if os.fork():
        os._exit(0)
    return True


def daemon() -> None:
    if daemonize():
        ready()
        sleep_for_ever()


def stubborn_daemon() -> None:
    reader, writer = os.pipe()
    if daemonize():
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.write(writer, b".")
        sleep_for_ever()
    os.read(reader, 1)


def chain() -> None:
    """Each link forks its successor and exits."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    ready()
    if os.fork() == 0:
        while os.fork() == 0:
            os.setsid()
            time.sleep(0.001)
        os._exit(0)
    sleep_for_ever()


def chains() -> None:
    for _ in range(6):
        if os.fork() == 0:
            chain()
    sleep_for_ever()


def bush() -> None:
    """A tree that grows to some hundred processes, each in a session of its own."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for _ in range(7):
        if os.fork() == 0:
            os.setsid()
    ready()
    sleep_for_ever()


{f.__name__: f for f in (daemon, stubborn_daemon, chain, chains, bush)}[sys.argv[1]]()
