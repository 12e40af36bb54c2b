"""Runs the Pi coding agent on this machine and reads its JSON events."""

from binderclip.adapters.pi_local.execute import PiAdapter


def create_adapter() -> PiAdapter:
    return PiAdapter()
