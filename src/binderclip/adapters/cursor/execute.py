"""The command line of Cursor CLI: the prompt on stdin, events on stdout."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import msgspec

from binderclip.adapters.cursor import checks
from binderclip.adapters.cursor.config import CursorConfig
from binderclip.adapters.cursor.parser import CursorParser
from binderclip.sdk import (
    AdapterConfig,
    Call,
    Check,
    CheckCall,
    CheckRequest,
    CliAdapter,
    Command,
    EnvironmentReport,
    Model,
    SessionManagement,
)
from binderclip.sdk.env import DEFAULT_PATH
from binderclip.sdk.instructions import with_instructions
from binderclip.sdk.live import live_check
from binderclip.sdk.skills import link_skills

NEWER_NAME = "agent"
MODELS_SECONDS = 60


class CursorAdapter(CliAdapter):
    """Cursor's command-line agent on this machine."""

    Config: ClassVar[type[AdapterConfig]] = CursorConfig
    session_management: ClassVar[SessionManagement] = SessionManagement(compacts_itself=True)

    def create_parser(self) -> CursorParser:
        return CursorParser()

    def command(self, call: Call) -> Command:
        config: CursorConfig = call.config
        self.sync_skills(call)
        program = config.command or self._installed(call.env)
        notes = ["effort is not passed on: Cursor has it in the model's name."]
        return Command(
            argv=(program, *flags(config, call.session), *config.extra_args),
            stdin=with_instructions(call.prompt, config.instructions_file_path),
            notes=notes if config.effort else (),
        )

    def test_environment(
        self, request: CheckRequest, env: Mapping[str, str], tested_at: str
    ) -> EnvironmentReport:
        """Look for the command under either of its names."""
        if not request.config.get("command"):
            own = request.config.get("env")
            name = self._installed({**env, **(own if isinstance(own, Mapping) else {})})
            request = msgspec.structs.replace(request, config={**request.config, "command": name})
        return super().test_environment(request, env, tested_at)

    def checks(self, call: CheckCall) -> Iterable[Check]:
        yield from checks.findings(call)
        if call.depth == "live" and call.program is not None:
            yield live_check(self, call)

    def list_models(self, call: CheckCall) -> Sequence[Model]:
        """What `cursor-agent models` prints for this account; a line is `name - label`."""
        rows = [line.split(" - ", 1) for line in _models(call).split("\n")]
        found = [(row[0].strip(), row[1].strip()) for row in rows if len(row) == 2]
        named = [Model(id=id, label=label) for id, label in found if id and " " not in id]
        return named or self.manifest.models

    def list_skills(self, call: CheckCall) -> Sequence[str]:
        """Skills in the user's own directory, which is where runs put theirs."""
        return sorted(path.parent.name for path in _skills(call.env).glob("*/SKILL.md"))

    def sync_skills(self, call: Call) -> None:
        """Link the run's skills into the user's directory: the CLI has no flag for one."""
        if call.skills:
            link_skills(call.skills, _skills(call.env))

    def _installed(self, env: Mapping[str, str]) -> str:
        """The command's name here: the older one is not ambiguous, the newer may stand alone."""
        path, usual = env.get("PATH") or DEFAULT_PATH, self.manifest.command
        alone = not shutil.which(usual, path=path) and shutil.which(NEWER_NAME, path=path)
        return NEWER_NAME if alone else usual


def flags(config: CursorConfig, session: Mapping[str, object] | None) -> list[str]:
    """The arguments after the program's name."""
    words = ["--print", "--output-format", "stream-json"]
    if config.partial_messages:
        words.append("--stream-partial-output")
    if config.trust_workspace:
        words.append("--trust")
    if config.dangerously_skip_permissions:
        words.append("--force")
    if config.approve_mcps:
        words.append("--approve-mcps")
    if config.sandbox:
        words += ["--sandbox", config.sandbox]
    if config.mode:
        words += ["--mode", config.mode]
    if config.model:
        words += ["--model", config.model]
    return [*words, "--resume", str(session["sessionId"])] if session else words


def _skills(env: Mapping[str, str]) -> Path:
    return Path(env.get("HOME") or "/") / ".cursor" / "skills"


def _models(call: CheckCall) -> str:
    if call.program is None:
        return ""
    try:
        done = subprocess.run(
            [str(call.program), "models"],
            env=call.env,
            cwd=call.cwd,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=MODELS_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else ""
