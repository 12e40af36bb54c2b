"""Peak memory of host and supervisor for 10 MB and for 1 GB of output: it must not grow."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from _measure import BINDERCLIP, finish, report, scratch

MEGABYTE = 1_000_000
LIMIT_MB = 20
PROGRAM = """
import sys
block = (b"x" * 199 + b"\\n") * 5000
for _ in range(int(sys.argv[1])):
    sys.stdout.buffer.write(block)
"""


def main() -> None:
    with scratch() as directory:
        program = directory / "flood.py"
        program.write_text(PROGRAM)
        small, large = (_peaks(program, size) for size in (10, 1000))
        for name in ("host", "supervisor"):
            growth = (large[name] - small[name]) / 1024
            detail = f"{small[name] / 1024:.0f} MB for 10 MB, {large[name] / 1024:.0f} MB for 1 GB"
            report(f"{name}: growth in MB", growth, detail, limit=LIMIT_MB)
    finish()


def _peaks(program: Path, megabytes: int) -> dict[str, int]:
    """The peak resident size in KiB of both processes while so much is printed."""
    words = [BINDERCLIP, "run", "--adapter", "process", "--", sys.executable, str(program)]
    host = subprocess.Popen([*words, str(megabytes)], stdout=subprocess.DEVNULL)
    peaks = {"host": 0, "supervisor": 0}
    while host.poll() is None:
        peaks["host"] = max(peaks["host"], _peak(host.pid))
        for pid in _supervisors():
            peaks["supervisor"] = max(peaks["supervisor"], _peak(pid))
        time.sleep(0.01)
    assert host.returncode == 0 and all(peaks.values()), (host.returncode, peaks)
    return peaks


def _supervisors() -> list[int]:
    """Supervisors of this benchmark, by the name they give themselves and what they hold open."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and _read(entry / "comm").startswith("binderclip-sup"):
            opened = _opened(entry / "fd")
            if any(path.startswith(os.environ["BINDERCLIP_HOME"]) for path in opened):
                found.append(int(entry.name))
    return found


def _opened(directory: Path) -> list[str]:
    try:
        return [str(entry.readlink()) for entry in directory.iterdir()]
    except OSError:
        return []


def _peak(pid: int) -> int:
    for line in _read(Path(f"/proc/{pid}/status")).splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1])
    return 0


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


main()
