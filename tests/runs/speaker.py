"""A runtime that tells its usage step by step, keeps sessions, and waits where a test wants it.

As a program: `speaker.py DIR STEPS` prints STEPS steps of 100 tokens and one cent each, then waits
for DIR/go if DIR/wait exists. What it was given lands in DIR/given-N.json.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path


def say(**event: object) -> None:
    os.write(1, json.dumps(event).encode() + b"\n")


def main() -> None:
    place, steps, session = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    number = len(list(place.glob("given-*.json"))) + 1
    given = {"env": dict(os.environ), "prompt": sys.stdin.read(), "session": session}
    (place / f"given-{number}.json").write_text(json.dumps(given))
    say(session=session or f"s-{number}", text=os.environ.get("WORDS", "hello"))
    for step in range(1, steps + 1):
        say(step=step, text=f"step {step}")
    (place / "spoken").touch()
    while (place / "wait").exists() and not (place / "go").exists():
        time.sleep(0.005)
    say(done=True, text=f"done {number}")


if __name__ == "__main__":
    main()
