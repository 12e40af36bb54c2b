"""The command line of OpenCode: the prompt on stdin, events on stdout."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from binderclip.adapters.opencode_local import checks, settings
from binderclip.adapters.opencode_local.config import OpenCodeConfig
from binderclip.adapters.opencode_local.parser import OpenCodeParser
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
from binderclip.sdk.live import live_check
from binderclip.sdk.skills import link_skills

MODELS_SECONDS = 60


class OpenCodeAdapter(CliAdapter):
    """OpenCode on this machine."""

    Config: ClassVar[type[AdapterConfig]] = OpenCodeConfig
    session_management: ClassVar[SessionManagement] = SessionManagement(compacts_itself=True)

    def create_parser(self) -> OpenCodeParser:
        return OpenCodeParser()

    def command(self, call: Call) -> Command:
        config: OpenCodeConfig = call.config
        self.sync_skills(call)
        skills = _skills_folder(call.scratch) if call.skills else None
        return Command(
            argv=(config.command or self.manifest.command, *flags(config, call.session)),
            env=settings.run_environment(config, call.env, skills),
            stdin=call.prompt,
        )

    def conclude(self, outcome: Outcome) -> ExecutionResult:
        """OpenCode never names its model: it is the one that was asked for, once it answered."""
        facts = outcome.facts
        asked = as_string(outcome.request.config.get("model"))
        if facts.model is None and facts.usage is not None and "/" in asked:
            facts.provider, _, facts.model = asked.partition("/")
        return super().conclude(outcome)

    def checks(self, call: CheckCall) -> Iterable[Check]:
        yield from checks.findings(call)
        if call.depth == "live" and call.program is not None:
            yield live_check(self, call)

    def list_models(self, call: CheckCall) -> Sequence[Model]:
        """What `opencode models` prints: the models of all providers that it can use here."""
        if call.program is None:
            return ()
        try:
            done = subprocess.run(
                [str(call.program), "models"],
                env={**call.env, **settings.QUIET},
                cwd=call.cwd,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=MODELS_SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return ()
        names = done.stdout.decode("utf-8", "replace").split("\n")
        return [Model(id=name, label=name) for name in names if "/" in name and " " not in name]

    def detect_model(self, call: CheckCall) -> str | None:
        """The model of the user's own configuration."""
        return as_string(settings.user_settings(call.env).get("model")) or None

    def list_skills(self, call: CheckCall) -> Sequence[str]:
        """Skills in the user's own directories; runs add theirs by a setting."""
        own = [settings.config_home(call.env) / name for name in ("skill", "skills")]
        home = Path(call.env.get("HOME") or "/")
        shared = [home / name / "skills" for name in (".claude", ".agents")]
        return settings.skill_names([*own, *shared])

    def sync_skills(self, call: Call) -> None:
        """Link the run's skills into its own directory, which a setting names."""
        if call.skills:
            link_skills(call.skills, _skills_folder(call.scratch))


def flags(config: OpenCodeConfig, session: Mapping[str, object] | None) -> list[str]:
    """The arguments after the program's name."""
    words = ["run", "--format", "json", "--thinking"]
    if config.model:
        words += ["--model", config.model]
    if config.effort:
        words += ["--variant", config.effort]
    if config.agent:
        words += ["--agent", config.agent]
    if config.dangerously_skip_permissions:
        words.append("--auto")
    if session:
        words += ["--session", str(session["sessionId"])]
    else:
        # An empty title is made from the prompt; without one, OpenCode asks a model for it.
        words += ["--title", ""]
    return [*words, *config.extra_args]


def _skills_folder(scratch: Path) -> Path:
    return scratch / "skills"
