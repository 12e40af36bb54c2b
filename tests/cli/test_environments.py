"""`binderclip environments`: other machines by name, checked when saved, tested on demand (E4)."""

from __future__ import annotations

import getpass
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.workspaces.sshd import Sshd, running


@pytest.fixture
def sshd() -> Iterator[Sshd]:
    with running() as daemon:
        yield daemon


def fields(sshd: Sshd, root: Path) -> list[str]:
    """The words that describe a machine."""
    config = {
        "host": "127.0.0.1",
        "port": sshd.port,
        "user": getpass.getuser(),
        "identityFile": sshd.directory / "user",
        "knownHostsFile": sshd.directory / "known",
        "control": sshd.directory,
        "remoteRoot": root,
        "python": sys.executable,
    }
    return [word for key, value in config.items() for word in ("--config", f"{key}={value}")]


def test_an_environment_comes_is_tested_changed_and_goes(
    cli: Cli, sshd: Sshd, tmp_path: Path
) -> None:
    """E4: the checks run there; the exit code says whether runs can work there."""
    assert "this machine" in cli("environments").stdout
    cli("environments", "create", "box", *fields(sshd, tmp_path / "remote"))
    assert "127.0.0.1" in cli("environments", "list").stdout
    told = cli("environments", "test", "box", "sh").stdout
    assert "sh is /" in told
    assert told.endswith(("pass\n", "warn\n"))
    failed = json.loads(cli("environments", "test", "box", "no-such", "--json", code=1).stdout)
    assert failed["status"] == "fail"
    path = 'path=["/opt/agents"]'
    cli("environments", "edit", "box", "--name", "big box", "--config", path, "-c", "user=")
    (found,) = json.loads(cli("environments", "--json").stdout)
    assert (found["name"], found["config"]["path"]) == ("big box", ["/opt/agents"])
    assert "user" not in found["config"]
    cli("environments", "remove", found["id"][-8:])
    assert "No environment is called" in cli("environments", "test", "big box", code=2).stderr


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("host=-oProxyCommand=x", "host: must be the name or address"),
        ("knownHosts=off", "knownHosts: must be one of verify, accept-new"),
        ("port=ssh", "port: must be a number"),
        ("hots=box", "hots: unknown field"),
        ("host", "write it as key=value"),
    ],
)
def test_a_config_that_cannot_work_is_refused_when_it_is_saved(
    cli: Cli, word: str, told: str
) -> None:
    refused = cli("environments", "create", "box", "-c", "host=box", "-c", word, code=2)
    assert told in refused.stderr
    assert json.loads(cli("environments", "--json").stdout) == []
