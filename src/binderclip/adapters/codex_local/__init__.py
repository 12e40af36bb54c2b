"""OpenAI's Codex, run by `codex exec` with one JSON object a line."""

from binderclip.adapters.codex_local.execute import CodexAdapter


def create_adapter() -> CodexAdapter:
    return CodexAdapter()
