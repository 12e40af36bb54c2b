"""The checks that every adapter shares: directory, command, limits, unknown keys (E1-E3)."""

from __future__ import annotations

import getpass
import os
import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from binderclip.contract.check import Check, CheckRequest, Depth
from binderclip.contract.errors import BinderclipError, ConfigError
from binderclip.sdk.config import AdapterConfig, dangerous_fields, read_config
from binderclip.sdk.env import (
    clean_env,
    ensure_absolute_directory,
    ensure_command_resolvable,
    ensure_path_in_env,
)

if TYPE_CHECKING:
    from binderclip.sdk.adapter import Adapter

VERSION_SECONDS = 20
_NUMBER = re.compile(r"\d+(?:\.\d+)+(?:-[\w.]*\w)?")


class CheckCall(msgspec.Struct, frozen=True):
    """What an adapter's own checks look at."""

    request: CheckRequest
    config: Any
    """The adapter's own config class, validated."""
    cwd: Path
    env: dict[str, str]
    """The environment that the agent would get, without the run's own variables."""
    program: Path | None
    """The runtime's command, resolved; None if it was not found or there is none."""

    @property
    def depth(self) -> Depth:
        return self.request.depth


def usual_checks(
    adapter: Adapter, request: CheckRequest, host_env: Mapping[str, str]
) -> Iterator[Check]:
    """Config, directory, command, limits, dangerous flags; then what the adapter adds."""
    if adapter.disabled:
        yield Check(
            code="adapter_disabled",
            level="error",
            message=f"The adapter {adapter.type} is disabled.",
            hint=f"binderclip adapters enable {adapter.type}",
        )
    try:
        config = read_config(adapter.Config, request.config)
    except ConfigError as problem:
        yield Check(code="config_invalid", level="error", message=problem.message)
        return
    yield from _unknown_keys(config)
    yield from _limits(config)
    yield from _dangers(config)
    try:
        cwd = ensure_absolute_directory(config.cwd or str(Path.cwd()))
    except BinderclipError as problem:
        yield Check(code="cwd_unusable", level="error", message=problem.message, hint=problem.hint)
        return
    yield Check(code="cwd_ok", level="info", message=f"Works in {cwd}.")
    env = _agent_env(adapter, config, host_env)
    program, found = _program(adapter, config, cwd, env)
    yield from found
    yield from adapter.checks(CheckCall(request, config, cwd, env, program))


def check_call(adapter: Adapter, request: CheckRequest, host_env: Mapping[str, str]) -> CheckCall:
    """What an adapter looks at when it is asked for its skills or models; a wrong config raises."""
    config = read_config(adapter.Config, request.config)
    cwd = ensure_absolute_directory(config.cwd or str(Path.cwd()))
    env = _agent_env(adapter, config, host_env)
    return CheckCall(request, config, cwd, env, _program(adapter, config, cwd, env)[0])


def _agent_env(
    adapter: Adapter, config: AdapterConfig, host_env: Mapping[str, str]
) -> dict[str, str]:
    passed = clean_env(host_env, adapter.manifest.pass_env)
    return ensure_path_in_env({**passed, **config.env})


def version_of(program: Path, env: Mapping[str, str], *arguments: str) -> str | None:
    """What `program --version` prints first, or None; stdin is closed, the time is limited."""
    words = [str(program), *(arguments or ("--version",))]
    try:
        done = subprocess.run(
            words,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=VERSION_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    text = done.stdout.decode("utf-8", "replace").strip()
    return text.split("\n", 1)[0] if done.returncode == 0 and text else None


def version_check(label: str, program: Path, env: Mapping[str, str], hint: str = "") -> Check:
    """The version of a CLI that can be started, or that it told none."""
    told = version_of(program, env)
    if told is None:
        return Check(
            code="version_unknown",
            level="warn",
            message=f"{program} did not tell its version.",
            hint=f"Run it with --version as this user{f'; {hint}' if hint else ''}.",
        )
    number = _NUMBER.search(told)
    return Check(code="version", level="info", message=f"{label} {number[0] if number else told}.")


def _program(
    adapter: Adapter, config: AdapterConfig, cwd: Path, env: Mapping[str, str]
) -> tuple[Path | None, Iterable[Check]]:
    command = getattr(config, "command", None) or adapter.manifest.command
    if not command:
        return None, ()
    try:
        program = ensure_command_resolvable(command, cwd, env)
    except BinderclipError as problem:
        return None, (
            Check(
                code="command_missing", level="error", message=problem.message, hint=problem.hint
            ),
        )
    found = Check(code="command_ok", level="info", message=f"Runs {program}.")
    return program, (found,)


def _unknown_keys(config: AdapterConfig) -> Iterator[Check]:
    for key in [] if config.open_keys else config.unknown_keys:
        yield Check(
            code="config_unknown_key",
            level="warn",
            message=f"The field {key} is not known to this adapter and has no effect.",
            hint="Check its spelling, or remove it.",
        )


def _limits(config: AdapterConfig) -> Iterator[Check]:
    limits = {
        "timeoutSec": config.timeout_sec,
        "idleTimeoutSec": config.idle_timeout_sec,
        "maxLogBytes": config.max_log_bytes,
    }
    for name, value in limits.items():
        if value == 0:
            yield Check(
                code="limit_off",
                level="warn",
                message=f"{name} is 0: nothing stops a run that never ends.",
                hint=f"Set {name} to a number, or remove it for the default.",
            )


def _dangers(config: AdapterConfig) -> Iterator[Check]:
    for name in dangerous_fields(config):
        yield Check(
            code="dangerous_flag",
            level="warn",
            message=f"{name} is on: the agent acts without asking, as user {_user()}.",
            hint="Use it only where that user can do no harm.",
        )


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())
