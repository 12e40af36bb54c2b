"""Runs OpenCode (`opencode run`) on this machine and reads its JSON events."""

from binderclip.adapters.opencode_local.execute import OpenCodeAdapter


def create_adapter() -> OpenCodeAdapter:
    return OpenCodeAdapter()
