"""From the configuration to `codex exec`; the prompt travels on stdin."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from binderclip.adapters.codex_local.checks import (
    codex_checks,
    codex_home,
    codex_models,
    configured_model,
    visible_skills,
)
from binderclip.adapters.codex_local.config import CodexConfig
from binderclip.adapters.codex_local.overrides import overrides
from binderclip.adapters.codex_local.parser import CodexParser
from binderclip.sdk import (
    Call,
    Check,
    CheckCall,
    CliAdapter,
    Command,
    ExecutionResult,
    Model,
    Outcome,
    SessionManagement,
    SessionParams,
    as_string,
)
from binderclip.sdk.instructions import with_instructions
from binderclip.sdk.skills import link_skills


class ThreadParams(SessionParams):
    """Only ids of threads: any other word would be a name, and an unknown name starts afresh."""

    def deserialize(self, raw: object) -> dict[str, Any] | None:
        params = super().deserialize(raw)
        return params if params and _is_uuid(params["sessionId"]) else None


class CodexAdapter(CliAdapter):
    """OpenAI's Codex."""

    Config = CodexConfig
    session_codec = ThreadParams()
    session_management = SessionManagement(compacts_itself=True)

    def create_parser(self) -> CodexParser:
        return CodexParser()

    def command(self, call: Call) -> Command:
        config: CodexConfig = call.config
        argv = [config.command or self.manifest.command, "exec"]
        argv += ["resume"] if call.session else []
        argv += ["--json", "--skip-git-repo-check"]
        if config.dangerously_bypass_approvals_and_sandbox:
            argv.append("--dangerously-bypass-approvals-and-sandbox")
        if config.model:
            argv += ["--model", config.model]
        argv += [*overrides(config), *config.extra_args]
        argv += [call.session["sessionId"], "-"] if call.session else ["-"]
        self.sync_skills(call)
        prompt = with_instructions(call.prompt, config.instructions_file_path)
        return Command(argv, env=_key(call), stdin=prompt)

    def conclude(self, outcome: Outcome) -> ExecutionResult:
        """Codex does not tell its model; what was asked for is known where it was asked for."""
        result = super().conclude(outcome)
        asked = as_string(outcome.request.config.get("model"))
        return msgspec.structs.replace(result, model=result.model or asked or None)

    def sync_skills(self, call: Call) -> None:
        if call.skills:
            link_skills(call.skills, codex_home(call.env) / "skills")

    def list_skills(self, call: CheckCall) -> Sequence[str]:
        return visible_skills(call)

    def list_models(self, call: CheckCall) -> Sequence[Model]:
        return codex_models(call)

    def detect_model(self, call: CheckCall) -> str | None:
        return configured_model(call)

    def checks(self, call: CheckCall) -> Iterable[Check]:
        return codex_checks(call, self)


def _key(call: Call) -> dict[str, str]:
    """Codex takes a key from CODEX_API_KEY alone; people set OPENAI_API_KEY. A login wins."""
    key = call.env.get("OPENAI_API_KEY")
    if not key or call.env.get("CODEX_API_KEY") or (codex_home(call.env) / "auth.json").is_file():
        return {}
    return {"CODEX_API_KEY": key}


def _is_uuid(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text.lower()
    except ValueError:
        return False
