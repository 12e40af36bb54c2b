"""Diff entries from the edits that runtimes tell: one entry a line, in bounded number."""

from __future__ import annotations

import difflib

from binderclip.contract.entry import ChangeType, Diff

MOST_LINES = 400
"""Entries of one edit; what is left out is said in a last one."""
MOST_COMPARED = 2000
"""Lines of either side up to which they are compared; above, old lines go and new ones come."""

_MARKS: dict[str, ChangeType] = {"+": "add", "-": "remove", " ": "context", "@": "hunk"}


def edit_diff(
    ts: str, path: str, old: str, new: str, tool_use_id: str | None = None
) -> tuple[Diff, ...]:
    """What changes when one text of a file is replaced by another; nothing if they are equal."""
    if old == new:
        return ()
    before, after = _lines(old), _lines(new)
    if len(before) > MOST_COMPARED or len(after) > MOST_COMPARED:
        rows = [f"-{line}" for line in before] + [f"+{line}" for line in after]
    else:
        rows = list(difflib.unified_diff(before, after, lineterm="", n=3))[2:]
    return _entries(ts, path, rows, tool_use_id)


def written_diff(
    ts: str, path: str, content: str, tool_use_id: str | None = None
) -> tuple[Diff, ...]:
    """A file that was written as a whole: every line is added."""
    return _entries(ts, path, [f"+{line}" for line in _lines(content)], tool_use_id)


def patch_diff(ts: str, path: str, patch: str, tool_use_id: str | None = None) -> tuple[Diff, ...]:
    """A unified diff that the runtime itself made; its own file headers are left out."""
    rows = _lines(patch)
    # Inside a hunk, a removed line that begins with two dashes looks like a file header.
    begin = next((at for at, row in enumerate(rows) if row.startswith("@@")), 0)
    shown = [row for row in rows[begin:] if row[:1] in _MARKS]
    return _entries(ts, path, shown, tool_use_id)


def _entries(ts: str, path: str, rows: list[str], tool_use_id: str | None) -> tuple[Diff, ...]:
    shown: list[tuple[ChangeType, str]] = [("file_header", path)]
    shown += [_typed(row) for row in rows[:MOST_LINES]]
    if len(rows) > MOST_LINES:
        shown.append(("truncation", f"… {len(rows) - MOST_LINES} more lines"))
    return tuple(
        Diff(ts=ts, change_type=kind, text=text, tool_use_id=tool_use_id, path=path)
        for kind, text in shown
    )


def _typed(row: str) -> tuple[ChangeType, str]:
    kind = _MARKS[row[0]]
    return kind, row if kind == "hunk" else row[1:]


def _lines(text: str) -> list[str]:
    """Lines end at LF and nowhere else; a last line without one counts too."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return lines
