"""The command line of Pi: the prompt on stdin, events on stdout."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from binderclip.adapters.pi_local import checks
from binderclip.adapters.pi_local.config import PiConfig
from binderclip.adapters.pi_local.parser import PiParser
from binderclip.sdk import (
    AdapterConfig,
    Call,
    Check,
    CheckCall,
    CliAdapter,
    Command,
    ConfigError,
    Model,
    SessionManagement,
    as_string,
)
from binderclip.sdk.live import live_check
from binderclip.sdk.skills import link_skills

QUIET = {"PI_SKIP_VERSION_CHECK": "1", "PI_TELEMETRY": "0"}
READ_ONLY_TOOLS = "read,grep,find,ls"
MODELS_SECONDS = 60


class PiAdapter(CliAdapter):
    """The Pi coding agent on this machine."""

    Config: ClassVar[type[AdapterConfig]] = PiConfig
    session_management: ClassVar[SessionManagement] = SessionManagement(compacts_itself=True)

    def create_parser(self) -> PiParser:
        return PiParser()

    def command(self, call: Call) -> Command:
        config: PiConfig = call.config
        self.sync_skills(call)
        words = flags(config, call.session)
        if call.skills:
            words += ["--skill", str(_skills_folder(call.scratch))]
        return Command(
            argv=(config.command or self.manifest.command, *words, *config.extra_args),
            env={name: value for name, value in QUIET.items() if name not in config.env},
            stdin=call.prompt,
        )

    def checks(self, call: CheckCall) -> Iterable[Check]:
        yield from checks.findings(call)
        if call.depth == "live" and call.program is not None:
            yield live_check(self, call)

    def list_models(self, call: CheckCall) -> Sequence[Model]:
        """What `pi --list-models` prints: the models of all providers that it can use here."""
        if call.program is None:
            return ()
        try:
            done = subprocess.run(
                [str(call.program), "--list-models"],
                env={**call.env, **QUIET},
                cwd=call.cwd,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=MODELS_SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return ()
        rows = [row.split() for row in done.stdout.decode("utf-8", "replace").split("\n")]
        names = [f"{row[0]}/{row[1]}" for row in rows if len(row) >= 2 and row[0] != "provider"]
        return [Model(id=name, label=name) for name in names]

    def detect_model(self, call: CheckCall) -> str | None:
        """The model of the user's own settings."""
        settings = checks.user_settings(call.env)
        provider = as_string(settings.get("defaultProvider"))
        model = as_string(settings.get("defaultModel"))
        return f"{provider}/{model}" if provider and model else model or None

    def list_skills(self, call: CheckCall) -> Sequence[str]:
        """Skills in the user's own directories; runs add theirs by a flag."""
        home = Path(call.env.get("HOME") or "/")
        folders = (checks.agent_home(call.env) / "skills", home / ".agents" / "skills")
        return sorted({path.parent.name for f in folders for path in f.rglob("SKILL.md")})

    def sync_skills(self, call: Call) -> None:
        """Link the run's skills into its own directory, which a flag names."""
        if call.skills:
            link_skills(call.skills, _skills_folder(call.scratch))


def flags(config: PiConfig, session: Mapping[str, object] | None) -> list[str]:
    """The arguments after the program's name."""
    words = ["--mode", "json", "--print"]
    if config.provider:
        words += ["--provider", config.provider]
    if config.model:
        words += ["--model", config.model]
    if config.effort:
        words += ["--thinking", config.effort]
    if config.permission_mode == "read_only":
        words += ["--tools", READ_ONLY_TOOLS]
    if config.trust_workspace:
        words.append("--approve")
    if config.instructions_file_path:
        words += ["--append-system-prompt", _readable(config.instructions_file_path)]
    if session:
        words += ["--session", str(session["sessionId"])]
    return words


def _readable(path: str) -> str:
    """The path, if there is such a file: Pi would take another text as the instructions."""
    try:
        with Path(path).open("rb"):
            return str(Path(path).absolute())
    except OSError as problem:
        raise ConfigError(
            f"instructionsFilePath: {path} cannot be read: {problem}",
            hint="Set it to the absolute path of a Markdown file, or remove it.",
            fields={"instructionsFilePath": "cannot be read"},
        ) from problem


def _skills_folder(scratch: Path) -> Path:
    return scratch / "skills"
