"""What an adapter makes of recorded output (T1-T4, S4, D10), case by case."""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random
from typing import Any

import msgspec

from binderclip.contract.entry import (
    AppendRecord,
    Assistant,
    Entry,
    EntryRecord,
    Thinking,
    ToolCall,
    ToolResult,
)
from binderclip.sdk.lines import LineSplitter
from binderclip.sdk.testing.conformance.requirement import Subject, demand
from binderclip.sdk.testing.fixtures import Case, differences
from binderclip.sdk.testing.replay import Replay
from binderclip.sdk.usage import BUCKETS

SMALL = 64 * 1024


def outcome_is_as_expected(subject: Subject, case: Case) -> None:
    demand(case.expected, f"{case.name} has no expected.json: write it with the expect module")
    wrong = differences(case.expected or {}, case.replayed(subject.adapter))
    demand(not wrong, f"{case.name}: " + "\n".join(wrong))


def entries_are_well_formed(subject: Subject, case: Case) -> None:
    seen = case.replayed(subject.adapter)
    demand(not seen.builder.failures, f"the parser raised: {seen.builder.failures}")
    demand(not seen.builder.dropped, f"{seen.builder.dropped} things were no entries")
    for at, entry in enumerate(seen.entries):
        demand(entry.seq == at, f"entry {entry.id} has seq {entry.seq}, not {at}")
        demand(_same_over_json(entry), f"entry {at} does not survive JSON: {entry}")
    ids = [entry.id for entry in seen.entries]
    demand(len(ids) == len(set(ids)), "two entries have the same id")
    _demand_sound_usage(seen)


def tool_calls_are_paired(subject: Subject, case: Case) -> None:
    seen = case.replayed(subject.adapter)
    calls: dict[str, ToolCall] = {}
    for entry in seen.entries:
        if isinstance(entry, ToolCall) and entry.tool_use_id:
            demand(entry.tool_use_id not in calls, f"two calls with id {entry.tool_use_id}")
            calls[entry.tool_use_id] = entry
        elif isinstance(entry, ToolResult):
            known = entry.tool_use_id in calls
            demand(known, f"a result without its call: {entry.tool_use_id}")
    answered = {entry.tool_use_id for entry in seen.entries if isinstance(entry, ToolResult)}
    silent = [key for key in calls if key not in answered and calls[key].tool_kind != "todo"]
    ended_well = seen.builder.parser.facts.ended == "success"
    demand(
        not (ended_well and silent), f"calls without a result in a run that ended well: {silent}"
    )


def replay_is_deterministic(subject: Subject, case: Case) -> None:
    first = case.replayed(subject.adapter)
    demand(_same(first, case.replayed(subject.adapter)), "two replays of the same bytes differ")
    parser = first.builder.parser
    lines = _texts(case.stdout)
    parser.reset()
    again = [parser.parse_line(line, "t") for line in lines]
    parser.reset()
    demand(again == [parser.parse_line(line, "t") for line in lines], "reset() keeps some state")


def chunks_do_not_matter(subject: Subject, case: Case) -> None:
    whole = case.replayed(subject.adapter)
    random = Random(case.name)
    cuts: list[Any] = [[random.randint(1, 700) for _ in range(97)], 65_536]
    if len(case.stdout) <= SMALL:
        cuts.append(1)
    for chunks in cuts:
        cut = case.replayed(subject.adapter, chunks=chunks)
        demand(_same(whole, cut), f"chunks of {chunks} bytes give another transcript")


def talk_about_sessions_is_no_unknown_session(subject: Subject, case: Case) -> None:
    """Let the agent of every other case say what the runtime says about an unknown session."""
    demand(case.replayed(subject.adapter).result.clear_session, "clearSession must be set (S4)")
    words = list(_words_of(case))
    for other in subject.cases:
        plain = other.replayed(subject.adapter)
        if plain.builder.parser.facts.unknown_session or len(other.stdout) > SMALL:
            continue
        for said in words:
            stdout = _with_words(other.stdout, plain, said)
            facts = other.replayed(subject.adapter, stdout=stdout).builder.parser.facts
            demand(
                not facts.unknown_session,
                f"{other.name}: the agent said {said[:200]!r} and was taken for the runtime",
            )


def _words_of(case: Case) -> Iterator[str]:
    """The runtime's words: lines of stderr and stdout, and the sentences inside its events."""
    lines = _texts(case.stderr) + _texts(case.stdout)
    for line in lines:
        yield line
        try:
            yield from _sentences(json.loads(line))
        except ValueError:
            continue


def _sentences(value: Any) -> Iterator[str]:
    if isinstance(value, str) and " " in value:
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _sentences(inner)


def _with_words(stdout: bytes, plain: Replay, said: str) -> bytes:
    """Replace, inside JSON strings, everything that the agent and its tools said."""
    for text in sorted(set(_said(plain)), key=len, reverse=True):
        for ascii_only in (True, False):
            old = json.dumps(text, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
            stdout = stdout.replace(old, json.dumps(said).encode())
    return stdout


def _said(plain: Replay) -> Iterator[str]:
    for record in plain.records:
        if isinstance(record, AppendRecord):
            yield record.text
        elif isinstance(record, EntryRecord):
            entry = record.entry
            if isinstance(entry, Assistant | Thinking):
                yield entry.text
            elif isinstance(entry, ToolResult):
                yield entry.content


def _demand_sound_usage(seen: Replay) -> None:
    usage, cost = seen.result.usage, seen.result.cost_usd
    demand(cost is None or cost >= 0, f"negative cost: {cost}")
    if usage is None:
        return
    counts = {name: getattr(usage, name) for name in BUCKETS}
    negative = {name: value for name, value in counts.items() if value is not None and value < 0}
    demand(not negative, f"negative usage: {negative}")
    of_output = usage.reasoning_tokens or 0
    within = usage.output_tokens is None or of_output <= usage.output_tokens
    demand(within, "reasoning tokens are part of the output tokens (D10)")


def _same_over_json(entry: Entry) -> bool:
    """Equal after a trip through JSON; what a tool was given may change its Python types."""
    data = msgspec.json.encode(entry)
    return msgspec.json.encode(msgspec.json.decode(data, type=Entry)) == data


def _same(one: Replay, other: Replay) -> bool:
    return (one.records, one.result, one.coverage) == (other.records, other.result, other.coverage)


def _texts(data: bytes) -> list[str]:
    splitter = LineSplitter()
    lines = splitter.push(data) + splitter.finish()
    return [line.text for line in lines if line.text and not line.cut]
