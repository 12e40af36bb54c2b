"""What can be known about a command without starting it."""

from __future__ import annotations

from collections.abc import Iterator

from binderclip.adapters.process.config import ProcessConfig
from binderclip.sdk import Check, CheckCall


def process_checks(call: CheckCall) -> Iterator[Check]:
    config: ProcessConfig = call.config
    if call.program is None and " " in config.command.strip():
        yield Check(
            code="command_has_arguments",
            level="error",
            message=f"The command {config.command!r} holds spaces: no shell splits it.",
            hint="Put the program into command and each argument into args.",
        )
    if config.prompt_via == "arg":
        yield Check(
            code="prompt_in_arguments",
            level="warn",
            message="The prompt is an argument: every user of this machine can read it.",
            hint="Use promptVia stdin if the command reads its standard input.",
        )
