"""A run as Markdown: for a comment, a wiki or another agent. What agents wrote cannot break out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from binderclip.contract.entry import Diff
from binderclip.contract.run import RunView
from binderclip.jobs import wording
from binderclip.jobs.ansi import uncoloured
from binderclip.jobs.pieces import Begin, Changes, End, Piece, Text, Tool

_TICKS = re.compile(r"`{3,}")
_SPECIAL = re.compile(r"([\\`*_\[\]<>#|])")
_LONGEST_OUTPUT = 20_000
_SIGNS = {"add": "+", "remove": "-", "context": " "}


def markdown(view: RunView, found: Iterable[Piece], *, structured: bool = True) -> Iterator[str]:
    """One run from its heading to its end."""
    mark, word = wording.STATES[view.status]
    yield f"# {_inline(wording.title(view))}\n\n"
    yield f"{mark} **{word}** · {_inline(' · '.join(wording.facts(view)))}  \n"
    yield f"Run `{view.id}`\n\n"
    if view.prompt and view.prompt.strip() != wording.title(view):
        yield _quoted(view.prompt.strip())
    said = ""
    for piece in found:
        if isinstance(piece, Text) and piece.kind == "said":
            said = piece.text.strip()
        if not (isinstance(piece, End) and piece.entry.text.strip() in ("", said)):
            yield from _piece(piece, structured)
    if view.error_message and view.status != "succeeded":
        code = f" `{view.error_code}`" if view.error_code else ""
        yield f"**{word.capitalize()}**{code}\n\n{_quoted(view.error_message)}"


def _piece(piece: Piece, structured: bool) -> Iterator[str]:
    if isinstance(piece, Text):
        yield _words(piece, structured)
    elif isinstance(piece, Tool):
        yield from _tool(piece)
    elif isinstance(piece, Changes):
        yield _diff(piece.lines)
    elif isinstance(piece, Begin):
        return
    elif isinstance(piece, End):
        yield _demoted(piece.entry.text)


def _words(piece: Text, structured: bool) -> str:
    text = uncoloured(piece.text)
    if not text.strip():
        return ""
    if piece.kind == "said":
        return _demoted(text) if structured else _fenced(text)
    if piece.kind == "asked":
        return _quoted(text)
    if piece.kind == "thought":
        return _folded("Thought", _quoted(text))
    if piece.kind == "raw":
        return _folded(f"{len(piece.parts)} lines not understood", _fenced(text))
    return _fenced(text)


def _tool(piece: Tool) -> Iterator[str]:
    call, result = piece.call, piece.result
    verb = wording.verb(call) if call else (result.tool_name if result else None) or "Result"
    what = f" {_code(wording.target(call))}" if call and wording.target(call) else ""
    end = " · ".join(x for x in (wording.diff_counts(piece.diffs), wording.outcome(result)) if x)
    mark = "✗" if wording.failed(result) else "✓"
    yield f"- {mark} **{_inline(verb)}**{what}{f' — {end}' if end else ''}\n\n"
    if call is not None and call.tool_kind == "todo":
        items = wording.plan_items(call)
        yield "".join(f"  - [{'x' if done else ' '}] {_inline(text)}\n" for text, done in items)
        yield "\n"
    if piece.diffs:
        yield _diff(piece.diffs)
    if result is not None and result.content.strip():
        yield _folded("Output", _fenced(_shortened(uncoloured(result.content.rstrip()))))


def _diff(lines: list[Diff]) -> str:
    text = "\n".join(_SIGNS.get(line.change_type, "") + line.text for line in lines)
    return _fenced(uncoloured(text), "diff")


def _demoted(text: str) -> str:
    """The agent's own Markdown; its headings stand below ours, raw HTML is shown as text."""
    shown = re.sub(r"(?m)^(#{1,4})(?=\s)", r"##\1", uncoloured(text).strip())
    return re.sub(r"<(?=[a-zA-Z/!?])", r"\\<", shown) + "\n\n"


def _quoted(text: str) -> str:
    lines = _SPECIAL.sub(r"\\\1", uncoloured(text)).split("\n")
    return "".join(f"> {line}\n" for line in lines) + "\n"


def _fenced(text: str, language: str = "text") -> str:
    """A code block whose fence is longer than any in it."""
    longest = max((len(run) for run in _TICKS.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text}\n{fence}\n\n"


def _folded(title: str, body: str) -> str:
    return f"<details><summary>{title}</summary>\n\n{body}</details>\n\n"


def _code(text: str) -> str:
    ticks = "`" * (max((len(run) for run in re.findall("`+", text)), default=0) + 1)
    gap = " " if "`" in text else ""
    return f"{ticks}{gap}{uncoloured(text)}{gap}{ticks}"


def _inline(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", " ".join(uncoloured(text).split()))


def _shortened(text: str) -> str:
    if len(text) <= _LONGEST_OUTPUT:
        return text
    half = _LONGEST_OUTPUT // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half:,} characters …]\n{text[-half:]}"
