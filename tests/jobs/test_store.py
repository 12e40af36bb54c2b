"""Jobs on disk: grouped, added up, made again alike, readable after any crash (N4)."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import msgspec
import pytest

from binderclip.contract.errors import BinderclipError, NotFound, StoreError
from binderclip.contract.ids import derived_id
from binderclip.contract.run import RunOrder
from binderclip.jobs import read_checkpoint, read_event
from binderclip.jobs.grouping import job_of
from binderclip.jobs.store import JobStore
from binderclip.plugins.registry import load_adapter
from binderclip.runs.retell import retell
from binderclip.sdk.testing.fixtures import cases_of
from binderclip.store.home import Home
from binderclip.store.runfile import write_order
from tests.jobs.recorded import order_for, recorded_run, spoken_run

CLAUDE = load_adapter("claude_local")
CASES = {case.name: case for case in cases_of(CLAUDE)}


def refuse(run_id: str, problem: Exception) -> None:
    raise AssertionError(f"{run_id}: {problem}") from problem


def content(store: JobStore) -> dict[str, bytes]:
    files = (path for path in store.path.rglob("*") if path.is_file())
    return {str(path.relative_to(store.path)): path.read_bytes() for path in files}


def chain(home: Home) -> list[RunOrder]:
    """Two runs that continue a first one, and one of another job."""
    first = recorded_run(home, CLAUDE, CASES["resume_1_first"])
    second = recorded_run(home, CLAUDE, CASES["resume_2_second"], continues=first.id)
    third = recorded_run(home, CLAUDE, CASES["error_429"], continues=first.id)
    other = recorded_run(home, CLAUDE, CASES["plain"])
    return [first, second, third, other]


def test_runs_that_continue_each_other_are_one_job_and_add_up(home: Home) -> None:
    orders = chain(home)
    store = JobStore(home)
    assert store.catch_up(refuse) == 4
    other, job = store.list()
    assert other.runs == (orders[3].id,)
    assert job.runs == tuple(order.id for order in orders[:3])
    runs = store.runs(job.id)
    assert job.total_steps == sum(run.steps for run in runs)
    assert job.usage.total_tokens == sum(run.usage.total_tokens for run in runs) > 0
    assert (job.status, other.status) == ("stoppedByError", "completed")
    (root,) = store.tree(job.id)
    assert [node.run.id for node in root.children] == [orders[1].id, orders[2].id]


def test_catching_up_takes_in_only_what_is_new(home: Home) -> None:
    store = JobStore(home)
    spoken_run(home)
    assert (store.catch_up(refuse), store.catch_up(refuse)) == (1, 0)


def test_a_rebuild_writes_the_same_bytes(home: Home) -> None:
    """D2: everything in a job is a function of the runs' files."""
    chain(home)
    store = JobStore(home)
    store.catch_up(refuse)
    before = content(store)
    assert len(before) == 2 + 4 * 3
    assert store.rebuild(refuse) == 4
    assert content(store) == before


def test_a_rebuild_needs_no_transcript(home: Home) -> None:
    """D2: a transcript is a cache; the log is enough."""
    orders = chain(home)
    store = JobStore(home, lambda run_id: retell(home, run_id, load_adapter))
    store.catch_up(refuse)
    before = content(store)
    for order in orders:
        (home.attempt_dir(order.id, 1) / "transcript.jsonl").unlink()
    with pytest.raises(StoreError, match="no transcript"):
        JobStore(home).record(orders[0].id)
    store.rebuild(refuse)
    assert content(store) == before


DYING = """
import os, sys
from pathlib import Path
from binderclip.store.home import Home
from binderclip.jobs.store import JobStore

left = int(sys.argv[3])

def dies(call):
    def wrapped(*given, **named):
        global left
        left -= 1
        if left < 0:
            os._exit(9)
        return call(*given, **named)
    return wrapped

for name in ("open", "write", "rename", "unlink"):
    setattr(os, name, dies(getattr(os, name)))
Path.rename = dies(Path.rename)
JobStore(Home(Path(sys.argv[1]))).record(sys.argv[2])
"""


