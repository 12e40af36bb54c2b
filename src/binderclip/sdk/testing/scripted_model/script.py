"""What the scripted model says, as Python objects or as JSON: turns, tool calls, failures.

A script is plain data: nothing in it knows a wire format or a particular client.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec

Json: TypeAlias = dict[str, Any]


class ScriptError(ValueError):
    """A script that cannot be used; the message names the place and the problem."""


class _Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    pass


class _Call(_Part, frozen=True, tag_field="do", tag=str.lower):
    pass


class Shell(_Call, frozen=True):
    """Run a command with whichever shell tool the client declared."""

    command: str


class Read(_Call, frozen=True):
    """Read a file with the client's reading tool, else its shell."""

    path: str


class Write(_Call, frozen=True):
    """Write a file with the client's writing or patch tool, else its shell."""

    path: str
    content: str


class Edit(_Call, frozen=True):
    """Replace text in a file with the client's editing or patch tool, else its shell."""

    path: str
    old: str
    new: str


class Tool(_Call, frozen=True):
    """Call a tool by its exact name; arguments are an object, or text for a free-form tool."""

    name: str
    arguments: Json | str = {}


Call: TypeAlias = Shell | Read | Write | Edit | Tool


class Repeat(_Part, frozen=True):
    """A long text; `{n}` in it becomes the number of the repetition, from 0."""

    repeat: str
    count: int

    def __str__(self) -> str:
        if "{n}" not in self.repeat:
            return self.repeat * self.count
        return "".join(self.repeat.replace("{n}", str(n)) for n in range(self.count))


class Usage(_Part, frozen=True):
    """Tokens of one turn, in disjoint buckets except that `output` includes `reasoning`."""

    input: int = 100
    output: int = 10
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0

    def __post_init__(self) -> None:
        if min(self.input, self.output, self.cache_read, self.cache_write, self.reasoning) < 0:
            raise ValueError("token counts are not negative")
        if self.reasoning > self.output:
            raise ValueError("`output` includes `reasoning`, so it cannot be smaller")

    @property
    def prompt(self) -> int:
        """All input tokens, for wires whose count includes the cached ones."""
        return self.input + self.cache_read + self.cache_write


class Failure(_Part, frozen=True):
    """An HTTP error in the wire's own envelope, or its counterpart inside a stream."""

    status: int = 500
    message: str = "scripted failure"
    type: str | None = None
    headers: dict[str, str] = {}
    body: Json | str | None = None

    def __post_init__(self) -> None:
        if not 400 <= self.status <= 599:
            raise ValueError("`status` is an HTTP error, 400 to 599")


class Turn(_Part, frozen=True):
    """One answer of the model. Calls of one turn are parallel; pieces are streamed events."""

    text: str | Repeat = ""
    thinking: str | Repeat = ""
    calls: tuple[Call, ...] = ()
    usage: Usage = Usage()
    stop: str | None = None
    """The stop reason in the wire's own words; without it, the one that fits."""
    failure: Failure | None = None
    fail_after: int | None = None
    """Fail inside the stream after so many pieces instead of at once."""
    cut_after: int | None = None
    """Drop the connection after so many pieces."""
    hold_after: int | None = None
    """Stop talking after so many pieces until the client leaves or the model is closed."""
    piece_size: int = 24
    drip: float = 0.0
    """Seconds before each piece."""
    wait: float = 0.0
    """Seconds before the first byte."""
    times: int | Literal["forever"] = 1

    def __post_init__(self) -> None:
        if self.fail_after is not None and self.failure is None:
            raise ValueError("`failAfter` needs a `failure`")
        breaks = (self.fail_after, self.cut_after, self.hold_after)
        if sum(after is not None for after in breaks) > 1:
            raise ValueError("only one of `failAfter`, `cutAfter` and `holdAfter` can happen")
        if self.breaks_after is not None and self.breaks_after < 0:
            raise ValueError("`failAfter`, `cutAfter` and `holdAfter` count pieces from 0")
        if self.piece_size < 1:
            raise ValueError("`pieceSize` is at least 1")
        if isinstance(self.times, int) and self.times < 1:
            raise ValueError('`times` is at least 1, or "forever"')

    @property
    def breaks_after(self) -> int | None:
        """The piece after which the stream breaks off; at the latest it does after the last."""
        breaks = (self.fail_after, self.cut_after, self.hold_after)
        return next((after for after in breaks if after is not None), None)


class Script(_Part, frozen=True):
    """Turns in order; after the last one its text is repeated.

    A request that declares no tools, or holds one of the `aux_words`, is a side request (a
    title, a routing question): it gets `aux` and takes no turn. With `aux` null all take one.
    """

    turns: tuple[Turn, ...]
    aux: Turn | None = Turn(text="Scripted aside", usage=Usage(input=0, output=0))
    # Qwen Code 0.24 lets an agent with tools of its own write memories after the answer.
    aux_words: tuple[str, ...] = ("managed memory extraction subagent",)
    models: tuple[str, ...] = ("scripted-1",)

    def __post_init__(self) -> None:
        if not self.turns:
            raise ValueError("a script needs at least one turn")


Source: TypeAlias = Script | Path | str | bytes | Mapping[str, Any] | Sequence[Any]


def parse_script(source: Source) -> Script:
    """A script from a file's path, JSON text, plain data or turns; a bare list is its turns."""
    if isinstance(source, Script):
        return source
    if isinstance(source, Path):
        return _parse_file(source)
    try:
        data = msgspec.json.decode(source) if isinstance(source, str | bytes) else source
        plain = msgspec.to_builtins(data)
        return msgspec.convert({"turns": plain} if isinstance(plain, list) else plain, Script)
    except msgspec.MsgspecError as error:
        raise ScriptError(f"bad script: {error}") from None


def _parse_file(path: Path) -> Script:
    try:
        return parse_script(path.read_bytes())
    except OSError as error:
        raise ScriptError(f"cannot read script {path}: {error.strerror}") from None
    except ScriptError as error:
        raise ScriptError(f"{path}: {error}") from None


def fill(script: Script, values: Mapping[str, str]) -> Script:
    """The script with `{name}` replaced wherever `values` has that name; other braces stay."""
    return msgspec.convert(_filled(msgspec.to_builtins(script), values), Script)


def _filled(data: Any, values: Mapping[str, str]) -> Any:
    if isinstance(data, str):
        return re.sub(r"\{(\w+)\}", lambda found: values.get(found[1], found[0]), data)
    if isinstance(data, list | tuple):
        return [_filled(part, values) for part in data]
    if isinstance(data, dict):
        return {key: _filled(part, values) for key, part in data.items()}
    return data
