"""Standing instructions for runtimes that have no flag for them: they go before the prompt."""

from __future__ import annotations

from pathlib import Path

from binderclip.contract.errors import ConfigError


def with_instructions(prompt: str, path: str | None) -> str:
    """The prompt after the content of the instructions file, which must be readable."""
    if not path:
        return prompt
    try:
        text = Path(path).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as problem:
        raise ConfigError(
            f"instructionsFilePath: {path} cannot be read: {problem}",
            hint="Set it to the absolute path of a Markdown file, or remove it.",
            fields={"instructionsFilePath": "cannot be read"},
        ) from problem
    return f"{text}\n\n{prompt}" if text else prompt
