"""Gemini CLI, run headlessly with its JSON event stream."""

from binderclip.adapters.gemini_local.execute import GeminiAdapter


def create_adapter() -> GeminiAdapter:
    """The adapter of this folder."""
    return GeminiAdapter()
