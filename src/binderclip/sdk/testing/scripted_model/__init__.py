"""A model vendor on loopback that answers from a script, for tests without an account.

It speaks Anthropic Messages, OpenAI Responses, OpenAI Chat Completions and Gemini.
"""

from .recording import RecordedRequest
from .script import (
    Call,
    Edit,
    Failure,
    Read,
    Repeat,
    Script,
    ScriptError,
    Shell,
    Tool,
    Turn,
    Usage,
    Write,
    parse_script,
)
from .server import ScriptedModel

__all__ = [
    "Call",
    "Edit",
    "Failure",
    "Read",
    "RecordedRequest",
    "Repeat",
    "Script",
    "ScriptError",
    "ScriptedModel",
    "Shell",
    "Tool",
    "Turn",
    "Usage",
    "Write",
    "parse_script",
]
