"""What can be set for an agent on Qwen Code."""

from __future__ import annotations

from typing import Literal

from binderclip.sdk import CliConfig, Field, dangerous

AuthType = Literal["openai", "openai-responses", "anthropic", "qwen-oauth", "gemini", "vertex-ai"]


class QwenConfig(CliConfig):
    """Qwen Code's switches under binderclip's names."""

    auth_type: AuthType | None = Field(
        None,
        description="Which kind of API is called. Unset: what Qwen Code's settings choose, else "
        "the one whose key is in the environment.",
    )
    approval_mode: Literal["default", "plan", "auto-edit", "auto"] = Field(
        "default",
        description="What the agent may do: default reads only, since nobody is there to approve; "
        "plan only plans; auto-edit also edits files; auto lets a model judge each action.",
    )
    dangerously_skip_permissions: bool = dangerous(
        default=False,
        description="Every tool runs without asking, shell commands included (--yolo).",
    )
    max_turns: int | None = Field(
        None, ge=1, description="Turns of the model until the run is stopped."
    )
    max_tool_calls: int | None = Field(
        None, ge=0, description="Tool calls until the run is stopped; 0 allows none."
    )
    include_directories: list[str] = Field(
        default_factory=list, description="More directories that the agent may read and write."
    )
    partial_messages: bool = Field(
        False, description="Show text while it is written, at the cost of much larger logs."
    )
