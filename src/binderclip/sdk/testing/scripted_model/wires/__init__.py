"""The protocols that the scripted model speaks, one module each."""

from __future__ import annotations

from ..exchange import Action, Wire
from .anthropic import AnthropicWire
from .chat import ChatWire
from .gemini import GeminiWire
from .responses import ResponsesWire

WIRES: tuple[Wire, ...] = (AnthropicWire(), ResponsesWire(), ChatWire(), GeminiWire())


def route(path: str) -> tuple[Wire, Action] | None:
    """The wire and action of a URL path; any prefix before the vendor's own path is fine."""
    for wire in WIRES:
        action = wire.route(path.rstrip("/"))
        if action is not None:
            return wire, action
    return None
