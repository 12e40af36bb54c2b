"""What can be set for an agent on Gemini CLI."""

from __future__ import annotations

from typing import Literal

from binderclip.sdk import CliConfig, Effort, Field, dangerous


class GeminiConfig(CliConfig):
    """Gemini CLI's switches under binderclip's names."""

    effort: Effort | None = Field(
        None,
        description="No effect: Gemini CLI takes a thinking level from its own settings only "
        "(modelConfigs).",
    )
    approval_mode: Literal["default", "auto_edit", "plan"] = Field(
        "default",
        description="What the agent may do: default reads only, since nobody is there to approve; "
        "auto_edit also edits files; plan only plans.",
    )
    dangerously_skip_permissions: bool = dangerous(
        default=False,
        description="Every tool runs without asking, shell commands included (--yolo).",
    )
    trust_workspace: bool = Field(
        True,
        description="Trust the working directory for this run, its .gemini settings and hooks "
        "included. Off: the run fails unless a person trusted the directory in Gemini CLI.",
    )
    include_directories: list[str] = Field(
        default_factory=list, description="More directories that the agent may read and write."
    )
