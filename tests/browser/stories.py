"""Stories that the agents of these tests and pictures tell."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

Line = dict[str, Any]
_TS = "2026-01-01T00:00:00.000Z"
_ids = count(1)


def said(text: str, **more: Any) -> Line:
    return {"kind": "assistant", "ts": _TS, "text": text, **more}


def thought(text: str, **more: Any) -> Line:
    return {"kind": "thinking", "ts": _TS, "text": text, **more}


def begun(model: str = "sonnet-4-5") -> Line:
    session = "4f1bdf97-c353-4290-95b8-601fe82ef9f7"
    return {"kind": "init", "ts": _TS, "model": model, "sessionId": session}


def ended(text: str, *, bad: bool = False, cost: float | None = 0.31) -> Line:
    return {
        "kind": "result",
        "ts": _TS,
        "text": text,
        "inputTokens": 12_140,
        "outputTokens": 3_214,
        "cachedTokens": 48_020,
        "costUsd": cost,
        "subtype": "error" if bad else "success",
        "isError": bad,
        "errors": [text] if bad else [],
    }


def tool(
    kind: str,
    title: str,
    given: Any,
    content: str,
    *,
    name: str | None = None,
    bad: bool = False,
    code: int | None = None,
    ms: int = 40,
    wait: float = 0,
    parent: str | None = None,
    diff: str = "",
    path: str = "",
) -> Iterator[Line]:
    """A call, perhaps a pause, its result, perhaps a diff."""
    use = f"use_{next(_ids)}"
    inside = {"parentToolUseId": parent} if parent else {}
    named = name or kind.capitalize()
    yield {
        "kind": "tool_call",
        "ts": _TS,
        "name": named,
        "input": given,
        "toolUseId": use,
        "toolKind": kind,
        "title": title,
        **inside,
    }
    if wait:
        yield {"wait": wait}
    yield {
        "kind": "tool_result",
        "ts": _TS,
        "toolUseId": use,
        "content": content,
        "isError": bad,
        "toolName": named,
        "durationMs": ms,
        **({"exitCode": code} if code is not None else {}),
        **inside,
    }
    yield from _changes(diff, use, path)


def shell(command: str, content: str, **more: Any) -> Iterator[Line]:
    return tool("shell", command, {"command": command}, content, name="Bash", **more)


def read(path: str, content: str = "1\timport time", **more: Any) -> Iterator[Line]:
    return tool("read", path, {"file_path": path}, content, name="Read", **more)


def plan(*items: tuple[str, str]) -> Iterator[Line]:
    given = {"items": [{"text": text, "status": status} for text, status in items]}
    return tool("todo", "plan", given, "ok", name="TodoWrite", ms=0)


def edit(path: str, diff: str) -> Iterator[Line]:
    return tool("edit", path, {"file_path": path}, "updated", name="Edit", diff=diff, path=path)


def _changes(diff: str, use: str, path: str) -> Iterator[Line]:
    kinds = {"+": "add", "-": "remove", " ": "context", "@": "hunk"}
    lines = [("file_header", path)] if diff else []
    for line in diff.splitlines():
        sign = line[:1] or " "
        lines.append((kinds[sign], line if sign == "@" else line[1:]))
    for change, text in lines:
        yield {
            "kind": "diff",
            "ts": _TS,
            "changeType": change,
            "text": text,
            "toolUseId": use,
            "path": path,
        }


PASSING = "\n".join(
    f"\x1b[32m✓\x1b[0m tests/test_{name}.py::test_{name}_{n:02}"
    for name in ("orders", "store", "clock")
    for n in range(14)
)
FAILING = f"""\
{PASSING}
\x1b[31m✗ tests/test_orders.py::test_two_clerks_never_sell_the_same_item\x1b[0m

    def test_two_clerks_never_sell_the_same_item(store):
        left, right = clerk(store), clerk(store)
        sold = run_both(left.sell, right.sell)
>       assert sorted(sold) == ["refused", "sold"]
E       AssertionError: assert ['sold', 'sold'] == ['refused', 'sold']

\x1b[31m1 failed\x1b[0m, \x1b[32m42 passed\x1b[0m in 11.92s"""
DIFF = """\
@@ -31,12 +31,17 @@
 class Store:
     def __init__(self, items: dict[str, int]) -> None:
         self._items = items
+        self._lock = threading.Lock()

     def take(self, name: str) -> bool:
-        # Somebody else may take it between these two lines.
-        if self._items.get(name, 0) < 1:
-            return False
-        self._items[name] -= 1
-        return True
+        with self._lock:
+            if self._items.get(name, 0) < 1:
+                return False
+            self._items[name] -= 1
+            return True

     def __len__(self) -> int:
         return sum(self._items.values())"""
FINDINGS = """\
I found the cause. `Store.take` looks and then takes, in **two steps**:

1. clerk A sees that one item is left,
2. clerk B sees the same,
3. both take it, and the stock goes to −1.

The test fails about one time in six here. Two ways to repair it:

| way | cost | safe with processes |
|---|---|---|
| a lock in `Store` | none to speak of | no |
| `UPDATE … WHERE left > 0` | one query | yes |

The shop runs in one process, so the lock is enough:

```python
with self._lock:
    if self._items.get(name, 0) < 1:  # looked at under the lock
        return False
    self._items[name] -= 1
```"""


def whole_story(pace: float = 0.0) -> Iterator[Line]:
    """A run with everything in it: a flaky test is found, understood and repaired."""
    rest: Line = {"wait": pace}
    yield begun()
    yield {"kind": "system", "ts": _TS, "text": "Permission mode: acceptEdits"}
    yield said("I'll find out why the orders test fails now and then.")
    yield from plan(
        ("Reproduce the failure", "in_progress"),
        ("Find the cause", "pending"),
        ("Repair it", "pending"),
        ("Run the tests fifty times", "pending"),
    )
    yield rest
    for name in ("store", "clerk", "orders", "clock", "conftest", "ids", "money"):
        yield from read(f"orders/{name}.py")
    yield from tool("search", "take\\(", {"pattern": "take\\("}, "orders/store.py:36", name="Grep")
    yield rest
    yield from shell("npm test", FAILING, bad=True, code=1, ms=12_400, wait=pace * 3)
    yield thought(
        "Two clerks sold the same item. The store looks and then takes; "
        "between the two the other clerk can look as well.\n\nSo it is a race, not a slow clock."
    )
    yield rest
    yield said(FINDINGS)
    yield from plan(
        ("Reproduce the failure", "completed"),
        ("Find the cause", "completed"),
        ("Repair it", "in_progress"),
        ("Run the tests fifty times", "pending"),
    )
    yield from edit("orders/store.py", DIFF)
    yield rest
    yield from _callers(pace)
    yield from tool(
        "mcp",
        "ORD-14",
        {"issue": "ORD-14"},
        '{"title": "Flaky orders test"}',
        name="mcp__tracker__show",
    )
    yield {"err": "warning: the cache directory is not writable, going on without it"}
    yield {"print": '{"type":"telemetry","flushed":true}'}
    yield {"print": "Debugger attached."}
    yield from shell("for n in $(seq 50); do npm test; done", PASSING * 4, code=0, wait=pace * 4)
    yield from plan(
        ("Reproduce the failure", "completed"),
        ("Find the cause", "completed"),
        ("Repair it", "completed"),
        ("Run the tests fifty times", "completed"),
    )
    yield said("Fixed: `Store.take` now looks and takes under one lock. 50 of 50 runs pass.")
    yield ended("Fixed: `Store.take` now looks and takes under one lock.")


def _callers(pace: float) -> Iterator[Line]:
    call, *result = tool(
        "agent",
        "look for callers",
        {"description": "look for callers", "prompt": "Who calls Store.take?"},
        "Only `Clerk.sell` calls it.",
        name="Agent",
        ms=31_000,
    )
    parent = call["toolUseId"]
    yield call
    yield said("Looking for callers of `take`.", parentToolUseId=parent)
    yield from shell("grep -rn 'take(' orders", "orders/clerk.py:12", parent=parent, code=0)
    yield {"wait": pace * 2}
    yield said("Only `Clerk.sell` calls it.", parentToolUseId=parent)
    yield from result


def long_story(entries: int) -> Iterator[Line]:
    """So many entries, of the kinds and in the order of a long day's work."""
    yield begun()
    told = 1
    while told < entries - 1:
        at = told
        turn = [
            said(f"Step {at}: I look at **part {at % 97}** and go on from there."),
            *read(f"src/part_{at % 97}/module_{at}.py"),
            *shell(
                f"pytest tests/part_{at % 97} -q",
                f"{at % 40} passed in 0.{at % 9}s",
                bad=at % 499 == 1,
                code=1 if at % 499 == 1 else 0,
                ms=at % 3000,
            ),
            thought(f"Part {at % 97} is done, so part {at % 97 + 1} is next."),
        ]
        for line in turn[: entries - 1 - told]:
            told += 1
            yield line
    yield ended("Done.")


def short_story() -> Iterator[Line]:
    """Five lines."""
    yield begun()
    yield said("Let me look.")
    yield from shell("ls", "README.md\nsrc\ntests", code=0)
    yield ended("There are three things here.", cost=None)


def write_story(path: Path, lines: Iterable[Line]) -> Path:
    with path.open("w", encoding="utf-8") as file:
        for line in lines:
            file.write(json.dumps(line) + "\n")
    return path
