"""The command line of Copilot CLI: the prompt on stdin, events on stdout, usage in a file."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import msgspec

from binderclip.adapters.copilot_local import checks, spending
from binderclip.adapters.copilot_local.config import CopilotConfig
from binderclip.adapters.copilot_local.parser import CopilotParser
from binderclip.sdk import (
    AdapterConfig,
    Call,
    Check,
    CheckCall,
    CliAdapter,
    Command,
    ExecutionResult,
    Model,
    Outcome,
    SessionManagement,
    as_string,
)
from binderclip.sdk.instructions import with_instructions
from binderclip.sdk.live import live_check
from binderclip.sdk.skills import link_skills

QUIET = ("--no-auto-update", "--disable-client-telemetry", "--no-remote", "--no-color")
HIDDEN_FROM_COMMANDS = (
    "COPILOT_PROVIDER_API_KEY",
    "COPILOT_PROVIDER_BEARER_TOKEN",
    "COPILOT_PROVIDER_HEADERS",
)
INSTRUCTIONS_DIRS = "COPILOT_CUSTOM_INSTRUCTIONS_DIRS"
MODELS_SECONDS = 30


class CopilotAdapter(CliAdapter):
    """GitHub Copilot CLI on this machine."""

    Config: ClassVar[type[AdapterConfig]] = CopilotConfig
    session_management: ClassVar[SessionManagement] = SessionManagement(compacts_itself=True)

    def create_parser(self) -> CopilotParser:
        return CopilotParser()

    def command(self, call: Call) -> Command:
        config: CopilotConfig = call.config
        self.sync_skills(call)
        words = ["--output-format", "json", "--no-ask-user", *QUIET]
        words.append(f"--secret-env-vars={','.join(HIDDEN_FROM_COMMANDS)}")
        words += ["--usage-output-file", str(call.scratch / spending.USAGE_FILE)]
        if call.session:
            words.append(f"--resume={call.session['sessionId']}")
        else:
            chosen = spending.new_session(call.request.run_id, call.scratch)
            words.append(f"--session-id={chosen}")
        words += [*model_flags(config), *permissions(config, call.env.get("PAPERCLIP_API_URL"))]
        words += self._directories(call, config)
        return Command(
            argv=(config.command or self.manifest.command, *words, *config.extra_args),
            env=_instructions(config, call),
            stdin=call.prompt,
        )

    def conclude(self, outcome: Outcome) -> ExecutionResult:
        """Add what only the run's own files tell: tokens, and the session of a killed run."""
        parser, facts = outcome.parser, outcome.facts
        if outcome.scratch is not None and isinstance(parser, CopilotParser):
            spending.read_usage(outcome.scratch, facts, parser.generated)
            if parser.began and not facts.session_id:
                facts.session_id = spending.chosen_session(outcome.scratch)
        return super().conclude(outcome)

    def checks(self, call: CheckCall) -> Iterable[Check]:
        yield from checks.findings(call)
        if call.depth == "live" and call.program is not None:
            yield live_check(self, call)

    def list_models(self, call: CheckCall) -> Sequence[Model]:
        """The models that `copilot help config` names; those known here if it does not run."""
        found = _models_in(_help(call))
        return [Model(id=name, label=name) for name in found] or self.manifest.models

    def detect_model(self, call: CheckCall) -> str | None:
        """The model of the environment or of the user's own settings."""
        chosen = call.env.get("COPILOT_MODEL")
        return chosen or as_string(checks.user_settings(call.env).get("model")) or None

    def list_skills(self, call: CheckCall) -> Sequence[str]:
        """Skills in the user's own directories; runs add theirs by a flag."""
        home = Path(call.env.get("HOME") or "/")
        folders = (checks.copilot_home(call.env) / "skills", home / ".agents" / "skills")
        return sorted({path.parent.name for f in folders for path in f.glob("*/SKILL.md")})

    def sync_skills(self, call: Call) -> None:
        """Link the run's skills into its own directory, which a flag names."""
        if call.skills:
            link_skills(call.skills, call.scratch / "copilot" / ".github" / "skills")

    def _directories(self, call: Call, config: CopilotConfig) -> list[str]:
        """Arguments that name files and directories: skills, more directories, MCP servers."""
        folders = [str(Path(folder)) for folder in config.include_directories]
        if call.skills:
            folders.append(str(call.scratch / "copilot"))
        words = [word for folder in folders for word in ("--add-dir", folder)]
        if config.mcp_servers:
            file = call.scratch / "copilot-mcp.json"
            file.touch(0o600)
            file.write_bytes(msgspec.json.encode({"mcpServers": config.mcp_servers}))
            words += ["--additional-mcp-config", f"@{file}"]
        return words


def model_flags(config: CopilotConfig) -> list[str]:
    """Which model thinks how hard and may spend how much."""
    words = ["--model", config.model] if config.model else []
    if config.effort:
        words += ["--reasoning-effort", config.effort]
    if config.max_ai_credits is not None:
        words += ["--max-ai-credits", str(config.max_ai_credits)]
    return words


def permissions(config: CopilotConfig, api_url: str | None = None) -> list[str]:
    """What may be done unasked; a refusal of addresses wins over every grant."""
    skip = config.dangerously_skip_permissions
    words = ["--allow-all"] if skip else []
    if config.permission_mode == "acceptEdits" and not skip:
        words.append("--allow-tool=write")
    words += [f"--allow-tool={tool}" for tool in config.allowed_tools]
    words += [f"--deny-tool={tool}" for tool in config.disallowed_tools]
    if config.network == "none":
        return [*words, "--deny-tool=url"]
    if config.network == "open" and not skip:
        return [*words, "--allow-all-urls"]
    hosts = [*config.allowed_hosts, *([api_url] if api_url else [])]
    return words if skip else [*words, *(f"--allow-url={host}" for host in hosts)]


def _instructions(config: CopilotConfig, call: Call) -> Mapping[str, str]:
    """Standing instructions by a directory of the run that is read beside the user's own."""
    text = with_instructions("", config.instructions_file_path).strip()
    if not text:
        return {}
    folder = call.scratch / "instructions"
    file = folder / ".github" / "instructions" / "standing.instructions.md"
    file.parent.mkdir(parents=True)
    file.write_text(f'---\napplyTo: "**"\n---\n\n{text}\n', "utf-8")
    others = call.env.get(INSTRUCTIONS_DIRS)
    return {INSTRUCTIONS_DIRS: f"{others},{folder}" if others else str(folder)}


def _help(call: CheckCall) -> str:
    if call.program is None:
        return ""
    try:
        done = subprocess.run(
            [str(call.program), "help", "config"],
            env=call.env,
            cwd=call.cwd,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=MODELS_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", "replace")


def _models_in(text: str) -> list[str]:
    """The quoted names in the list below the setting `model`."""
    _, found, rest = text.partition("\n  `model`:")
    if not found:
        return []
    names = []
    for line in rest.split("\n")[1:]:
        word = line.strip().removeprefix('- "').removesuffix('"')
        if word == line.strip() or not word:
            break
        names.append(word)
    return names
