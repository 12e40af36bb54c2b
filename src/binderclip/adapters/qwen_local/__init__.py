"""Qwen Code, run headlessly with its JSON event stream."""

from binderclip.adapters.qwen_local.execute import QwenAdapter


def create_adapter() -> QwenAdapter:
    """The adapter of this folder."""
    return QwenAdapter()
