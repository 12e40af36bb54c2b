"""The environment test of Cursor CLI: version, login, trust (E1-E3)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from binderclip.adapters.cursor.config import CursorConfig
from binderclip.sdk import Check, CheckCall, version_check, version_of

KEYS = ("CURSOR_API_KEY", "CURSOR_AUTH_TOKEN")


def findings(call: CheckCall) -> Iterator[Check]:
    """Everything but the live call."""
    config: CursorConfig = call.config
    if call.depth != "preflight" and call.program is not None:
        yield version_check(
            "Cursor CLI", call.program, call.env, "reinstall Cursor CLI if it does not start"
        )
    yield _credential(call)
    yield from _workspace(call.cwd, config)
    if config.effort:
        yield Check(
            code="effort_ignored",
            level="warn",
            message="effort has no effect: Cursor has it in the model's name.",
            hint="Set model to a name that says it, such as gpt-5.5-high.",
        )


def _credential(call: CheckCall) -> Check:
    key = next((name for name in KEYS if call.env.get(name)), None)
    if key:
        return Check(code="credential_api_key", level="info", message=f"Uses {key}.")
    if call.depth == "preflight" or call.program is None:
        return Check(
            code="credential_login", level="info", message="Uses a stored login, if there is one."
        )
    status = version_of(call.program, call.env, "status") or ""
    if "logged in as" in status.lower():
        return Check(code="credential_login", level="info", message="Uses the stored login.")
    return Check(
        code="credential_missing",
        level="warn",
        message="No key is set, and Cursor does not say that it is logged in.",
        hint="Run `cursor-agent login` as this user, or set CURSOR_API_KEY.",
    )


def _workspace(cwd: Path, config: CursorConfig) -> Iterator[Check]:
    if not config.trust_workspace and not config.dangerously_skip_permissions:
        yield Check(
            code="workspace_trust",
            level="warn",
            message="Cursor refuses to run in a directory that nobody has trusted.",
            hint=f"Run `cursor-agent` once in {cwd}, or set trustWorkspace to true.",
        )
    elif (cwd / ".cursor").is_dir():
        yield Check(
            code="workspace_settings",
            level="warn",
            message=f"{cwd}/.cursor counts: it can hold hooks, rules and MCP servers.",
            hint="Read it before you let an agent run there.",
        )
