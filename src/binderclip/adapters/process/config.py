"""What a person sets for a command of their own."""

from __future__ import annotations

from typing import Literal

from binderclip.sdk import AdapterConfig, Field

PromptVia = Literal["stdin", "arg", "none"]


class ProcessConfig(AdapterConfig):
    command: str = Field(
        min_length=1,
        description="Program to run, by name or path; a relative path starts at the cwd.",
    )
    args: list[str] = Field(
        default_factory=list,
        description="Its arguments, one item each; no shell reads them, nothing is expanded.",
    )
    prompt_via: PromptVia = Field(
        "stdin",
        description="How the command gets the prompt: on stdin, as its last argument, or not.",
    )
