"""How a run ended, for people: one line of facts, where its log is, what to do next. Pure."""

from __future__ import annotations

from pathlib import Path

import msgspec

from binderclip.cli import cards
from binderclip.cli.layout import Colour, Look, wrapped
from binderclip.cli.safe import safe, safe_line
from binderclip.cli.words import between, counted, duration, homely, money, tokens
from binderclip.contract.ids import short
from binderclip.contract.run import ExecutionResult, RunOrder, RunState
from binderclip.store.runfile import RunOutcome

STATES: dict[RunState, tuple[str, Colour]] = {
    "queued": ("queued", "dim"),
    "starting": ("starting", "cyan"),
    "running": ("running", "cyan"),
    "finalizing": ("finalizing", "cyan"),
    "succeeded": ("succeeded", "green"),
    "failed": ("failed", "red"),
    "timed_out": ("timed out", "red"),
    "cancelled": ("cancelled", "yellow"),
    "lost": ("lost", "red"),
}


_FIRM = "\u00a0"


class Ending(msgspec.Struct, frozen=True):
    """What the closing block tells."""

    state: RunState
    result: ExecutionResult | None
    seconds: float | None = None
    log: str | None = None
    unknown: int = 0
    run: str = ""


def ending_of(order: RunOrder, outcome: RunOutcome, attempt: Path | None) -> Ending:
    """How a run ended, from what its files keep."""
    return Ending(
        state=outcome.state,
        result=outcome.result,
        seconds=between(order.created_at, outcome.ended_at),
        log=str(attempt / "stdout.log") if attempt else None,
        run=short(order.id),
    )


def exit_code(state: RunState) -> int:
    """0 ok, 124 timed out, 1 any other end; 130 is for whoever was interrupted."""
    return {"succeeded": 0, "timed_out": 124}.get(state, 1)


def closing(ending: Ending, look: Look) -> str:
    """The last lines of a run."""
    out = _verdict(ending, look)
    result = ending.result
    if result is not None and result.error_message and ending.state != "succeeded":
        colour: Colour = "yellow" if ending.state == "cancelled" else "red"
        text = wrapped(safe(result.error_message), look.width, cards.INDENT)
        out += cards.INDENT + cards.painted_lines(text, look, colour) + "\n"
    for line in _pointers(ending):
        # Not wrapped: a path that the terminal breaks by itself can still be copied whole.
        out += cards.INDENT + look.paint(line, "dim") + "\n"
    return out


def _verdict(ending: Ending, look: Look) -> str:
    word, colour = STATES[ending.state]
    mark = "✓" if ending.state == "succeeded" else "✗"
    result = ending.result
    code = safe_line(result.error_code or "") if result else ""
    if code and code != word and ending.state == "failed":
        word += f": {code}"
    took = f" in {duration(ending.seconds)}" if ending.seconds is not None else ""
    head = f"{word}{took}"
    # A fact stays on one line: its spaces are no places to break while it is laid out.
    facts = [fact.replace(" ", _FIRM) for fact in (head, *_facts(result))]
    laid = wrapped(" · ".join(facts), look.width, cards.INDENT).replace(_FIRM, " ")
    return f"{look.paint(mark, colour)} {look.paint(head, colour, 'bold')}{laid[len(head) :]}\n"


def _facts(result: ExecutionResult | None) -> list[str]:
    if result is None:
        return []
    facts = []
    if result.exit_code:
        facts.append(f"exit {result.exit_code}")
    elif result.signal:
        facts.append(safe_line(result.signal))
    if result.model:
        facts.append(safe_line(result.model))
    if used := tokens(result.usage):
        facts.append(used)
    if result.usage is not None or result.cost_usd is not None or result.model:
        facts.append(money(result.cost_usd))
    if result.session_display_id:
        facts.append(f"session {safe_line(result.session_display_id)[:8]}")
    return facts


def _pointers(ending: Ending) -> list[str]:
    lines = []
    if ending.unknown:
        lines.append(f"{counted(ending.unknown, 'line')} not understood; --debug shows them")
    if ending.log:
        lines.append(f"log    {homely(ending.log)}")
    if ending.run:
        lines.append(f"more   binderclip runs transcript {ending.run} --full")
    return lines
