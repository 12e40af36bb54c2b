"""`binderclip up`: the server as a real process."""

from __future__ import annotations

import re
import signal
import socket
from collections.abc import Iterator

import httpx
import pytest

from binderclip import __version__
from tests.cli.conftest import Cli


@pytest.fixture
def address(cli: Cli) -> Iterator[str]:
    process = cli.start("up", "--port", "0")
    try:
        assert process.stdout is not None
        line = process.stdout.readline().decode()
        match = re.search(r"http://127\.0\.0\.1:\d+/", line)
        assert match, line
        yield match[0]
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)


def test_it_prints_its_address_and_is_healthy(address: str) -> None:
    answer = httpx.get(f"{address}api/health", trust_env=False)
    assert answer.json() == {"status": "ok", "version": __version__}


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:3210", "127.0.0.1.evil.example", ""]
)
def test_another_host_name_is_refused(address: str, host: str) -> None:
    """Design 6: Host is checked, so that a rebound name reaches nothing."""
    answer = httpx.get(f"{address}api/health", headers={"Host": host}, trust_env=False)
    assert answer.status_code == 403
    assert answer.json()["error"]["code"] == "forbidden_host"


def test_a_busy_port_is_told(cli: Cli) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = cli("up", "--port", port, code=1)
    assert f"Port {port} of 127.0.0.1 cannot be used" in done.stderr
    assert "--port chooses another" in done.stderr


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])
def test_another_address_needs_a_token_that_was_chosen(cli: Cli, host: str) -> None:
    """Design 6: any address other than loopback needs a token, or the server refuses."""
    refused = cli("up", "--host", host, code=2, BINDERCLIP_TOKEN="").stderr
    assert "needs a token of your own" in refused
    assert "BINDERCLIP_TOKEN" in refused
    assert "keeps anybody out" in cli("up", "--host", host, code=2, BINDERCLIP_TOKEN="a").stderr
    assert not (cli.home.path / "token").exists()


def test_an_address_for_others_carries_the_token_that_was_chosen(cli: Cli) -> None:
    token = "chosen-on-purpose-1234"
    cli.env["BINDERCLIP_TOKEN"] = token
    process = cli.start("up", "--host", "0.0.0.0", "--port", "0")
    try:
        assert process.stdout is not None
        told = process.stdout.readline().decode()
        assert re.search(rf"http://0\.0\.0\.0:\d+/\?token={token}\s", told)
        assert (cli.home.path / "token").read_text() == token
        assert (cli.home.path / "token").stat().st_mode & 0o777 == 0o600
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_quietly_and_leaves_nothing_behind(cli: Cli, number: int) -> None:
    """D1: its nursery ends with it; only agents would go on."""
    process = cli.start("up", "--port", "0")
    assert process.stdout is not None
    assert b"is up at" in process.stdout.readline()
    assert (cli.home.path / "nursery.sock").exists()
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err.strip()) == (0, b"")
    assert not (cli.home.path / "nursery.sock").exists()
