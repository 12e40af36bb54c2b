"""GitHub Copilot CLI, run headlessly with its JSON event stream."""

from binderclip.adapters.copilot_local.execute import CopilotAdapter


def create_adapter() -> CopilotAdapter:
    """The adapter of this folder."""
    return CopilotAdapter()
