"""Runs in the database: states, attempts, one idempotent finish, sessions."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from binderclip.contract.errors import RunNotFound, StoreError
from binderclip.contract.ids import new_id
from binderclip.contract.run import RuntimeSession, Usage
from binderclip.contract.session import HEARTBEAT, StoredSession
from binderclip.store.database import Database
from binderclip.store.home import Home
from binderclip.store.rows import dollars, nano_dollars
from binderclip.store.runfile import AttemptUsage
from binderclip.store.runs import RunStore
from tests.store.fabricate import (
    CREATED,
    ENDED,
    EXIT,
    STARTED,
    change,
    order,
    outcome,
    result,
)

LATER = "2026-03-01T13:00:00.000Z"
KEY = ("a1", "process", "T-1")


@pytest.fixture
def home(any_home: Home) -> Home:
    return any_home


@pytest.fixture
def store(home: Home) -> Iterator[RunStore]:
    with Database.open(home) as database:
        yield RunStore(database)


def rows(home: Home) -> dict[str, list[Any]]:
    """Everything in the database."""
    names = ("runs", "attempts", "state_changes", "usage", "sessions")
    with Database.open(home) as database, database.reading() as connection:
        found = {n: connection.execute(text(f"select * from {n} order by 1, 2")) for n in names}
        return {name: [tuple(row) for row in result] for name, result in found.items()}


def finished(store: RunStore, ended: Any = None, **changes: Any) -> str:
    asked = order(**changes)
    store.create(asked)
    store.finish(asked.id, ended or outcome())
    return asked.id


def resumed(session_id: str = "s-1") -> RuntimeSession:
    return RuntimeSession(session_params={"sessionId": session_id}, session_display_id=session_id)


def test_a_new_run_is_queued(store: RunStore, home: Home) -> None:
    asked = order(context={"issueId": "T-9"}, retry_of="earlier", session_reason="asked to")
    store.create(asked)
    view = store.get(asked.id)
    assert (view.status, view.prompt, view.wake_reasons) == ("queued", "go", ("manual",))
    assert (view.task_id, view.retry_of, view.session_reason) == ("T-9", "earlier", "asked to")
    assert (view.agent_id, view.agent_name, view.attempts) == ("a1", "Ada", 0)
    assert (view.usage, view.cost_usd, view.result) == (None, None, None)
    assert view.directory == str(home.run_dir(asked.id))
    (first,) = store.history(asked.id)
    assert (first.state, first.at, first.reason, first.actor) == (
        "queued",
        CREATED,
        "manual",
        "cli",
    )


def test_creating_a_run_again_changes_nothing(store: RunStore, home: Home) -> None:
    asked = order()
    store.create(asked)
    store.change_state(asked.id, change("running"))
    before = rows(home)
    store.create(asked)
    assert rows(home) == before


def test_each_change_of_state_is_a_row(store: RunStore) -> None:
    asked = order()
    store.create(asked, state="starting")
    store.change_state(asked.id, change("running", STARTED))
    store.change_state(asked.id, change("finalizing"))
    assert store.get(asked.id).status == "finalizing"
    assert [c.state for c in store.history(asked.id)] == ["starting", "running", "finalizing"]
    assert store.history(asked.id)[1] == change("running", STARTED)


def test_a_terminal_state_is_never_left(store: RunStore, home: Home) -> None:
    run_id = finished(store)
    before = rows(home)
    with pytest.raises(StoreError, match="succeeded and cannot become running"):
        store.change_state(run_id, change("running"))
    with pytest.raises(StoreError, match="succeeded and cannot become failed"):
        store.finish(run_id, outcome(state="failed"))
    store.change_state(run_id, change("succeeded"))
    assert rows(home) == before


def test_a_run_is_finished_in_a_terminal_state_only(store: RunStore) -> None:
    store.create(asked := order())
    with pytest.raises(StoreError, match="cannot be finished as running"):
        store.finish(asked.id, outcome(state="running"))


def test_attempts_are_noted_with_their_exit(store: RunStore, home: Home) -> None:
    store.create(asked := order())
    store.begin_attempt(asked.id, 1, STARTED, 77)
    store.end_attempt(asked.id, 1, {**EXIT, "exitCode": 1})
    store.begin_attempt(asked.id, 2, ENDED, 78)
    store.end_attempt(asked.id, 2, {**EXIT, "exitCode": None, "signal": "SIGKILL"})
    view = store.get(asked.id)
    assert (view.attempts, view.started_at) == (2, STARTED)
    first, second = rows(home)["attempts"]
    assert first[1:8] == (1, STARTED, ENDED, 77, "exited", 1, None)
    assert second[1:8] == (2, ENDED, ENDED, 78, "exited", None, "SIGKILL")


def test_a_finished_run_shows_its_result(store: RunStore) -> None:
    store.create(asked := order())
    store.begin_attempt(asked.id, 1, STARTED)
    store.finish(asked.id, outcome())
    view = store.get(asked.id)
    assert (view.status, view.ended_at, view.summary) == ("succeeded", ENDED, "done")
    assert (view.provider, view.model, view.session_id) == ("anthropic", "opus", "s-1")
    assert (view.usage, view.cost_usd) == (result().usage, 0.0123)
    assert (view.result, view.coverage) == (result(), outcome().coverage)
    assert view.session_reason == "no earlier session"
    assert store.history(asked.id) == list(outcome().history)


def test_finishing_twice_changes_nothing(store: RunStore, home: Home) -> None:
    """D5: a crash anywhere repeats finalize without doubling."""
    run_id = finished(store)
    before = rows(home)
    assert [len(found) for found in before.values()] == [1, 0, 3, 1, 1]
    store.finish(run_id, outcome())
    assert rows(home) == before


def test_a_run_without_a_history_still_says_how_it_ended(store: RunStore) -> None:
    ended = outcome(
        state="failed",
        history=(),
        result=result(error_code="preflight_failed", error_message="no command"),
    )
    run_id = finished(store, ended)
    last = store.history(run_id)[-1]
    assert (last.state, last.at, last.reason) == ("failed", ENDED, "no command")
    assert store.get(run_id).error_code == "preflight_failed"


def test_a_run_that_was_lost_without_a_result_can_be_finished(store: RunStore) -> None:
    run_id = finished(store, outcome(state="lost", result=None, coverage=None, history=()))
    assert store.get(run_id).status == "lost"
    assert [c.state for c in store.history(run_id)] == ["queued", "lost"]


def test_usage_is_kept_by_attempt(store: RunStore, home: Home) -> None:
    """D10: disjoint buckets per attempt; what was not told is NULL, not 0."""
    used = (
        AttemptUsage(attempt=1, usage=Usage(output_tokens=3)),
        AttemptUsage(attempt=2, cost_usd=0.1 + 0.2, basis="session_cumulative"),
        AttemptUsage(attempt=3),
    )
    run_id = finished(store, outcome(usage=used))
    assert [row[1:] for row in rows(home)["usage"]] == [
        (1, None, None, None, 3, None, "reported", None, None, None, None),
        (2, *[None] * 5, "unknown", "session_cumulative", None, None, 300_000_000),
    ]
    assert store.get(run_id).cost_usd == 0.0123


@pytest.mark.parametrize(
    ("told", "kept"),
    [
        (None, None),
        (0.0, 0),
        (0.1, 100_000_000),
        (1e-9, 1),
        (4e-10, 0),
        (123456.789, 123_456_789_000_000),
        (float("nan"), None),
        (float("inf"), None),
        (-1.0, None),
        (1e300, None),
    ],
)
def test_money_is_exact_or_unknown(told: float | None, kept: int | None) -> None:
    assert nano_dollars(told) == kept


def test_money_comes_back_as_it_was_told() -> None:
    assert [dollars(nano_dollars(n)) for n in (0.1, 0.0123, 7.25, 1e-6)] == [
        0.1,
        0.0123,
        7.25,
        1e-6,
    ]


def test_absurd_output_of_an_agent_cannot_stop_its_record(store: RunStore) -> None:
    """A8: output is untrusted."""
    odd = result(
        usage=Usage(input_tokens=10**30, output_tokens=-5),
        summary="nul \0 and \ud800",
        error_message="\udc80",
        session_params={"sessionId": "\ud800"},
    )
    run_id = finished(store, outcome(result=odd), prompt="\udcff")
    view = store.get(run_id)
    assert (view.summary, view.error_message, view.prompt) == ("nul \ufffd and ?", "?", "?")
    assert view.result is not None and view.result.summary == "nul \0 and ?"


def test_an_unknown_run_is_not_found(store: RunStore) -> None:
    missing = new_id()
    for ask in (
        lambda: store.get(missing),
        lambda: store.history(missing),
        lambda: store.change_state(missing, change("running")),
        lambda: store.begin_attempt(missing, 1, STARTED),
        lambda: store.end_attempt(missing, 1, EXIT),
        lambda: store.finish(missing, outcome()),
    ):
        with pytest.raises(RunNotFound, match=missing):
            ask()


def test_runs_are_listed_newest_first_and_page_by_page(store: RunStore) -> None:
    asked = [order(id=new_id(1_772_366_400 + n)) for n in range(5)]
    for each in asked:
        store.create(each)
    ids = [each.id for each in reversed(asked)]
    assert [view.id for view in store.list(limit=2)] == ids[:2]
    assert [view.id for view in store.list(limit=10, before=ids[1])] == ids[2:]


def test_listings_are_filtered_and_leave_results_out(store: RunStore) -> None:
    done = finished(store)
    store.create(other := order(adapter_type="codex_local"))
    (view,) = store.list(10, status="succeeded")
    assert (view.id, view.result, view.summary, view.cost_usd) == (done, None, "done", 0.0123)
    assert [v.id for v in store.list(10, adapter_type="codex_local")] == [other.id]
    assert store.list(10, status="failed", adapter_type="process") == []


def test_unfinished_runs_are_named_oldest_first(store: RunStore) -> None:
    waiting = [order(id=new_id(1_772_366_400 + n)) for n in (2, 1)]
    for each in waiting:
        store.create(each)
    finished(store)
    assert store.unfinished() == [waiting[1].id, waiting[0].id]


def test_a_finished_run_leaves_its_session(store: RunStore) -> None:
    """S1: sessions are stored per agent, adapter type and task."""
    run_id = finished(store)
    assert store.session(*KEY) == StoredSession(
        agent_id="a1",
        adapter_type="process",
        task_key="T-1",
        params={"sessionId": "s-1"},
        display_id="s-1",
        cwd="/tmp",
        last_run_id=run_id,
        runs=1,
        tokens=22,
        created_at=ENDED,
        updated_at=ENDED,
    )


def test_a_wake_without_a_task_has_the_session_of_the_heartbeat(store: RunStore) -> None:
    """S1: `heartbeat` for a wake without a task."""
    run_id = finished(store, task_key=None)
    assert store.session("a1", "process", HEARTBEAT) is not None
    assert store.get(run_id).task_id is None


def test_a_resumed_session_counts_runs_and_tokens(store: RunStore) -> None:
    """S5: rotation looks at runs, tokens and age."""
    finished(store)
    again = result(session_params={"sessionId": "s-2"}, session_display_id="s-2")
    finished(store, outcome(ended_at=LATER, result=again), runtime=resumed())
    kept = store.session(*KEY)
    assert kept is not None
    assert (kept.params, kept.runs, kept.tokens) == ({"sessionId": "s-2"}, 2, 44)
    assert (kept.created_at, kept.updated_at) == (ENDED, LATER)


def test_a_cumulative_report_is_not_added_up(store: RunStore) -> None:
    finished(store)
    told = result(usage_basis="session_cumulative", usage=Usage(output_tokens=30))
    finished(store, outcome(ended_at=LATER, result=told), runtime=resumed())
    kept = store.session(*KEY)
    assert kept is not None and kept.tokens == 30


def test_a_fresh_session_starts_its_counts_afresh(store: RunStore) -> None:
    finished(store)
    finished(store, outcome(ended_at=LATER))
    kept = store.session(*KEY)
    assert kept is not None
    assert (kept.runs, kept.tokens, kept.created_at) == (1, 22, LATER)


def test_without_new_params_the_earlier_session_stays(store: RunStore) -> None:
    """S1: params in the result, those; else the earlier one stays."""
    finished(store)
    quiet = result(session_params=None, session_display_id=None, usage=None)
    finished(store, outcome(ended_at=LATER, result=quiet))
    kept = store.session(*KEY)
    assert kept is not None and (kept.runs, kept.updated_at) == (1, ENDED)
    finished(store, outcome(ended_at=LATER, result=quiet), runtime=resumed())
    kept = store.session(*KEY)
    assert kept is not None and (kept.display_id, kept.runs) == ("s-1", 2)


def test_a_result_may_clear_the_session(store: RunStore) -> None:
    """S1: `clearSession` gives none."""
    finished(store)
    cleared = result(clear_session=True, session_params=None)
    finished(store, outcome(ended_at=LATER, result=cleared))
    assert store.session(*KEY) is None


def test_a_late_recovery_does_not_bring_an_old_session_back(store: RunStore) -> None:
    finished(store, outcome(ended_at=LATER, result=result(session_params={"sessionId": "new"})))
    finished(store)
    kept = store.session(*KEY)
    assert kept is not None and kept.params == {"sessionId": "new"}


def test_sessions_can_be_saved_listed_and_cleared_by_hand(store: RunStore) -> None:
    """S5: users see sessions and reset one by hand."""
    finished(store)
    mine = StoredSession(
        agent_id="a2", adapter_type="x", task_key="t", params={"k": [1]}, updated_at=LATER
    )
    store.save_session(mine)
    store.save_session(mine)
    assert [session.agent_id for session in store.sessions()] == ["a2", "a1"]
    assert store.session("a2", "x", "t") == mine
    assert store.clear_session("a2", "x", "t") is True
    assert store.clear_session("a2", "x", "t") is False
    assert store.session("a2", "x", "t") is None


WRITER = """
import sys
from pathlib import Path
from binderclip.contract.ids import new_id
from binderclip.store.database import Database
from binderclip.store.home import Home
from binderclip.store.runs import RunStore
from tests.store.fabricate import STARTED, EXIT, change, order, outcome

with Database.open(Home(Path(sys.argv[1]), sys.argv[3])) as database:
    store = RunStore(database)
    for n in range(15):
        asked = order(task_key=f"T-{n}", prompt=sys.argv[2])
        store.create(asked)
        store.change_state(asked.id, change("running", STARTED))
        store.begin_attempt(asked.id, 1, STARTED)
        store.end_attempt(asked.id, 1, EXIT)
        store.finish(asked.id, outcome())
        assert store.get(asked.id).status == "succeeded"
"""


def test_eight_processes_write_at_once_and_nothing_is_lost(home: Home) -> None:
    """D5: writers wait for each other, none sees a locked database."""
    root = Path(__file__).resolve().parents[2]
    children = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(home.path), str(n), home.database_url], cwd=root
        )
        for n in range(8)
    ]
    assert [child.wait() for child in children] == [0] * 8
    with Database.open(home) as database:
        found = RunStore(database).list(limit=1000)
    assert len(found) == 8 * 15
    assert {view.status for view in found} == {"succeeded"}
    kept = rows(home)
    assert [len(kept[name]) for name in kept] == [120, 120, 360, 120, 15]
