"""How soon things start: `run` to the child's first instruction, `--help`, `runs`."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from _measure import BINDERCLIP, alternating, report, scratch, seconds

CHILD = "import sys, time; open(sys.argv[1], 'w').write(repr(time.time()))"


def main() -> None:
    with scratch() as directory:
        python = [sys.executable, "-c", "pass"]
        bare, spawn, helped, listed = alternating(
            9,
            lambda: seconds(python),
            lambda: _to_spawn(directory),
            lambda: seconds([BINDERCLIP, "--help"], stdout=subprocess.DEVNULL),
            lambda: seconds([BINDERCLIP, "runs"], stdout=subprocess.DEVNULL),
        )
        against = f"against {bare * 1000:.0f} ms for `python -c pass`"
        report("run: start to spawn", spawn / bare, f"{spawn * 1000:.0f} ms {against}")
        report("--help", helped / bare, f"{helped * 1000:.0f} ms {against}")
        report("runs", listed / bare, f"{listed * 1000:.0f} ms {against}")


def _to_spawn(directory: Path) -> float:
    mark = directory / "mark"
    child = [sys.executable, "-S", "-c", CHILD, str(mark)]
    begin = time.time()
    words = [BINDERCLIP, "run", "--adapter", "process", "--", *child]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    return float(mark.read_text()) - begin


main()
