"""A PostgreSQL server of the machine's own, on loopback, for tests that run on both databases."""

from __future__ import annotations

import itertools
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

PATIENCE = 60
_numbers = itertools.count(1)


class Server:
    """Databases to be had by their URL, each of them new and empty."""

    def __init__(self, port: int) -> None:
        self._port = port

    def database(self) -> str:
        name = f"test{next(_numbers)}"
        with self.connect("postgres") as connection:
            connection.execute(f"create database {name}")
        return f"postgresql://postgres@127.0.0.1:{self._port}/{name}"

    def drop(self, url: str) -> None:
        with self.connect("postgres") as connection:
            connection.execute(f"drop database {url.rpartition('/')[2]} with (force)")

    def connect(self, name: str) -> psycopg.Connection[tuple[object, ...]]:
        return psycopg.connect(
            f"host=127.0.0.1 port={self._port} user=postgres dbname={name}", autocommit=True
        )


@contextmanager
def running() -> Iterator[Server]:
    """Start a server in a directory of its own and end it afterwards."""
    # PostgreSQL refuses to run as root; Debian's package brings a user for it.
    user = "postgres" if os.geteuid() == 0 else None
    directory = Path(tempfile.mkdtemp(prefix="binderclip-pg-"))
    try:
        if user:
            os.chown(directory, pwd.getpwnam(user).pw_uid, -1)
        with (directory / "log").open("wb") as log:
            _initialise(directory / "data", user, log)
            port = _free_port()
            process = _start(directory, port, user, log)
            try:
                server = Server(port)
                _wait(server, process, directory / "log")
                yield server
            finally:
                process.send_signal(signal.SIGINT)
                process.wait(PATIENCE)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _program(name: str) -> str:
    found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    path = str(found[-1]) if found else shutil.which(name)
    assert path, f"{name} is missing: run script/services"
    return path


def _initialise(data: Path, user: str | None, log: object) -> None:
    words = [_program("initdb"), "-D", str(data), "-U", "postgres", "-A", "trust", "--no-sync"]
    words += ["-E", "UTF8", "--locale=C.UTF-8"]
    subprocess.run(words, user=user, cwd="/", stdout=log, stderr=log, check=True)  # type: ignore[call-overload]


def _start(directory: Path, port: int, user: str | None, log: object) -> subprocess.Popen[bytes]:
    settings = {
        "port": port,
        "listen_addresses": "127.0.0.1",
        "unix_socket_directories": directory,
        "fsync": "off",
        "max_connections": 200,
    }
    words = [_program("postgres"), "-D", str(directory / "data")]
    words += [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
    return subprocess.Popen(words, user=user, cwd="/", stdout=log, stderr=log)  # type: ignore[call-overload]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait(server: Server, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        assert process.poll() is None, log.read_text()
        try:
            server.connect("postgres").close()
            return
        except psycopg.OperationalError:
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.05)
