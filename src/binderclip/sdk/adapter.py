"""What an adapter is (A1-A6): `Adapter` for anything, `CliAdapter` for a program that prints.

A `CliAdapter` says which command to run and how to read its lines; the rest is done here.
"""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from binderclip.contract.check import Check, CheckRequest, EnvironmentReport, verdict
from binderclip.contract.config import ConfigSchema
from binderclip.contract.entry import Stream
from binderclip.contract.errors import ContractError
from binderclip.contract.manifest import Capabilities, Capture, Manifest, Model, read_manifest
from binderclip.contract.run import (
    ExecutionRequest,
    ExecutionResult,
    InvocationMeta,
    SpawnInfo,
)
from binderclip.contract.session import SessionCodec, SessionManagement
from binderclip.sdk import outcome as outcomes
from binderclip.sdk.checks import CheckCall, usual_checks
from binderclip.sdk.config import (
    AdapterConfig,
    CliConfig,
    describe_config,
    read_config,
    secret_values,
)
from binderclip.sdk.direct import execute_directly
from binderclip.sdk.env import (
    build_env,
    ensure_absolute_directory,
    ensure_command_resolvable,
    is_secret_name,
    redact_env_for_logs,
)
from binderclip.sdk.outcome import Outcome
from binderclip.sdk.parser import GenericParser, Parser
from binderclip.sdk.prompt import render_prompt
from binderclip.sdk.resume import SessionParams

SHORTEST_SECRET = 8
ATTEMPT_DIR = "BINDERCLIP_ATTEMPT_DIR"


class Host(msgspec.Struct, frozen=True):
    """What the machine lends to a run: its environment, a private directory, the API's address."""

    env: Mapping[str, str]
    scratch: Path
    """Empty, outside the cwd, removed after the run: for prompts, skills, generated configs."""
    api_url: str | None = None
    skills: tuple[Path, ...] = ()
    attempt_dir: Path | None = None
    """Where an adapter host leaves `invocation.json` and `result.json`."""


class Call(msgspec.Struct, frozen=True):
    """One attempt, ready to become a command line."""

    request: ExecutionRequest
    config: Any
    """The adapter's own config class, validated."""
    cwd: Path
    env: dict[str, str]
    prompt: str
    session: dict[str, Any] | None
    """Parameters of the session to resume, checked by the codec; None for a fresh one."""
    scratch: Path
    skills: tuple[Path, ...] = ()


class Command(msgspec.Struct, frozen=True):
    """A command line: the program's name or path first; `env` adds to the built environment."""

    argv: Sequence[str]
    env: Mapping[str, str] = msgspec.field(default_factory=dict)
    stdin: str | bytes | None = None
    notes: Sequence[str] = ()


class Plan(msgspec.Struct, frozen=True):
    """Everything a supervisor needs to run one attempt."""

    argv: tuple[str, ...]
    env: dict[str, str]
    cwd: str
    stdin: bytes | None
    capture: Capture
    limits: dict[str, Any]
    secrets: tuple[str, ...]
    secret_env: tuple[str, ...]
    meta: InvocationMeta


class ExecutionContext(msgspec.Struct):
    """A4: the request and the host's callbacks, for adapters that run their own `execute`."""

    request: ExecutionRequest
    config: Any
    on_log: Callable[[Stream, str | bytes], Awaitable[None]]
    on_meta: Callable[[InvocationMeta], Awaitable[None]]
    on_spawn: Callable[[SpawnInfo], Awaitable[None]]
    env: Mapping[str, str] = msgspec.field(default_factory=dict)


