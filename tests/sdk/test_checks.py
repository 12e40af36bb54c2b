"""E1-E3, A11, A12: the checks that every adapter shares."""

from __future__ import annotations

import getpass
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from binderclip.sdk import (
    Check,
    CheckCall,
    CheckRequest,
    CliAdapter,
    CliConfig,
    EnvironmentReport,
    Field,
    Manifest,
    dangerous,
    version_of,
)

TESTED_AT = "2026-01-01T00:00:00.000Z"


class SampleConfig(CliConfig):
    wild: bool = dangerous(default=False, description="Act without asking.")
    color: str | None = Field(None, description="Which.")


class Sample(CliAdapter):
    """A runtime with one check of its own."""

    Config = SampleConfig
    manifest = Manifest(id="sample", label="Sample", command="sample-agent", pass_env=("S_KEY",))

    def checks(self, call: CheckCall) -> Iterable[Check]:
        keys = ",".join(sorted(call.env))
        yield Check(code="own", level="info", message=keys, detail=str(call.program))


def report(config: dict[str, Any], **env: str) -> EnvironmentReport:
    request = CheckRequest(company_id="c", adapter_type="sample", config=config)
    return Sample().test_environment(request, env, TESTED_AT)


def codes(told: EnvironmentReport, level: str | None = None) -> list[str]:
    return [check.code for check in told.checks if level in (None, check.level)]


def make_program(folder: Path, script: str = "echo 1.2.3") -> Path:
    program = folder / "sample-agent"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return program


def test_a_usable_environment_passes(tmp_path: Path) -> None:
    """E1: status, checks and the time."""
    program = make_program(tmp_path)
    told = report({"cwd": str(tmp_path)}, PATH=str(tmp_path), S_KEY="k", OTHER="x")
    assert (told.status, told.adapter_type, told.tested_at) == ("pass", "sample", TESTED_AT)
    assert codes(told) == ["cwd_ok", "command_ok", "own"]
    assert (told.checks[2].message, told.checks[2].detail) == ("PATH,S_KEY", str(program))


def test_a_missing_command_is_an_error_with_a_hint(tmp_path: Path) -> None:
    """E1: error = unusable; the adapter's own checks still run."""
    told = report({"cwd": str(tmp_path)}, PATH=str(tmp_path))
    assert (told.status, codes(told, "error")) == ("fail", ["command_missing"])
    assert codes(told)[-1] == "own"
    missing = next(check for check in told.checks if check.code == "command_missing")
    assert missing.hint


def test_a_configured_command_is_looked_for(tmp_path: Path) -> None:
    make_program(tmp_path)
    told = report({"cwd": str(tmp_path), "command": "./sample-agent"}, PATH="/nowhere")
    assert "command_ok" in codes(told)


def test_a_bad_directory_ends_the_test(tmp_path: Path) -> None:
    """E1: bad cwd is an error."""
    told = report({"cwd": str(tmp_path / "gone")}, PATH=str(tmp_path))
    assert (told.status, codes(told)) == ("fail", ["cwd_unusable"])


def test_bad_config_is_a_finding_not_an_exception() -> None:
    """E2: expected findings never raise."""
    told = report({"timeoutSec": "soon"})
    assert (told.status, codes(told)) == ("fail", ["config_invalid"])
    assert "timeoutSec" in told.checks[0].message


def test_unknown_keys_are_warned_about(tmp_path: Path) -> None:
    """F2: kept, but said to have no effect."""
    make_program(tmp_path)
    told = report({"cwd": str(tmp_path), "modle": "x"}, PATH=str(tmp_path))
    assert (told.status, codes(told, "warn")) == ("warn", ["config_unknown_key"])
    assert "modle" in told.checks[0].message


@pytest.mark.parametrize("limit", ["timeoutSec", "idleTimeoutSec", "maxLogBytes"])
def test_no_limit_is_a_warning(tmp_path: Path, limit: str) -> None:
    """A11: 0 means no limit and is a warning."""
    make_program(tmp_path)
    told = report({"cwd": str(tmp_path), limit: 0}, PATH=str(tmp_path))
    (warning,) = (check for check in told.checks if check.level == "warn")
    assert (warning.code, warning.message.split()[0]) == ("limit_off", limit)


def test_a_dangerous_flag_names_the_user(tmp_path: Path) -> None:
    """A12: the test warns and names the user the agent runs as."""
    make_program(tmp_path)
    told = report({"cwd": str(tmp_path), "wild": True}, PATH=str(tmp_path))
    (warning,) = (check for check in told.checks if check.level == "warn")
    assert warning.code == "dangerous_flag"
    assert "wild" in warning.message
    assert getpass.getuser() in warning.message


@pytest.mark.parametrize(
    ("script", "version"),
    [
        ("echo 1.2.3; echo more", "1.2.3"),
        ("printf '  v2  \\n'", "v2"),
        ("echo $0 | sed 's|.*/||'; exit 3", None),
        ("true", None),
        ("echo broken >&2; exit 1", None),
        ("read line; echo got $?", "got 1"),
        ("printf '\\377bad\\n'", "\ufffdbad"),
    ],
)
def test_a_version_is_the_first_line_or_nothing(
    tmp_path: Path, script: str, version: str | None
) -> None:
    """E2: command found and its version; stdin is closed."""
    assert version_of(make_program(tmp_path, script), {"PATH": "/usr/bin:/bin"}) == version


def test_a_program_that_cannot_start_has_no_version(tmp_path: Path) -> None:
    program = make_program(tmp_path)
    program.write_text("#!/no/such/interpreter\n")
    assert version_of(program, {}) is None
