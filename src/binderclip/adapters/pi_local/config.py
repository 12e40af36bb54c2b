"""What can be set for an agent on Pi."""

from __future__ import annotations

from typing import Literal

from binderclip.sdk import CliConfig, Effort, Field


class PiConfig(CliConfig):
    """Pi's switches under binderclip's names."""

    provider: str | None = Field(
        None,
        pattern=r"^[^-\s]\S*$",
        description="Provider of the model, such as anthropic; not needed if model names it.",
    )
    model: str | None = Field(
        None,
        pattern=r"^[^-\s]\S*$",
        description="Model by id or as provider/id, such as anthropic/claude-sonnet-4-5; Pi's "
        "default if unset.",
    )
    effort: Effort | None = Field(None, description="How hard the model should think (--thinking).")
    permission_mode: Literal["default", "read_only"] = Field(
        "default",
        description="default: Pi reads, edits and runs commands without asking, as this user; "
        "read_only: only reading and searching tools exist.",
    )
    trust_workspace: bool = Field(
        False,
        description="Load the directory's own Pi settings, skills and extensions, which are code. "
        "Off: only where a person has trusted the directory in Pi.",
    )