class Adapter:
    """One agent runtime. Override `execute` and `checks`; everything else has a default."""

    Config: ClassVar[type[AdapterConfig]] = AdapterConfig
    session_codec: ClassVar[SessionCodec] = SessionParams()
    session_management: ClassVar[SessionManagement] = SessionManagement()
    disabled: bool = False
    """Switched off by a person: nothing new is started, what runs is seen to its end."""

    @cached_property
    def manifest(self) -> Manifest:
        """The folder's `adapter.toml`; a single-file adapter sets this as a class attribute."""
        return read_manifest(self.folder / "adapter.toml")

    @cached_property
    def folder(self) -> Path:
        return Path(inspect.getfile(type(self))).parent

    @cached_property
    def origin(self) -> str:
        """What makes this adapter again in another process: a module's name or a path."""
        name = type(self).__module__
        while name and not hasattr(sys.modules.get(name), "create_adapter"):
            name = name.rpartition(".")[0]
        return name or type(self).__module__

    @property
    def type(self) -> str:
        return self.manifest.id

    @property
    def parser_version(self) -> str:
        return self.manifest.version

    @property
    def capabilities(self) -> Capabilities:
        """The manifest's flags; skills are supported where a skills method is written (C1)."""
        own = type(self)
        has_skills = (
            own.list_skills is not Adapter.list_skills or own.sync_skills is not Adapter.sync_skills
        )
        return msgspec.structs.replace(self.manifest.capabilities, supports_skills=has_skills)

    def agent_configuration_doc(self) -> str:
        """When to use this adapter, and every field of its config (A2)."""
        doc = self.folder / "doc.md"
        if doc.is_file():
            intro = doc.read_text("utf-8").strip()
        else:
            intro = inspect.cleandoc(type(self).__doc__ or self.manifest.label)
        return f"{intro}\n\n## Configuration\n\n{_field_list(self.config_schema())}\n"

    def config_schema(self) -> ConfigSchema:
        return describe_config(self.Config)

    def create_parser(self) -> Parser:
        """A fresh parser for one run (T2)."""
        return GenericParser()

    async def execute(self, ctx: ExecutionContext) -> ExecutionResult:
        """Run the agent to its end; called in a process of its own."""
        raise ContractError(f"{type(self).__name__} must implement execute")

    def checks(self, call: CheckCall) -> Iterable[Check]:
        """Findings about the environment; expected ones are values, never exceptions (E2)."""
        return ()

    def test_environment(
        self, request: CheckRequest, env: Mapping[str, str], tested_at: str
    ) -> EnvironmentReport:
        """Run the usual checks and the adapter's own."""
        checks = tuple(usual_checks(self, request, env))
        return EnvironmentReport(
            adapter_type=self.type, status=verdict(checks), checks=checks, tested_at=tested_at
        )

    def list_models(self, call: CheckCall) -> Sequence[Model]:
        """Models to choose from; the runtime's own list where it has one."""
        return self.manifest.models

    def detect_model(self, call: CheckCall) -> str | None:
        """The model that the runtime would use by itself, where that can be known."""
        return None

    def list_skills(self, call: CheckCall) -> Sequence[str]:
        """Names of the skills that the runtime sees."""
        return ()

    def sync_skills(self, call: Call) -> None:
        """Put the call's skills where the runtime finds them, never into the cwd (K1)."""

    def plan(self, request: ExecutionRequest, host: Host) -> Plan:
        """Run `execute` in an adapter host: a process of its own that the supervisor owns (D4)."""
        config = read_config(self.Config, request.config)
        cwd = ensure_absolute_directory(config.cwd or str(Path.cwd()))
        env = self._env(request, config, host)
        if host.attempt_dir:
            env[ATTEMPT_DIR] = str(host.attempt_dir)
        argv = self.host_command()
        meta = InvocationMeta(
            adapter_type=self.type,
            command=argv[0],
            command_args=argv[1:],
            cwd=str(cwd),
            env=redact_env_for_logs(env, self.manifest.secret_env),
            prompt=render_prompt(request, config.prompt_template),
        )
        return self._plan(argv, env, cwd, msgspec.json.encode(request), config, request, meta)

    def host_command(self) -> tuple[str, ...]:
        """The command line of the adapter host."""
        # Without -P a module in the agent's directory would shadow ours.
        return (sys.executable, "-P", "-m", "binderclip.sdk.host", self.origin)

    def conclude(self, outcome: Outcome) -> ExecutionResult:
        """The result that `execute` left in the attempt's directory, or what the exit tells."""
        if outcome.attempt_dir is None:
            return outcomes.conclude(outcome)
        try:
            data = (outcome.attempt_dir / "result.json").read_bytes()
            result = msgspec.json.decode(data, type=ExecutionResult)
        except (OSError, msgspec.DecodeError) as problem:
            return _without_result(outcomes.conclude(outcome), problem)
        stopped = outcomes.failure_of(outcome) if outcome.end.reason != "exited" else None
        if stopped is None:
            return result
        return msgspec.structs.replace(
            result,
            timed_out=outcome.end.reason in ("timeout", "idle_timeout"),
            error_code=stopped.code,
            error_message=stopped.message,
            error_family=stopped.family,
        )

    def _env(self, request: ExecutionRequest, config: AdapterConfig, host: Host) -> dict[str, str]:
        return build_env(
            request,
            host=host.env,
            pass_env=self.manifest.pass_env,
            own=config.env,
            api_url=host.api_url if self.manifest.capabilities.supports_local_agent_jwt else None,
        )

    def _plan(
        self,
        argv: tuple[str, ...],
        env: dict[str, str],
        cwd: Path,
        stdin: bytes | None,
        config: AdapterConfig,
        request: ExecutionRequest,
        meta: InvocationMeta,
    ) -> Plan:
        secret_env = tuple(
            name for name in env if name in self.manifest.secret_env or is_secret_name(name)
        )
        values = [env[name] for name in secret_env] + secret_values(config)
        if request.auth_token:
            values.append(request.auth_token)
        return Plan(
            argv=argv,
            env=env,
            cwd=str(cwd),
            stdin=stdin,
            capture=self.manifest.capture,
            limits={
                "timeoutSec": config.timeout_sec,
                "idleTimeoutSec": config.idle_timeout_sec,
                "graceSec": config.grace_sec,
                "maxLogBytes": config.max_log_bytes,
            },
            secrets=tuple(dict.fromkeys(v for v in values if len(v.encode()) >= SHORTEST_SECRET)),
            secret_env=secret_env,
            meta=meta,
        )


