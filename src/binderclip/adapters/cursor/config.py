"""What can be set for an agent on Cursor CLI."""

from __future__ import annotations

from typing import Literal

from binderclip.sdk import CliConfig, Effort, Field, dangerous


class CursorConfig(CliConfig):
    """Cursor's switches under binderclip's names."""

    model: str | None = Field(
        None,
        description="Model by Cursor's name, which also says how hard it thinks, such as "
        "gpt-5.5-high; Cursor's own choice if unset.",
    )
    effort: Effort | None = Field(
        None, description="Not used: Cursor has it in the model's name, such as gpt-5.5-high."
    )
    mode: Literal["plan", "ask"] | None = Field(
        None, description="plan only plans, ask only answers; both change nothing."
    )
    sandbox: Literal["enabled", "disabled"] | None = Field(
        None, description="Cursor's sandbox for commands; its own settings decide if unset."
    )
    trust_workspace: bool = Field(
        True,
        description="Trust the directory and its .cursor settings, which Cursor demands of a run. "
        "Off: only directories work that a person has trusted in Cursor.",
    )
    approve_mcps: bool = dangerous(
        default=False,
        description="Start every MCP server that is configured, the directory's own included.",
    )
    dangerously_skip_permissions: bool = dangerous(
        default=False,
        description="Every command runs unasked, unless Cursor's settings deny it (--force).",
    )
    partial_messages: bool = Field(
        False, description="Show text as it is written, not when a message is complete."
    )
