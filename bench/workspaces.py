"""A round trip after one changed file against rsync of the same; a worktree against git's own.

20,000 files and 1 GiB, as BENCH_FILES and BENCH_MIB say. rsync copies the tree alone, without the
repository, between two trees of its own; bytes are what crosses the connection there and back.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

from _measure import finish, report, scratch, seconds

from binderclip.workspaces.far import Far, start_locally
from binderclip.workspaces.git import Git
from binderclip.workspaces.record import Workspaces
from binderclip.workspaces.trip import Trip
from binderclip.workspaces.worktrees import Wanted, prepare

FILES = int(os.environ.get("BENCH_FILES", "20000"))
MIB = int(os.environ.get("BENCH_MIB", "1024"))
NOW = "2026-01-01T00:00:00.000Z"


def main() -> None:
    if shutil.which("rsync") is None:
        sys.exit("bench: rsync is missing; `script/services` installs it")
    with scratch() as directory:
        repository = _repository(directory / "project")
        _round_trip(directory, repository)
        _worktree(directory, repository)
    finish()


def _repository(path: Path) -> Path:
    rng, each = random.Random(0), (MIB << 20) // FILES
    for number in range(FILES):
        file = path / f"d{number % 200}" / f"f{number}"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(rng.randbytes(each))
    who = ("-c", "user.name=bench", "-c", "user.email=bench@localhost")
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "all")):
        subprocess.run(["git", "-C", str(path), *who, *words], check=True)
    return path


def _round_trip(directory: Path, repository: Path) -> None:
    far = Far(start_locally(sys.executable, directory))
    copy = directory / "far" / "copy"
    tree, mirror = directory / "tree", directory / "mirror"
    trip = Trip(Git(repository), "bench", far, str(copy), directory / "journal")
    first = _timed(trip.out)
    _rsync(repository, tree)
    rsync_first, _ = _rsync(tree, mirror)
    far.sent = far.received = 0
    for side in (repository, tree):
        (side / "d0" / "f0").write_bytes(b"changed here")
    rsync_out, bytes_out = _rsync(tree, mirror)
    ours_out = _timed(trip.out)
    for side in (copy, mirror):
        (side / "d1" / "f1").write_bytes(b"changed there")
    rsync_back, bytes_back = _rsync(mirror, tree)
    ours_back = _timed(trip.back)
    moved, ours, theirs = bytes_out + bytes_back, ours_out + ours_back, rsync_out + rsync_back
    sent = far.sent + far.received
    report("round trip, bytes against rsync", sent / moved, f"{sent} against {moved} B")
    report("round trip, time against rsync", ours / theirs, f"{ours:.2f} s against {theirs:.2f} s")
    detail = f"{first:.1f} s against {rsync_first:.1f} s; ours brings the history too"
    report("first way out, time against rsync", first / rsync_first, detail)


def _worktree(directory: Path, repository: Path) -> None:
    workspaces = Workspaces(directory / "worktrees")
    plain = str(directory / "plain")
    git = seconds(["git", "-C", str(repository), "worktree", "add", "-q", "--detach", plain])
    ours = _timed(lambda: prepare(workspaces, Wanted("bench", str(repository)), NOW))
    report("worktree", ours / git, f"{ours:.2f} s against {git:.2f} s for `git worktree add`")
    again = _timed(lambda: prepare(workspaces, Wanted("bench", str(repository)), NOW))
    report("worktree, used again", again / git, f"{again * 1000:.0f} ms")


def _timed(call: object) -> float:
    assert callable(call)
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def _rsync(source: Path, target: Path) -> tuple[float, int]:
    words = ["rsync", "-a", "--delete", "--stats", "--exclude=.git"]
    begin = time.perf_counter()
    done = subprocess.run(
        [*words, f"{source}/", f"{target}/"], check=True, capture_output=True, text=True
    )
    counts = re.findall(r"Total bytes (?:sent|received): ([\d,]+)", done.stdout)
    return time.perf_counter() - begin, sum(int(count.replace(",", "")) for count in counts)


main()
