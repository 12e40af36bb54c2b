"""The command line of Gemini CLI: the prompt on stdin, events on stdout."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from binderclip.adapters.gemini_local import checks
from binderclip.adapters.gemini_local.config import GeminiConfig
from binderclip.adapters.gemini_local.parser import GeminiParser
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

# Without a relaunch the CLI is one process that ends at the first signal; its own telemetry
# would wait for servers that nobody asked it to reach.
QUIET = {"GEMINI_CLI_NO_RELAUNCH": "true", "GEMINI_TELEMETRY_ENABLED": "false"}


class GeminiAdapter(CliAdapter):
    """Google's Gemini CLI on this machine."""

    Config: ClassVar[type[AdapterConfig]] = GeminiConfig
    session_management: ClassVar[SessionManagement] = SessionManagement(compacts_itself=True)

    def create_parser(self) -> GeminiParser:
        return GeminiParser()

    def command(self, call: Call) -> Command:
        config: GeminiConfig = call.config
        self.sync_skills(call)
        return Command(
            argv=(config.command or self.manifest.command, *flags(config, call.session)),
            env={name: value for name, value in QUIET.items() if name not in config.env},
            stdin=with_instructions(call.prompt, config.instructions_file_path),
        )

    def conclude(self, outcome: Outcome) -> ExecutionResult:
        """Let the exit code, a class or an HTTP status, name what the events leave open."""
        if isinstance(outcome.parser, GeminiParser) and outcome.end.reason == "exited":
            outcome.parser.heed_exit(outcome.end.exit_code)
        return super().conclude(outcome)

    def checks(self, call: CheckCall) -> Iterable[Check]:
        yield from checks.findings(call)
        if call.depth == "live" and call.program is not None:
            yield live_check(self, call)

    def list_skills(self, call: CheckCall) -> Sequence[str]:
        """Skills in the user's own directory, which is where runs put theirs."""
        found = checks.gemini_home(call.env) / "skills"
        return sorted(path.parent.name for path in found.glob("*/SKILL.md"))

    def sync_skills(self, call: Call) -> None:
        """Link the run's skills into the user's directory: the CLI has no flag for one."""
        if call.skills:
            link_skills(call.skills, checks.gemini_home(call.env) / "skills")


def flags(config: GeminiConfig, session: Mapping[str, object] | None) -> list[str]:
    """The arguments after the program's name."""
    mode = "yolo" if config.dangerously_skip_permissions else config.approval_mode
    words = ["--output-format", "stream-json", "--approval-mode", mode]
    if config.trust_workspace:
        words.append("--skip-trust")
    if config.model:
        words += ["--model", config.model]
    for folder in config.include_directories:
        words += ["--include-directories", str(Path(folder))]
    if session:
        words += ["--resume", str(session["sessionId"])]
    return [*words, *config.extra_args]
