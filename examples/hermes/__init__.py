"""Runs Hermes: one `hermes chat` per run; boxes and emoji on stdout become a transcript."""

from __future__ import annotations

from binderclip.sdk import Call, CliAdapter, CliConfig, Command, Field, dangerous

from .parser import HermesParser


class HermesConfig(CliConfig):
    provider: str | None = Field(None, description="Inference provider; Hermes chooses if unset.")
    toolsets: list[str] = Field(
        default_factory=list, description="Toolsets to switch on, such as terminal or file."
    )
    yolo: bool = dangerous(
        default=False, description="Run commands without asking; nobody is there to be asked."
    )


class Hermes(CliAdapter):
    """The adapter; environment, limits, sessions and results are the SDK's."""

    Config = HermesConfig

    def command(self, call: Call) -> Command:
        config = call.config
        argv = [config.command or self.manifest.command, "chat", "-q", call.prompt]
        if config.model:
            argv += ["-m", config.model]
        if config.provider:
            argv += ["--provider", config.provider]
        if config.toolsets:
            argv += ["-t", ",".join(config.toolsets)]
        if config.yolo:
            argv.append("--yolo")
        if call.session:
            argv += ["--resume", call.session["sessionId"]]
        return Command([*argv, *config.extra_args])

    def create_parser(self) -> HermesParser:
        return HermesParser()


def create_adapter() -> Hermes:
    return Hermes()
