"""What passes between server, wires and tool translation: a request asked and a reply given.

Wires are the only code that knows a vendor's field names; everything here is neutral.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, Protocol

from .script import Failure, Json, Usage

SEAL = "c2lnbmVkIGJ5IGEgc2NyaXB0"
"""Base64 where vendors put a signature or encrypted reasoning that clients send back."""

Action = Literal["generate", "count"]
ToolKind = Literal["function", "custom", "local_shell"]


@dataclass(frozen=True, slots=True)
class DeclaredTool:
    """A tool that the client offered; `custom` ones take text instead of an object."""

    name: str
    parameters: Json = field(default_factory=dict)
    kind: ToolKind = "function"
    namespace: str | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """One request for an answer, whatever wire it came on."""

    model: str
    stream: bool
    tools: tuple[DeclaredTool, ...] = ()
    schema: Json | None = None
    """The JSON schema that the client demands of the answer."""
    sse: bool = True

    def tool(self, name: str) -> DeclaredTool | None:
        return next((tool for tool in self.tools if tool.name == name), None)


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A call of one of the client's tools."""

    tool: DeclaredTool
    arguments: Json | str
    id: str = field(default_factory=lambda: uuid.uuid4().hex[:24])


@dataclass(frozen=True, slots=True)
class Reply:
    """A turn made ready for one request."""

    text: str
    thinking: str
    uses: tuple[ToolUse, ...]
    usage: Usage
    stop: str | None
    piece_size: int

    def pieces(self, text: str) -> list[str]:
        return [text[at : at + self.piece_size] for at in range(0, len(text), self.piece_size)]


@dataclass(frozen=True, slots=True)
class Event:
    """One streamed event; `piece` marks those that a script counts, delays or cuts."""

    data: Json | str
    name: str | None = None
    piece: bool = False


class Wire(Protocol):
    """A vendor's protocol: how to read a request and how to say a reply."""

    name: str

    def route(self, path: str) -> Action | None: ...

    def read(self, target: str, body: Json) -> Asked: ...

    def whole(self, asked: Asked, reply: Reply) -> Json: ...

    def events(self, asked: Asked, reply: Reply) -> Iterator[Event]: ...

    def error(self, failure: Failure) -> Json: ...

    def failed(self, asked: Asked, failure: Failure) -> Event: ...

    def count(self, tokens: int) -> Json: ...
