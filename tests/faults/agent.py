"""An agent that keeps its own account: what it wrote, and how often it was started.

`agent.py DIR LINES GATES` prints LINES numbered lines, waits for DIR/go1, prints LINES more, waits
for DIR/go2, and so on; then it says that it is done. Every line also goes into DIR/witness.
"""

import os
import sys
import time
from pathlib import Path


def main() -> None:
    place, lines, gates = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    with (place / "starts").open("a") as starts:
        starts.write(f"{os.getpid()}\n")
    with (place / "witness").open("ab", buffering=0) as witness:
        number = 0
        for gate in range(gates + 1):
            for _ in range(lines):
                number += 1
                say(witness, f'{{"n": {number}, "text": "zażółć {"x" * (number % 50)}"}}\n')
            if gate < gates:
                (place / f"at{gate + 1}").touch()
                while not (place / f"go{gate + 1}").exists():
                    time.sleep(0.005)
        say(witness, '{"done": true}\n')
    (place / "finished").touch()


def say(witness, text: str) -> None:
    data = text.encode()
    os.write(1, data)
    witness.write(data)


main()
