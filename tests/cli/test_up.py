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


def test_the_page_lists_runs_and_believes_nothing(cli: Cli, address: str) -> None:
    """A8: a prompt is text, never markup; the page needs nothing from elsewhere."""
    cli("run", "-a", "process", "-c", "command=cat", "<script>alert(1)</script>")
    page = httpx.get(address, trust_env=False).text
    assert cli.newest()[-8:] in page
    assert "&lt;script&gt;" in page
    assert "<script" not in page
    assert "http" not in page


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


def test_it_listens_on_this_machine_only(cli: Cli) -> None:
    """Design 6: any address other than loopback needs a token, or the server refuses."""
    assert "this machine only" in cli("up", "--host", "0.0.0.0", code=2).stderr


def test_ctrl_c_ends_it_quietly(cli: Cli) -> None:
    process = cli.start("up", "--port", "0")
    assert process.stdout is not None
    assert b"is up at" in process.stdout.readline()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (out, err.strip()) == (b"", b"")
    assert process.returncode == 130
