"""What the benchmarks share: a scratch home, timed processes, medians, and the printed line."""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

BINDERCLIP = str(Path(sys.executable).with_name("binderclip"))


@contextmanager
def scratch() -> Iterator[Path]:
    """A directory with an empty data directory in it, removed afterwards."""
    directory = Path(tempfile.mkdtemp(prefix="binderclip-bench-"))
    os.environ["BINDERCLIP_HOME"] = str(directory / "home")
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def seconds(words: Sequence[str], **options: object) -> float:
    """How long a command takes; one that fails ends the benchmark."""
    begin = time.perf_counter()
    subprocess.run(words, check=True, **options)  # type: ignore[call-overload]
    return time.perf_counter() - begin


def alternating(rounds: int, *cases: Callable[[], float]) -> list[float]:
    """The median of each case, the cases taking turns so that noise hits all alike."""
    taken: list[list[float]] = [[] for _ in cases]
    for _ in range(rounds):
        for case, times in zip(cases, taken, strict=True):
            times.append(case())
    return [statistics.median(times) for times in taken]


def report(what: str, ratio: float, detail: str, limit: float | None = None) -> None:
    """One line a figure; a ratio over its limit is marked and fails the benchmark at the end."""
    verdict = "" if limit is None else f" (limit {limit:g}{', OVER' if ratio > limit else ''})"
    print(f"  {what}: {ratio:.2f}{verdict}   {detail}", flush=True)
    if limit is not None and ratio > limit:
        _over.append(what)


def finish() -> None:
    """End with an error if a limit was passed."""
    if _over:
        sys.exit(f"over the limit: {', '.join(_over)}")


_over: list[str] = []
