"""CPU that a supervisor uses while its child is silent, as a share of a core."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

from _measure import BINDERCLIP, finish, report, scratch

WATCHED_SECONDS = 30
LIMIT_PERCENT = 0.1


def main() -> None:
    with scratch() as directory:
        words = [BINDERCLIP, "run", "--detach", "--adapter", "process", "--", "sleep", "600"]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
        (meta,) = directory.glob("home/runs/*/*/attempt-1/meta.json")
        pid = _supervisor(meta)
        begin = _cpu_seconds(pid)
        time.sleep(WATCHED_SECONDS)
        used = _cpu_seconds(pid) - begin
        subprocess.run([BINDERCLIP, "runs", "cancel", meta.parent.parent.name], check=True)
        percent = 100 * used / WATCHED_SECONDS
        detail = f"{used:.2f} CPU s in {WATCHED_SECONDS} s"
        report("idle supervisor, percent of a core", percent, detail, limit=LIMIT_PERCENT)
    finish()


def _supervisor(meta: Path) -> int:
    import json

    return int(json.loads(meta.read_text())["supervisor"]["pid"])


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


main()
