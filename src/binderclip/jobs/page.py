"""A run or job as one HTML file that looks like the viewer and needs nothing else.

No script, no picture, no address is fetched, and its own policy forbids them. Whatever an agent
wrote is escaped; all of it is in the document, so that the browser's own search finds it.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator
from functools import cache
from html import escape
from itertools import groupby
from pathlib import Path

from binderclip.contract.entry import Diff, ToolCall
from binderclip.contract.ids import short
from binderclip.contract.run import RunView
from binderclip.jobs import wording
from binderclip.jobs.ansi import terminal, uncoloured
from binderclip.jobs.pieces import Begin, Changes, End, Piece, Text, Tool
from binderclip.jobs.prose import plain, printable, prose

_FOLDED = {"read": "Read {} files", "search": "Searched {} times"}
_FOLDED_FROM = 3
_MORE_NAMED = 4
_SIGNS = {"add": "+", "remove": "-", "context": " "}


class Page:
    """Draws the pieces of runs."""

    def __init__(self, *, structured: bool = True, prefix: str = "") -> None:
        self.structured = structured
        self.prefix = prefix
        self._last_said = ""

    def run(self, view: RunView, found: Iterable[Piece]) -> Iterator[str]:
        """One run from its heading to its end."""
        yield f'<article class="run" id="run-{short(view.id)}">\n{_heading(view)}'
        if view.prompt and view.prompt.strip() != wording.title(view):
            yield f'<div class="e asked">{_text(view.prompt.strip())}</div>\n'
        shown = (piece for piece in found if not _is_told_above(piece, view))
        for kind, group in groupby(shown, _foldable):
            if kind:
                yield from self._group(kind, list(group))
            else:
                yield from map(self._piece, group)
        yield _over(view, self._last_said) + "</article>\n"

    def _group(self, kind: tuple[str, str | None], tools: list[Piece]) -> Iterator[str]:
        """Quick tools of one kind in a row are one line."""
        drawn = [self._piece(tool) for tool in tools]
        if len(tools) < _FOLDED_FROM:
            yield from drawn
            return
        names = [
            wording.target(tool.call) for tool in tools if isinstance(tool, Tool) and tool.call
        ]
        told = ", ".join(name.rpartition("/")[2] or name for name in names[:_MORE_NAMED])
        told += " …" if len(names) > _MORE_NAMED else ""
        verb = _FOLDED[kind[0]].format(len(tools))
        lane = ' class="lane"' if kind[1] else ""
        yield (
            f'<div{lane}><details class="e"><summary><span class="verb">{verb}</span>'
            f'<span class="what">{_text(told)}</span></summary><div class="body">'
            f"{''.join(drawn)}</div></details></div>\n"
        )

    def _piece(self, piece: Piece) -> str:
        place = f' id="{escape(self.prefix + piece.id)}"' if piece.id else ""
        body = self._drawn(piece, place)
        return f'<div class="lane">{body}</div>\n' if piece.lane and body else body

    def _drawn(self, piece: Piece, place: str) -> str:
        if isinstance(piece, Text):
            return self._words(piece, place)
        if isinstance(piece, Tool):
            return _tool(piece, place)
        if isinstance(piece, Changes):
            return f'<div class="e"{place}><div class="body">{_diff(piece.lines)}</div></div>\n'
        if isinstance(piece, Begin):
            told = " · ".join(part for part in (piece.entry.model, _session(piece)) if part)
            return f'<div class="e note"{place}>Began: {_text(told)}</div>\n' if told else ""
        return self._told_end(piece, place)

    def _told_end(self, piece: End, place: str) -> str:
        text = piece.entry.text.strip()
        if not text or text == self._last_said:
            return ""
        self._last_said = text
        return f'<div class="e said"{place}>{self._prose(text)}</div>\n'

    def _words(self, piece: Text, place: str) -> str:
        text = piece.text
        if not text.strip():
            return ""
        if piece.kind == "said":
            self._last_said = text.strip()
            lines = "" if self.structured else " lines"
            return f'<div class="e said{lines}"{place}>{self._prose(text)}</div>\n'
        if piece.kind == "thought":
            body = f'<div class="body">{_text(text.strip())}</div>'
            return _details("thought", place, ("Thought", _first_line(text), "", ""), body)
        if piece.kind == "asked":
            return f'<div class="e asked"{place}>{_text(text)}</div>\n'
        if piece.kind == "raw":
            count = len(piece.parts)
            told = f"{count:,} line{'s' if count > 1 else ''} not understood"
            body = f'<div class="body"><pre>{terminal(text)}</pre></div>'
            return _details("note raw", place, (told, "", "", ""), body)
        return f'<div class="e note {piece.kind}"{place}><pre>{terminal(text)}</pre></div>\n'

    def _prose(self, text: str) -> str:
        if self.structured:
            return prose(text)
        return f"<pre>{terminal(text)}</pre>" if "\x1b" in text else plain(text)


def page(title: str, body: Iterable[str], chain: str = "") -> Iterator[str]:
    """The whole document; its policy allows its own style sheet and nothing else."""
    css, digest = _style()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    yield (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{_text(title)}</title>\n<style>{css}</style>\n</head>\n<body>\n<main>\n{chain}"
    )
    yield from body
    yield "</main>\n<footer>Exported by binderclip.</footer>\n</body>\n</html>\n"


def chain_of(views: list[RunView]) -> str:
    """The runs of a job as links within the page."""
    items = "".join(
        f'<li><a href="#run-{short(view.id)}">{_text(wording.title(view))}</a>'
        f' <span class="{view.status}">{wording.STATES[view.status][1]}</span></li>'
        for view in views
    )
    return f'<nav aria-label="Runs"><ol>{items}</ol></nav>\n'


@cache
def _style() -> tuple[str, str]:
    css = Path(__file__).with_name("page.css").read_text("utf-8")
    return css, base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()


def _heading(view: RunView) -> str:
    mark, word = wording.STATES[view.status]
    facts = "".join(f"<span>{_text(fact)}</span>" for fact in wording.facts(view))
    session = f" · session {view.session_id}" if view.session_id else ""
    return (
        f'<header><p class="state {view.status}"><b>{mark}</b>{word}</p>\n'
        f"<h1>{_text(wording.title(view))}</h1>\n"
        f'<p class="facts">{facts}</p>\n'
        f'<p class="id">run {_text(view.id + session)}</p></header>\n'
    )


def _over(view: RunView, last_said: str) -> str:
    if view.ended_at is None:
        return ""
    mark, word = wording.STATES[view.status]
    told = f" in {took}" if (took := wording.took(view)) else ""
    why = ""
    if view.error_message and view.status != "succeeded":
        code = f"{view.error_code}: " if view.error_code else ""
        why = f'<p class="why">{_text(code + view.error_message)}</p>'
    elif view.summary and view.summary.strip() != last_said and not last_said:
        why = f'<div class="why">{prose(view.summary)}</div>'
    state = f'<p class="state {view.status}"><b>{mark}</b>{word}{told}</p>'
    return f'<div class="over">{state}{why}</div>\n'


def _is_told_above(piece: Piece, view: RunView) -> bool:
    """Whether a beginning says only what the heading says."""
    if not isinstance(piece, Begin):
        return False
    told = (piece.entry.model or view.model, piece.entry.session_id or view.session_id)
    return told == (view.model, view.session_id)


def _foldable(piece: Piece) -> tuple[str, str | None] | None:
    if not isinstance(piece, Tool) or piece.call is None or wording.failed(piece.result):
        return None
    kind = piece.call.tool_kind or ""
    return (kind, piece.lane) if kind in _FOLDED else None


def _tool(piece: Tool, place: str) -> str:
    call, result = piece.call, piece.result
    if call is not None and call.tool_kind == "todo":
        return _plan(call, place)
    bad = wording.failed(result)
    verb = wording.verb(call) if call else (result.tool_name if result else None) or "Result"
    what = wording.target(call) if call else ""
    end = " · ".join(x for x in (wording.diff_counts(piece.diffs), wording.outcome(result)) if x)
    mark = "✗" if bad else ("✓" if result else "")
    body = []
    if call is not None and (given := wording.input_text(call)) and _says_more(call, given, piece):
        body.append(f'<pre class="asking">{_text(given)}</pre>')
    if piece.diffs:
        body.append(_diff(piece.diffs))
    if result is not None and result.content.strip():
        body.append(f"<pre>{terminal(result.content.rstrip())}</pre>")
    drawn = f'<div class="body">{"".join(body)}</div>' if body else ""
    return _details("tool err" if bad else "tool", place, (verb, what, end, mark), drawn, open=bad)


def _says_more(call: ToolCall, given: str, piece: Tool) -> bool:
    if piece.diffs and call.tool_kind == "edit":
        return False
    return "".join(given.split()) != "".join(wording.target(call).split())


def _plan(call: ToolCall, place: str) -> str:
    items = "".join(
        f'<li class="{"done" if done else "open"}">{_text(text)}</li>'
        for text, done in wording.plan_items(call)
    )
    told = ("Plan", wording.target(call), "", "")
    return _details("tool", place, told, f'<ul class="plan">{items}</ul>', open=True)


def _details(
    kind: str, place: str, told: tuple[str, str, str, str], body: str, *, open: bool = False
) -> str:
    verb, what, end, mark = map(_text, told)
    return (
        f'<details class="e {kind}"{place}{" open" if open else ""}><summary>'
        f'<span class="verb">{verb}</span><span class="what">{what}</span>'
        f'<span class="end">{end}</span><span class="mark">{mark}</span></summary>'
        f"{body}</details>\n"
    )


def _diff(lines: list[Diff]) -> str:
    drawn = "".join(
        f'<span class="{escape(line.change_type)}">{_text(_signed(line, text))}</span>'
        for line in lines
        for text in line.text.split("\n")
    )
    return f'<pre class="diff">{drawn}</pre>'


def _signed(line: Diff, text: str) -> str:
    sign = _SIGNS.get(line.change_type, "")
    return text if sign and text.startswith(sign) else sign + text


def _session(piece: Begin) -> str:
    return f"session {piece.entry.session_id}" if piece.entry.session_id else ""


def _first_line(text: str) -> str:
    return " ".join(text.split())[:160]


def _text(text: str) -> str:
    return escape(printable(uncoloured(text)))
