"""200,000 lines of 200 bytes through `binderclip run`, against the same program into a file.

The program works like an agent CLI: it makes one JSON event at a time, with an id and the time,
and flushes each line.
Both sides end when the last byte is stored; ours has parsed and printed every line as well.
"""

from __future__ import annotations

import sys
from pathlib import Path

from _measure import BINDERCLIP, alternating, finish, report, scratch, seconds

LINES = 200_000
PROGRAM = """
import datetime, json, sys, uuid
write, flush = sys.stdout.write, sys.stdout.flush
for n in range(int(sys.argv[1])):
    event = {
        "type": "message",
        "n": n,
        "uuid": str(uuid.uuid4()),
        "timestamp": datetime.datetime.now().isoformat(),
        "content": f"line {n} ".ljust(60, "x"),
    }
    write(json.dumps(event).ljust(199) + "\\n")
    flush()
"""


def main() -> None:
    with scratch() as directory:
        program = directory / "agent.py"
        program.write_text(PROGRAM)
        words = [sys.executable, "-S", str(program), str(LINES)]
        bare, ours = alternating(
            5, lambda: _bare(words, directory), lambda: _ours(words, directory)
        )
        detail = f"{ours:.2f} s against {bare:.2f} s, {LINES} lines"
        report("capture, stored, parsed, rendered", ours / bare, detail, limit=1.25)
    finish()


def _bare(words: list[str], directory: Path) -> float:
    with (directory / "bare.log").open("wb") as log:
        return seconds(words, stdout=log)


def _ours(words: list[str], directory: Path) -> float:
    with (directory / "ours.txt").open("wb") as shown:
        took = seconds([BINDERCLIP, "run", "--adapter", "process", "--", *words], stdout=shown)
    printed = sum(1 for line in (directory / "ours.txt").open("rb") if b'"n": ' in line)
    assert printed == LINES, f"{printed} of {LINES} lines were rendered"
    return took


main()
