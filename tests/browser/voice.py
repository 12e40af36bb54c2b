"""The agent of `teller`: prints a story's lines; some lines tell it what to do instead.

`{"wait": s}` rests, `{"until": path}` rests until a file exists, `{"err": text}` goes to stderr,
`{"print": text}` is printed as it stands, `{"exit": n}` ends.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path


def tell(line: str) -> None:
    if not line.startswith(('{"wait"', '{"until"', '{"err"', '{"print"', '{"exit"')):
        sys.stdout.write(line)
        return
    ((verb, value),) = json.loads(line).items()
    if verb == "print":
        sys.stdout.write(f"{value}\n")
        return
    sys.stdout.flush()
    if verb == "wait":
        time.sleep(value)
    elif verb == "err":
        sys.stderr.write(f"{value}\n")
        sys.stderr.flush()
    elif verb == "until":
        while not Path(value).exists():
            time.sleep(0.02)
    else:
        raise SystemExit(value)


with Path(sys.argv[1]).open(encoding="utf-8") as story:
    for line in story:
        tell(line)