def test_a_crash_at_any_point_leaves_jobs_that_load_and_a_rebuild_that_mends(home: Home) -> None:
    """N4: a writer dies at each of its steps in turn."""
    first = recorded_run(home, CLAUDE, CASES["resume_1_first"])
    second = recorded_run(home, CLAUDE, CASES["resume_2_second"], continues=first.id)
    store = JobStore(home)
    store.catch_up(refuse)
    whole = content(store)
    _forget(store, second)
    store.record(first.id)
    for step in range(200):
        argv = [sys.executable, "-c", DYING, str(home.path), second.id, str(step)]
        code = subprocess.run(argv, check=False, timeout=60).returncode
        (job,) = JobStore(home).list()
        assert set(job.runs) <= {first.id, second.id}
        assert JobStore(home).tree(job.id)
        for run in JobStore(home).runs(job.id):
            assert all(map(read_event, JobStore(home).events(run.id)))
            assert len(JobStore(home).checkpoints(run.id)) == 1
        if code == 0:
            break
        assert code == 9
        if step % 4 == 0:
            JobStore(home).rebuild(refuse)
            assert content(store) == whole
            _forget(store, second)
            store.record(first.id)
    assert code == 0 and step > 5
    assert content(store) == whole


def _forget(store: JobStore, order: RunOrder) -> None:
    for path in sorted(store.path.rglob(f"*{order.id}*"), reverse=True):
        for file in path.iterdir() if path.is_dir() else ():
            file.unlink()
        path.rmdir() if path.is_dir() else path.unlink()


def _record(path: str, run_id: str) -> None:
    JobStore(Home(Path(path))).record(run_id)


def test_writers_of_one_job_do_not_lose_each_other_s_runs(home: Home) -> None:
    first = spoken_run(home)
    orders = [first, *(spoken_run(home, continues=first.id) for _ in range(7))]
    with ProcessPoolExecutor(4, mp_context=get_context("spawn")) as pool:
        ids = [order.id for order in orders]
        list(pool.map(_record, [str(home.path)] * len(ids), ids))
    (job,) = JobStore(home).list()
    assert job.runs == tuple(ids)
    written = (JobStore(home).path / job.id / "job.json").read_bytes()
    assert all(id.encode() in written for id in ids)


def test_checkpoints_are_found_by_the_end_of_a_run_s_id(home: Home) -> None:
    order = spoken_run(home)
    store = JobStore(home)
    store.record(order.id)
    found = store.find_checkpoint(f"{order.id[-8:]}-1")
    assert found.id == f"{order.id}-1"
    path = store.path / found.job_id / "checkpoints" / f"{found.id}.json"
    assert read_checkpoint(path.read_bytes()).value == found
    assert oct(path.stat().st_mode & 0o777) == "0o600"
    for wrong in (f"{order.id[-8:]}-2", "nonsense", "../../etc-1"):
        with pytest.raises(BinderclipError):
            store.find_checkpoint(wrong)


def test_a_job_is_found_by_its_last_characters_only_if_it_is_the_only_one(home: Home) -> None:
    order = spoken_run(home)
    store = JobStore(home)
    job = store.record(order.id)
    assert store.find(job.id[-8:]) == job.id != order.id
    for wrong in ("x", "ffffffffffff", "../.."):
        with pytest.raises(NotFound):
            store.find(wrong)


def test_the_runs_of_a_task_are_one_job_and_a_heartbeat_s_are_not(home: Home) -> None:
    task = derived_id("test", "task")
    orders = [
        order_for(CLAUDE, scheduled=True, task_key=task),
        order_for(CLAUDE, scheduled=True, task_key=task),
        order_for(CLAUDE, scheduled=True, task_key="heartbeat"),
        order_for(CLAUDE, scheduled=True, task_key="heartbeat"),
        order_for(CLAUDE, task_key="cwd:/tmp"),
    ]
    one, same, *others = [job_of(home, order) for order in orders]
    assert one == same
    assert len({one, *others}) == 4


def test_a_retry_joins_the_job_of_what_it_tries_again(home: Home) -> None:
    first = order_for(CLAUDE)
    write_order(home, first)
    again = order_for(CLAUDE, retry_of=first.id)
    assert job_of(home, again) == job_of(home, first)


def test_a_job_s_name_never_leads_outside_and_circles_end(home: Home) -> None:
    """A8: an order is a file, and a file may say anything."""
    odd = order_for(CLAUDE, job_id="../../escape")
    assert JobStore(home).get_dir(job_of(home, odd)).parent == JobStore(home).path
    first = order_for(CLAUDE)
    second = order_for(CLAUDE, continues=first.id)
    write_order(home, msgspec.structs.replace(first, continues=second.id))
    write_order(home, second)
    assert job_of(home, second)
    with pytest.raises(NotFound):
        JobStore(home).get_dir("../../escape")


def test_what_other_users_may_not_read_stays_so(home: Home) -> None:
    order = spoken_run(home)
    JobStore(home).record(order.id)
    assert {path.stat().st_mode & 0o077 for path in JobStore(home).path.rglob("*")} == {0}
