"""The files are the truth: a database that is gone comes back the same (D2)."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from binderclip.contract.errors import StoreError
from binderclip.contract.ids import new_id
from binderclip.contract.run import RunOrder, RuntimeSession
from binderclip.store.database import Database
from binderclip.store.home import Home
from binderclip.store.rebuild import catch_up, rebuild
from binderclip.store.runfile import RunOutcome, write_order, write_outcome
from binderclip.store.runs import RunStore
from tests.store.fabricate import EXIT, STARTED, order, outcome, result, run_directory


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home").ensure()


def rows(home: Home) -> dict[str, list[Any]]:
    connection = sqlite3.connect(home.path / "binderclip.db")
    try:
        names = ("runs", "attempts", "state_changes", "usage", "sessions")
        return {n: connection.execute(f"select * from {n} order by 1, 2").fetchall() for n in names}
    finally:
        connection.close()


def rebuilt(home: Home) -> int:
    with Database.open(home) as database:
        return rebuild(home, RunStore(database))


def driven(home: Home, store: RunStore, asked: RunOrder, ended: RunOutcome) -> None:
    """What a driver does, in the files and in the database."""
    run_directory(home, asked, ended)
    store.create(asked)
    store.begin_attempt(asked.id, 1, STARTED, 77)
    store.end_attempt(asked.id, 1, EXIT)
    store.finish(asked.id, ended)


def blocked(home: Home, store: RunStore) -> None:
    """A run that never had an attempt."""
    asked = order(task_key="T-2")
    ended = outcome(
        state="failed",
        history=(),
        coverage=None,
        result=result(error_code="preflight_failed", usage=None, cost_usd=None),
    )
    write_order(home, asked)
    write_outcome(home, asked.id, ended)
    store.create(asked)
    store.finish(asked.id, ended)


def test_deleting_the_database_loses_nothing(home: Home) -> None:
    """D2: rows are rebuilt from run.json, meta.json, exit.json and outcome.json."""
    again = RuntimeSession(session_params={"sessionId": "s-1"})
    with Database.open(home) as database:
        store = RunStore(database)
        early, late = (new_id(1_772_366_400 + n) for n in (0, 5))
        # The run that began first ends last, so its session is the one that stays.
        driven(home, store, order(id=late), outcome())
        last = outcome(
            ended_at="2026-03-01T14:00:00.000Z", result=result(session_params={"sessionId": "s-9"})
        )
        driven(home, store, order(id=early, runtime=again), last)
        driven(home, store, order(id=new_id(1_767_268_800), prompt="grüß \udcff"), outcome())
        blocked(home, store)
    before = rows(home)
    assert [len(before[name]) for name in ("runs", "sessions")] == [4, 2]
    for file in home.path.glob("binderclip.db*"):
        file.unlink()
    assert rebuilt(home) == 4
    assert rows(home) == before
    assert rebuilt(home) == 4
    assert rows(home) == before


def test_an_unfinished_run_comes_back_as_running(home: Home) -> None:
    run_directory(home, asked := order())
    write_order(home, waiting := order())
    assert rebuilt(home) == 2
    with Database.open(home) as database:
        store = RunStore(database)
        assert (store.get(asked.id).status, store.get(asked.id).started_at) == ("running", STARTED)
        assert store.get(waiting.id).status == "queued"
        assert store.unfinished() == [asked.id, waiting.id]


def test_a_run_that_ended_before_its_rows_were_written_is_finished(home: Home) -> None:
    """D5: a crash between outcome.json and the transaction is repaired."""
    asked = order()
    with Database.open(home) as database:
        RunStore(database).create(asked)
    run_directory(home, asked, outcome())
    assert rebuilt(home) == 1
    with Database.open(home) as database:
        assert RunStore(database).get(asked.id).status == "succeeded"


def test_catching_up_takes_in_only_what_is_not_finished(home: Home) -> None:
    run_directory(home, done := order(), outcome())
    run_directory(home, running := order())
    with Database.open(home) as database:
        store = RunStore(database)
        assert catch_up(home, store) == 2
        assert store.finished() == {done.id}
        (home.run_dir(done.id) / "run.json").unlink()
        write_outcome(home, running.id, outcome())
        assert catch_up(home, store) == 1
        assert store.finished() == {done.id, running.id}
        assert catch_up(home, store) == 0


def with_one_damaged(home: Home, name: str, content: str) -> tuple[RunOrder, RunOrder, list[str]]:
    """Rebuild a home of two runs, one of which has a damaged file: both, and who was reported."""
    run_directory(home, bad := order(), outcome())
    (home.run_dir(bad.id) / name).write_text(content)
    run_directory(home, good := order(), outcome())
    reported: list[str] = []
    with Database.open(home) as database:
        rebuild(home, RunStore(database), lambda run_id, problem: reported.append(run_id))
    return bad, good, reported


@pytest.mark.parametrize(
    ("name", "content"), [("run.json", "{"), ("outcome.json", '{"state": "asleep"}')]
)
def test_a_damaged_run_is_reported_and_others_go_on(home: Home, name: str, content: str) -> None:
    bad, good, reported = with_one_damaged(home, name, content)
    assert reported == [bad.id]
    assert [row[0] for row in rows(home)["runs"]] == [good.id]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("meta.json", "[]"),
        ("meta.json", '{"child": 7}'),
        ("exit.json", '{"reason": "exited"}'),
        ("exit.json", "\0\0\0"),
    ],
)
def test_a_damaged_attempt_is_reported_and_its_run_kept(
    home: Home, name: str, content: str
) -> None:
    bad, good, reported = with_one_damaged(home, f"attempt-1/{name}", content)
    assert reported == [bad.id]
    assert [row[:2] for row in rows(home)["runs"]] == [
        (bad.id, "succeeded"),
        (good.id, "succeeded"),
    ]


def test_an_empty_directory_is_reported_in_the_log(
    home: Home, caplog: pytest.LogCaptureFixture
) -> None:
    home.make_run_dir(run_id := new_id())
    assert rebuilt(home) == 0
    assert run_id in caplog.text


def test_a_row_that_contradicts_its_file_is_reported(home: Home) -> None:
    run_directory(home, asked := order(), outcome())
    reported: list[Exception] = []
    with Database.open(home) as database:
        store = RunStore(database)
        store.create(asked)
        store.finish(asked.id, outcome(state="lost", history=()))
        rebuild(home, store, lambda _, problem: reported.append(problem))
        assert store.get(asked.id).status == "lost"
    assert [type(problem) for problem in reported] == [StoreError]


def test_attempts_without_meta_have_no_row(home: Home) -> None:
    write_order(home, asked := order())
    home.make_attempt_dir(asked.id, 1)
    assert rebuilt(home) == 1
    assert json.dumps(rows(home)["attempts"]) == "[]"
