"""The environment of an agent: clean by allow-list, then what the run adds (A7, H2, H3, H5)."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from binderclip.contract.errors import BadWorkingDirectory, CommandNotFound, ConfigError
from binderclip.contract.run import AgentRef, ExecutionRequest

PASSED = frozenset(
    (
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TZ", "TERM", "COLORTERM"),
        *("TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS"),
        *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
        *("http_proxy", "https_proxy", "all_proxy", "no_proxy"),
    )
)
PASSED_PREFIXES = ("LC_", "XDG_")
DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
REDACTED = "***"

_SECRET_NAME = re.compile(r"(key|token|secret|password|passwd|authorization|cookie)", re.I)


def clean_env(host: Mapping[str, str], pass_env: Iterable[str] = ()) -> dict[str, str]:
    """What an agent inherits: the allow-list and the runtime's own variables, if set."""
    wanted = PASSED.union(pass_env)
    return {
        name: value
        for name, value in host.items()
        if name in wanted or name.startswith(PASSED_PREFIXES)
    }


def build_paperclip_env(agent: AgentRef, api_url: str | None = None) -> dict[str, str]:
    """The variables by which existing agents and skills find themselves and the API."""
    env = {"PAPERCLIP_AGENT_ID": agent.id, "PAPERCLIP_COMPANY_ID": agent.company_id}
    return {**env, "PAPERCLIP_API_URL": api_url} if api_url else env


def context_env(context: Mapping[str, Any]) -> dict[str, str]:
    """The variables that say why the agent was woken, where the context knows."""
    found = {
        "PAPERCLIP_TASK_ID": context.get("taskId") or context.get("issueId"),
        "PAPERCLIP_WAKE_REASON": context.get("wakeReason"),
        "PAPERCLIP_WAKE_COMMENT_ID": context.get("wakeCommentId") or context.get("commentId"),
        "PAPERCLIP_APPROVAL_ID": context.get("approvalId"),
        "PAPERCLIP_APPROVAL_STATUS": context.get("approvalStatus"),
        "PAPERCLIP_LINKED_ISSUE_IDS": _joined(context.get("issueIds")),
    }
    return {name: value for name, value in found.items() if isinstance(value, str) and value}


def build_env(
    request: ExecutionRequest,
    *,
    host: Mapping[str, str],
    pass_env: Iterable[str] = (),
    own: Mapping[str, str] | None = None,
    api_url: str | None = None,
) -> dict[str, str]:
    """The whole environment in A7's order: base, run id, context, the config's own, token."""
    own = dict(own or {})
    _refuse_reserved(own)
    env = clean_env(host, pass_env)
    env.update(build_paperclip_env(request.agent, api_url))
    env["PAPERCLIP_RUN_ID"] = request.run_id
    env.update(context_env(request.context))
    env.update(own)
    if api_url and request.auth_token and "PAPERCLIP_API_KEY" not in own:
        env["PAPERCLIP_API_KEY"] = request.auth_token
    return ensure_path_in_env(env)


def ensure_path_in_env(env: Mapping[str, str]) -> dict[str, str]:
    """The environment with a PATH in it."""
    return {**env, "PATH": env.get("PATH") or DEFAULT_PATH}


def is_secret_name(name: str) -> bool:
    """Whether a variable's name says that its value is secret."""
    return bool(_SECRET_NAME.search(name))


def redact_env_for_logs(env: Mapping[str, str], also: Iterable[str] = ()) -> dict[str, str]:
    """The environment as logs may show it (H2)."""
    hidden = set(also)
    return {
        name: REDACTED if name in hidden or is_secret_name(name) else value
        for name, value in env.items()
    }


def ensure_absolute_directory(cwd: str) -> Path:
    """The directory, or an error that says what is wrong with it (H3)."""
    path = Path(cwd)
    if not path.is_absolute():
        raise BadWorkingDirectory(
            f"The working directory {cwd!r} is not absolute.",
            hint="Give the full path, beginning with /.",
        )
    if not path.exists():
        raise BadWorkingDirectory(
            f"The working directory {cwd} does not exist.",
            hint="Create it, or set cwd to an existing directory.",
        )
    if not path.is_dir():
        raise BadWorkingDirectory(
            f"The working directory {cwd} is not a directory.",
            hint="Set cwd to the directory that contains it.",
        )
    if not os.access(path, os.X_OK | os.R_OK):
        raise BadWorkingDirectory(
            f"The working directory {cwd} cannot be entered by this user.",
            hint="Change its permissions, or choose another directory.",
        )
    return path


def ensure_command_resolvable(command: str, cwd: Path, env: Mapping[str, str]) -> Path:
    """The program's absolute path, or an error that says where it was looked for (H3)."""
    if "/" in command:
        path = (cwd / command).absolute()
        if path.is_file() and os.access(path, os.X_OK):
            return path
        problem = "is not executable" if path.is_file() else "does not exist"
        raise CommandNotFound(
            f"The command {command} {problem}.", hint="Set `command` to the program's full path."
        )
    found = shutil.which(command, path=ensure_path_in_env(env)["PATH"])
    if found is None:
        raise CommandNotFound(
            f"The command {command!r} was not found on PATH.",
            hint=f"Install it, or set `command` to its full path. PATH is {env.get('PATH', '')}.",
        )
    return Path(found).absolute()


def _joined(value: object) -> str | None:
    if isinstance(value, list | tuple):
        return ",".join(str(item) for item in value)
    return value if isinstance(value, str) else None


def _refuse_reserved(own: Mapping[str, str]) -> None:
    for name in own:
        if name.startswith("PAPERCLIP_") and name != "PAPERCLIP_API_KEY":
            raise ConfigError(
                f"env.{name}: names beginning with PAPERCLIP_ are set by binderclip.",
                hint="Remove it from env; only PAPERCLIP_API_KEY may be set there.",
                fields={f"env.{name}": "reserved"},
            )
