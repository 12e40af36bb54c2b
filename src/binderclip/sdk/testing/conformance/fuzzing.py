"""Damaged output: it may be shown raw, but it never raises and never hides what follows (A8)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random
from typing import Any

import msgspec

from binderclip.contract.entry import Assistant, Entry, Thinking
from binderclip.sdk.testing.conformance.requirement import Subject, demand
from binderclip.sdk.testing.fixtures import Case, plain_entry
from binderclip.sdk.testing.replay import Replay, replay

MARK = "⌂junk"
JUNK = (
    f"{MARK} plain words",
    f'{{"type":"{MARK}","text":"{MARK} in an unknown type"}}',
    f'{{"type":"{MARK}", cut off in the mid',
    f'["{MARK}"]',
    f'"{MARK}"',
    f'{{"no":"type {MARK}"}}',
    f'{{"type":null,"{MARK}":1}}',
    f"\x00\x1b[31m{MARK}\x1b]0;title\x07\r inside",
    f'{{"type":{{"{MARK}":[]}}}}',
    "[" * 3000 + MARK,
)
STRANGE: tuple[Any, ...] = (
    *(None, True, -1, 1.5, 10**30, "", "⌂", "\x00", [], [None], [[]], {}),
    *({"type": "⌂"}, [{"type": 5}], {"text": None}, [{"content": {"a": [1]}}]),
)
MOST_LINES = 60
MOST_BYTES = 20_000


def junk_hides_nothing(subject: Subject, case: Case) -> None:
    plain = case.replayed(subject.adapter)
    lines = case.stdout.split(b"\n")
    damaged: list[bytes] = []
    for at, line in enumerate(lines):
        damaged += [JUNK[at % len(JUNK)].encode(), line]
    if len(lines) < len(JUNK):
        damaged = [*(junk.encode() for junk in JUNK), *damaged]
    seen = case.replayed(subject.adapter, stdout=b"\n".join(damaged))
    demand(not seen.builder.failures, f"the parser raised: {seen.builder.failures}")
    _demand_all_there(plain, seen)
    if subject.adapter.create_parser().structured:
        for name in ("session_id", "model", "usage", "cost_usd", "error_code"):
            one, other = getattr(plain.result, name), getattr(seen.result, name)
            demand(one == other, f"junk lines changed {name} from {one!r} to {other!r}")


def strange_values_never_raise(subject: Subject, case: Case) -> None:
    random = Random(case.name)
    lines = [line for line in case.stdout.split(b"\n") if line.strip() and len(line) <= MOST_BYTES]
    if len(lines) > MOST_LINES:
        lines = random.sample(lines, MOST_LINES)
    strange = [twisted for line in lines for twisted in _twisted(line, random)]
    seen = replay(subject.adapter, b"\n".join(strange), case.stderr)
    demand(not seen.builder.failures, f"the parser raised: {seen.builder.failures}")
    demand(not seen.builder.dropped, f"{seen.builder.dropped} things were no entries")
    for entry in seen.entries:
        _demand_shape(entry)
    demand(seen.coverage.lines == len(strange), "some lines were not counted")


def _demand_shape(entry: Entry) -> None:
    """A parser that copies an untrusted value into a typed field is caught here."""
    try:
        msgspec.json.decode(msgspec.json.encode(entry), type=Entry)
    except (msgspec.MsgspecError, OverflowError, UnicodeError) as problem:
        raise AssertionError(f"a {type(entry).__name__} of a wrong shape: {problem}") from None


def _demand_all_there(plain: Replay, seen: Replay) -> None:
    rest = iter(_steps(seen))
    for step in _steps(plain):
        demand(any(step == other for other in rest), f"junk lines hid {str(step)[:400]}")
    for kind in (Assistant, Thinking):
        one, other = _spoken(plain, kind), _spoken(seen, kind)
        demand(one == other, f"junk lines changed what {kind.__name__} said")


def _steps(seen: Replay) -> list[dict[str, Any]]:
    entries = (entry for entry in seen.entries if not isinstance(entry, Assistant | Thinking))
    return [plain_entry(entry) for entry in entries]


def _spoken(seen: Replay, kind: type[Assistant] | type[Thinking]) -> str:
    texts = (entry.text for entry in seen.entries if isinstance(entry, kind))
    return "".join(text for text in texts if MARK not in text)


def _twisted(line: bytes, random: Random) -> Iterator[bytes]:
    """The line cut short, and with single values replaced by strange ones."""
    yield line[: random.randrange(len(line))] + b"~"
    try:
        event = json.loads(line)
    except ValueError:
        yield line[::-1]
        return
    if not isinstance(event, dict | list):
        return
    places = list(_places(event, ()))
    for place in random.sample(places, min(len(places), 25)):
        yield json.dumps(_replaced(event, place, random.choice(STRANGE))).encode()
    for key in [key for key in event if key != "type"] if isinstance(event, dict) else ():
        for value in random.sample(STRANGE, 4):
            yield json.dumps(_replaced(event, (key,), value)).encode()


def _places(value: Any, path: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    steps = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in steps:
        yield (*path, key)
        if isinstance(inner, dict | list):
            yield from _places(inner, (*path, key))


def _replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = _replaced(copy[path[0]], path[1:], new)
    return copy
