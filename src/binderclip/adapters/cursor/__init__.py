"""Cursor's command-line agent, run headlessly with its JSON event stream."""

from binderclip.adapters.cursor.execute import CursorAdapter


def create_adapter() -> CursorAdapter:
    """The adapter of this folder."""
    return CursorAdapter()
