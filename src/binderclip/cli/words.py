"""Times, counts and money as people read them; pure, so that every surface says the same."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from binderclip.contract.run import Usage

_AGES = ((86400 * 365, "y"), (86400 * 30, "mo"), (86400, "d"), (3600, "h"), (60, "min"))


def duration(seconds: float) -> str:
    """`0.4 s`, `34 s`, `2 min 05 s`, `1 h 07 min`."""
    if seconds < 9.95:
        return f"{max(0.0, seconds):.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"


def age(seconds: float) -> str:
    """How long ago, in one unit."""
    for size, unit in _AGES:
        if seconds >= size:
            return f"{int(seconds // size)} {unit} ago"
    return "just now" if seconds < 5 else f"{int(seconds)} s ago"


def moment(iso: str | None) -> float | None:
    """The Unix time of an ISO timestamp; None for anything else."""
    if not iso:
        return None
    try:
        return datetime.fromisoformat(iso).timestamp()
    except ValueError:
        return None


def between(begin: str | None, end: str | None) -> float | None:
    """Seconds from one timestamp to another, where both are known."""
    first, last = moment(begin), moment(end)
    return None if first is None or last is None else max(0.0, last - first)


def money(usd: float | None) -> str:
    """Dollars with as many places as a small sum needs; unknown is said, never 0."""
    if usd is None:
        return "cost unknown"
    return f"${usd:,.2f}" if usd >= 100 or usd == 0 else f"${usd:.4f}"


def tokens(usage: Usage | None) -> str:
    """`in 1,234 (cached 10,000) out 567`, with only what the runtime told."""
    if usage is None:
        return ""
    parts = []
    if usage.input_tokens is not None:
        parts.append(f"in {usage.input_tokens:,}")
    if usage.cached_input_tokens:
        parts.append(f"(cached {usage.cached_input_tokens:,})")
    if usage.output_tokens is not None:
        parts.append(f"out {usage.output_tokens:,}")
    return " ".join(parts)


def all_tokens(usage: Usage | None) -> int | None:
    """The sum of all buckets that are known; None if none is."""
    if usage is None:
        return None
    buckets = (
        usage.input_tokens,
        usage.cached_input_tokens,
        usage.cache_write_tokens,
        usage.output_tokens,
    )
    known = [count for count in buckets if count is not None]
    return sum(known) if known else None


def brief_count(number: int | None) -> str:
    """`940`, `12.3k`, `4.1M`, for columns."""
    if number is None:
        return ""
    if number < 1000:
        return str(number)
    return f"{number / 1000:.1f}k" if number < 999_950 else f"{number / 1e6:.1f}M"


def size(count: int) -> str:
    """`940 bytes`, `12.3 kB`, `200.0 MB`."""
    if count < 1000:
        return counted(count, "byte")
    for unit, factor in (("kB", 1e3), ("MB", 1e6)):
        if count < 999.95 * factor:
            return f"{count / factor:.1f} {unit}"
    return f"{count / 1e9:.1f} GB"


def counted(number: int, noun: str) -> str:
    """`1 line`, `3 lines`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def homely(path: str | None) -> str:
    """A path with the home directory as `~`."""
    home = str(Path.home())
    if path and (path == home or path.startswith(home + "/")) and home != "/":
        return "~" + path[len(home) :]
    return path or ""
