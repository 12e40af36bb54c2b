"""Starting is fast: a command imports only what it needs."""

from __future__ import annotations

import subprocess
import sys

import pytest
from click.testing import CliRunner

from binderclip import __version__
from binderclip.cli import main
from tests.cli.conftest import Cli

SERVER = {"fastapi", "starlette", "uvicorn", "httpx"}
DATABASE = {"sqlalchemy", "alembic"}
HEAVY = SERVER | DATABASE | {"pydantic", "rich", "msgspec", "anyio", "cryptography"}
CODE = """
import sys
from binderclip.cli import main
try:
    main(sys.argv[1:])
except SystemExit:
    pass
print("\\nMODULES", *{name.split(".")[0] for name in sys.modules})
"""


def imported_by(cli: Cli, *words: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", CODE, *words],
        env=cli.env,
        cwd=cli.cwd,
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.rpartition("\nMODULES ")[2].split())


@pytest.mark.parametrize("words", [["--help"], ["--version"]])
def test_help_imports_nothing_heavy(cli: Cli, words: list[str]) -> None:
    """D11: start-up counts."""
    assert imported_by(cli, *words) & HEAVY == set()


def test_listing_runs_imports_no_database_and_no_adapter(cli: Cli) -> None:
    """D11: what is asked for most is answered from files."""
    cli("run", "-a", "process", "--", "true")
    assert imported_by(cli, "runs") & (HEAVY - {"msgspec"}) == set()
    cli("agents", "create", "Ada", "--adapter", "process", "--config", "command=true")
    assert (cli.home.path / "binderclip.db").exists()
    assert imported_by(cli, "runs") & (HEAVY - {"msgspec"}) == set()


def test_a_run_imports_no_database_and_no_server(cli: Cli) -> None:
    """D11: `run` needs the store's tables only for sessions."""
    found = imported_by(cli, "run", "-a", "process", "--", "true")
    assert found & (SERVER | DATABASE | {"rich"}) == set()


def test_help_names_every_command() -> None:
    out = CliRunner().invoke(main, ["--help"]).output
    for name in main.list_commands(None):  # type: ignore[arg-type]
        assert f"\n  {name} " in out


@pytest.mark.parametrize("name", main.list_commands(None))  # type: ignore[arg-type]
def test_every_command_has_help(name: str) -> None:
    done = CliRunner().invoke(main, [name, "--help"])
    assert done.exit_code == 0
    assert f"Usage: main {name}" in done.output


def test_the_version_is_told() -> None:
    assert CliRunner().invoke(main, ["--version"]).output == f"binderclip, version {__version__}\n"


def test_an_unknown_command_is_wrong_usage() -> None:
    assert CliRunner().invoke(main, ["nonsense"]).exit_code == 2


def test_a_bug_is_told_in_one_line_and_shown_only_when_asked(cli: Cli) -> None:
    """Errors are plain lines; BINDERCLIP_DEBUG shows the traceback."""
    (cli.cwd / "home").write_text("a file where a directory should be")
    home = str(cli.cwd / "home")
    done = cli("runs", code=1, BINDERCLIP_HOME=home)
    assert "cannot be made" in done.stderr
    assert "Traceback" not in done.stderr
    assert "Traceback" in cli("runs", code=1, BINDERCLIP_HOME=home, BINDERCLIP_DEBUG="1").stderr
