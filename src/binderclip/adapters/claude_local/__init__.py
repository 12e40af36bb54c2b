"""Claude Code, run headlessly with one JSON object a line."""

from binderclip.adapters.claude_local.execute import ClaudeAdapter


def create_adapter() -> ClaudeAdapter:
    return ClaudeAdapter()
