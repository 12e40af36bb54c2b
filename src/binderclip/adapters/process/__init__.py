"""Runs any command as an agent: its output is the transcript, its exit code the result."""

from binderclip.adapters.process.execute import ProcessAdapter


def create_adapter() -> ProcessAdapter:
    return ProcessAdapter()