class CliAdapter(Adapter):
    """A program that is started once per run and prints what it does."""

    Config: ClassVar[type[AdapterConfig]] = CliConfig

    def command(self, call: Call) -> Command:
        """The command line of one attempt: the prompt on stdin or in a file where possible."""
        raise ContractError(f"{type(self).__name__} must implement command")

    def plan(self, request: ExecutionRequest, host: Host) -> Plan:
        """Duties 1 to 5 of A6: config, environment, session, prompt, and what is about to run."""
        config = read_config(self.Config, request.config)
        cwd = ensure_absolute_directory(config.cwd or str(Path.cwd()))
        env = self._env(request, config, host)
        call = Call(
            request=request,
            config=config,
            cwd=cwd,
            env=env,
            prompt=render_prompt(request, config.prompt_template),
            session=self.session_codec.deserialize(request.runtime.session_params),
            scratch=host.scratch,
            skills=host.skills,
        )
        command = self.command(call)
        env = {**env, **command.env}
        argv = tuple(command.argv)
        if request.execution_target.kind == "local":
            argv = (str(ensure_command_resolvable(argv[0], cwd, env)), *argv[1:])
        meta = InvocationMeta(
            adapter_type=self.type,
            command=argv[0],
            command_args=argv[1:],
            cwd=str(cwd),
            env=redact_env_for_logs(env, self.manifest.secret_env),
            prompt=call.prompt,
            notes=tuple(command.notes),
        )
        stdin = command.stdin.encode() if isinstance(command.stdin, str) else command.stdin
        return self._plan(argv, env, cwd, stdin, config, request, meta)

    async def execute(self, ctx: ExecutionContext) -> ExecutionResult:
        """Run without a supervisor, so that any CLI adapter works wherever `execute` is called."""
        return await execute_directly(self, ctx)

    def conclude(self, outcome: Outcome) -> ExecutionResult:
        """The result, computed from the log: a crash between spawn and result loses nothing."""
        return outcomes.conclude(outcome)


def _without_result(result: ExecutionResult, problem: Exception) -> ExecutionResult:
    """A host that ends by itself always leaves a result; one without it did not succeed."""
    if result.error_code not in (None, "cut_output"):
        return result
    return msgspec.structs.replace(
        result,
        error_code="plugin_failed",
        error_message=f"The adapter ended without a usable result: {problem}",
    )


def _field_list(schema: ConfigSchema) -> str:
    lines = []
    for item in schema.fields:
        mark = " **Dangerous.**" if item.dangerous else ""
        told = item.default if isinstance(item.default, str) else json.dumps(item.default)
        default = "" if item.default in (None, "", [], {}) else f" Default: `{told}`."
        choice = " One of " + ", ".join(f"`{o.value}`" for o in item.options) + "."
        hint = item.hint or ""
        lines.append(f"- `{item.key}`: {hint}{choice if item.options else ''}{default}{mark}")
    return "\n".join(lines)
