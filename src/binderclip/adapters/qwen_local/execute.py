"""The command line of Qwen Code: the prompt on stdin, events on stdout."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from binderclip.adapters.qwen_local import checks, settings
from binderclip.adapters.qwen_local.config import QwenConfig
from binderclip.adapters.qwen_local.parser import QwenParser
from binderclip.sdk import (
    AdapterConfig,
    Call,
    Check,
    CheckCall,
    CliAdapter,
    Command,
    ExecutionResult,
    Outcome,
    SessionManagement,
)
from binderclip.sdk.instructions import with_instructions
from binderclip.sdk.live import live_check
from binderclip.sdk.skills import link_skills
from binderclip.sdk.usage import add, usage_from_plain

# Without a relaunch the launcher has one child instead of two; the warning would be noise.
QUIET = {
    "QWEN_CODE_NO_RELAUNCH": "true",
    "QWEN_CODE_SUPPRESS_YOLO_WARNING": "1",
    "QWEN_TELEMETRY_ENABLED": "false",
}


class QwenAdapter(CliAdapter):
    """Qwen Code on this machine."""

    Config: ClassVar[type[AdapterConfig]] = QwenConfig
    session_management: ClassVar[SessionManagement] = SessionManagement(compacts_itself=True)

    def create_parser(self) -> QwenParser:
        return QwenParser()

    def command(self, call: Call) -> Command:
        config: QwenConfig = call.config
        self.sync_skills(call)
        files, notes = settings.written(config, call.env, call.scratch)
        quiet = {name: value for name, value in QUIET.items() if name not in config.env}
        auth_type = config.auth_type or settings.auth_type_by_env(call.env)
        return Command(
            argv=(
                config.command or self.manifest.command,
                *flags(config, auth_type, call.session),
            ),
            env={**quiet, **files},
            stdin=with_instructions(call.prompt, config.instructions_file_path),
            notes=notes,
        )

    def conclude(self, outcome: Outcome) -> ExecutionResult:
        """Let the exit code and stderr speak for a run that has no result."""
        parser = outcome.parser
        if not isinstance(parser, QwenParser):
            return super().conclude(outcome)
        if outcome.end.reason == "exited":
            parser.heed_exit(outcome.end.exit_code)
        return _with_unfinished_totals(outcome, super().conclude(outcome))

    def checks(self, call: CheckCall) -> Iterable[Check]:
        yield from checks.findings(call)
        if call.depth == "live" and call.program is not None:
            yield live_check(self, call)

    def list_skills(self, call: CheckCall) -> Sequence[str]:
        """Skills in the user's own directory, which is where runs put theirs."""
        found = settings.qwen_home(call.env) / "skills"
        return sorted(path.parent.name for path in found.glob("*/SKILL.md"))

    def sync_skills(self, call: Call) -> None:
        """Link the run's skills into the user's directory: the CLI has no flag for one."""
        if call.skills:
            link_skills(call.skills, settings.qwen_home(call.env) / "skills")


def flags(
    config: QwenConfig, auth_type: str | None, session: Mapping[str, object] | None
) -> list[str]:
    """The arguments after the program's name."""
    mode = "yolo" if config.dangerously_skip_permissions else config.approval_mode
    words = ["--output-format", "stream-json", "--approval-mode", mode]
    if config.partial_messages:
        words.append("--include-partial-messages")
    if auth_type:
        words += ["--auth-type", auth_type]
    if config.model:
        words += ["--model", config.model]
    if config.max_turns is not None:
        words += ["--max-session-turns", str(config.max_turns)]
    if config.max_tool_calls is not None:
        words += ["--max-tool-calls", str(config.max_tool_calls)]
    for folder in config.include_directories:
        words += ["--include-directories", str(Path(folder))]
    if session:
        words += ["--resume", str(session["sessionId"])]
    return [*words, *config.extra_args]


def _with_unfinished_totals(outcome: Outcome, result: ExecutionResult) -> ExecutionResult:
    """Carry the steps of a run without a result into the session's totals.

    The next result counts them again, so that the sum over all runs stays exact.
    """
    steps = outcome.facts.usage
    if result.session_params is None or steps is None:
        return result
    if outcome.facts.usage_basis == "session_cumulative":
        return result
    earlier = usage_from_plain(_totals(result.session_params).get("usage"))
    if earlier is None and _asked_to_resume(outcome):
        return result
    totals = {"usage": msgspec.to_builtins(add(earlier, steps))}
    params = {**result.session_params, "totals": totals}
    return msgspec.structs.replace(result, session_params=params)


def _totals(params: Mapping[str, Any]) -> dict[str, Any]:
    return dict(params.get("totals") or {})


def _asked_to_resume(outcome: Outcome) -> bool:
    asked = (outcome.request.runtime.session_params or {}).get("sessionId")
    return bool(asked) and asked == outcome.facts.session_id
