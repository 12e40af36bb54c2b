"""From the configuration to the command line; everything else is the SDK's."""

from __future__ import annotations

from collections.abc import Iterable

from binderclip.adapters.process.checks import process_checks
from binderclip.adapters.process.config import ProcessConfig
from binderclip.sdk import Call, Check, CheckCall, CliAdapter, Command


class ProcessAdapter(CliAdapter):
    """Any program that does its work, prints lines and exits."""

    Config = ProcessConfig

    def command(self, call: Call) -> Command:
        config: ProcessConfig = call.config
        argv = [config.command, *config.args]
        if config.prompt_via == "arg":
            argv.append(call.prompt)
        return Command(argv, stdin=call.prompt if config.prompt_via == "stdin" else None)

    def checks(self, call: CheckCall) -> Iterable[Check]:
        return process_checks(call)
