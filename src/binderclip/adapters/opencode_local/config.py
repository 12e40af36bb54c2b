"""What can be set for an agent on OpenCode."""

from __future__ import annotations

from typing import Literal

from binderclip.sdk import CliConfig, Effort, Field, dangerous


class OpenCodeConfig(CliConfig):
    """OpenCode's switches under binderclip's names."""

    model: str | None = Field(
        None,
        pattern=r"^[^/\s]+/\S+$",
        description="Model as provider/model, such as anthropic/claude-sonnet-4-5; OpenCode's "
        "default if unset.",
    )
    effort: Effort | None = Field(
        None,
        description="How hard the model should think (--variant); a model without a variant of "
        "that name ignores it.",
    )
    agent: str | None = Field(
        None,
        pattern=r"^[^-\s]\S*$",
        description="Primary agent of OpenCode to use, such as build or plan.",
    )
    max_turns: int | None = Field(
        None,
        ge=1,
        description="Model calls after which OpenCode tells the agent to stop and sum up.",
    )
    permission_mode: Literal["default", "read_only"] = Field(
        "default",
        description="default: the rules of opencode.json, by which OpenCode edits and runs "
        "commands inside its directory without asking; read_only: no edits, no commands.",
    )
    continue_after_denial: bool = Field(
        True,
        description="Go on after a tool call was denied; off: the first denial ends the run.",
    )
    dangerously_skip_permissions: bool = dangerous(
        default=False,
        description="Approve whatever OpenCode would ask about, also outside of its directory "
        "(--auto); only explicit denials stay.",
    )
