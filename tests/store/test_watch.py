"""Waiting for files: no change is missed, with notices of the kernel and without."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from binderclip.store.watch import Watcher, shared

LONG = 20.0


@pytest.fixture(params=[True, False], ids=["notices", "looking"])
def watcher(request: pytest.FixtureRequest) -> Iterator[Watcher]:
    watcher = Watcher(notices=request.param)
    yield watcher
    watcher.close()


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def append(path: Path, data: bytes = b"x") -> None:
    with path.open("ab") as file:
        file.write(data)


def test_nothing_changed_is_false_after_the_timeout(watcher: Watcher, tmp_path: Path) -> None:
    with watcher.watch(tmp_path) as watch:
        assert watch.wait(0.01) is False


def test_a_write_ends_the_wait_once(watcher: Watcher, tmp_path: Path) -> None:
    index = tmp_path / "index"
    append(index)
    with watcher.watch(index) as watch:
        append(index)
        assert watch.wait(LONG) is True
        assert watch.wait(0.1) is False


def test_a_change_before_the_wait_is_not_missed(watcher: Watcher, tmp_path: Path) -> None:
    index = tmp_path / "index"
    append(index)
    with watcher.watch(index) as watch:
        for _ in range(20):
            append(index)
            assert watch.wait(LONG)


def test_a_waiting_thread_is_woken(watcher: Watcher, tmp_path: Path) -> None:
    index = tmp_path / "index"
    append(index)
    with watcher.watch(index) as watch:
        answers: list[bool] = []
        thread = threading.Thread(target=lambda: answers.append(watch.wait(LONG)))
        thread.start()
        append(index)
        thread.join()
        assert answers == [True]


def test_a_file_may_appear_later_and_is_then_followed(watcher: Watcher, tmp_path: Path) -> None:
    index = tmp_path / "index"
    with watcher.watch(index) as watch:
        assert watch.wait(0.05) is False
        append(index)
        assert watch.wait(LONG)
        while watch.wait(0.1):
            pass
        append(index)
        assert watch.wait(LONG)


def test_a_replaced_file_is_watched_on_under_its_name(watcher: Watcher, tmp_path: Path) -> None:
    path, beside = tmp_path / "transcript.jsonl", tmp_path / "next"
    append(path)
    append(beside)
    with watcher.watch(path) as watch:
        beside.rename(path)
        assert watch.wait(LONG)
        while watch.wait(0.1):
            pass
        append(path)
        assert watch.wait(LONG)


def test_a_directory_tells_of_entries_and_writes(watcher: Watcher, tmp_path: Path) -> None:
    with watcher.watch(tmp_path) as watch:
        append(tmp_path / "exit.json.tmp")
        assert watch.wait(LONG)
        while watch.wait(0.1):
            pass
        (tmp_path / "exit.json.tmp").rename(tmp_path / "exit.json")
        assert watch.wait(LONG)
        while watch.wait(0.1):
            pass
        append(tmp_path / "exit.json")
        assert watch.wait(LONG)


def test_other_files_of_the_directory_do_not_wake(watcher: Watcher, tmp_path: Path) -> None:
    append(tmp_path / "index")
    append(tmp_path / "stdout.log")
    with watcher.watch(tmp_path / "index") as watch:
        append(tmp_path / "stdout.log")
        append(tmp_path / "new.log")
        assert watch.wait(0.1) is False


def test_watches_of_the_same_file_are_independent(watcher: Watcher, tmp_path: Path) -> None:
    index = tmp_path / "index"
    append(index)
    first, second = watcher.watch(index, tmp_path), watcher.watch(index)
    append(index)
    assert first.wait(LONG) and second.wait(LONG)
    first.close()
    while second.wait(0.1):
        pass
    append(index)
    assert second.wait(LONG)
    second.close()


def test_a_path_in_a_missing_directory_is_looked_for(watcher: Watcher, tmp_path: Path) -> None:
    path = tmp_path / "later" / "index"
    with watcher.watch(path) as watch:
        assert watch.wait(0.01) is False
        path.parent.mkdir()
        append(path)
        assert watch.wait(LONG)


def test_many_watches_share_one_descriptor(tmp_path: Path) -> None:
    """The kernel allows a user 128 inotify instances."""
    first = shared().watch(tmp_path)
    before = open_descriptors()
    watches = [shared().watch(tmp_path / f"file{n}", tmp_path) for n in range(300)]
    assert open_descriptors() == before
    append(tmp_path / "file7")
    assert all(watch.wait(LONG) for watch in [first, *watches])
    for watch in [first, *watches]:
        watch.close()


FORKS = """
import os, sys
from pathlib import Path
from binderclip.store.watch import shared

folder = Path(sys.argv[1])
parents = shared().watch(folder)
child = os.fork()
with shared().watch(folder) as watch:
    (folder / str(child)).write_text("")
    heard = watch.wait(20) and (child == 0 or parents.wait(20))
if child == 0:
    os._exit(0 if heard else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) or not heard)
"""


def test_a_forked_child_gets_a_watcher_of_its_own(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "ignore", "-c", FORKS, str(tmp_path)]
    assert subprocess.run(command, check=False).returncode == 0


def test_a_watch_that_gets_no_more_notices_looks_for_itself(tmp_path: Path) -> None:
    index = tmp_path / "index"
    append(index)
    with shared().watch(index) as watch:
        watch.look()
        assert watch.wait(LONG)
        assert watch.wait(0.01) is False
        watch.close()
        append(index)
        assert watch.wait(LONG)
