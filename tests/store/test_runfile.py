"""run.json and outcome.json: what was asked and how it ended survives, whatever an agent said."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest

from binderclip.contract.entry import Coverage
from binderclip.contract.errors import RunNotFound, StoreError
from binderclip.contract.ids import new_id
from binderclip.contract.run import AgentRef, ExecutionResult, RunOrder, StateChange, Usage
from binderclip.store.home import Home
from binderclip.store.runfile import (
    AttemptUsage,
    RunOutcome,
    read_order,
    read_outcome,
    write_order,
    write_outcome,
)

NOW = "2026-03-01T12:00:00.000Z"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path).ensure()


def an_order(**changes: Any) -> RunOrder:
    agent = AgentRef(id="a1", company_id="c1", name="Ada", adapter_type="process")
    fields: dict[str, Any] = {"id": new_id(), "cwd": "/tmp", "created_at": NOW, **changes}
    return RunOrder(adapter_type="process", agent=agent, **fields)


def test_an_order_is_read_as_it_was_written(home: Home) -> None:
    order = an_order(prompt="Grüße", wake_reasons=("comment", "manual"), config={"command": "true"})
    write_order(home, order)
    assert read_order(home, order.id) == order
    path = home.run_dir(order.id) / "run.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert b'"adapterType":"process"' in path.read_bytes()


def test_an_outcome_is_read_as_it_was_written(home: Home) -> None:
    run_id = new_id()
    assert read_outcome(home, run_id) is None
    outcome = RunOutcome(
        state="failed",
        ended_at=NOW,
        result=ExecutionResult(exit_code=1, signal=None, timed_out=False, error_code="auth"),
        coverage=Coverage(lines=3, understood=2, unknown=1),
        session_reason="no earlier session",
        history=(StateChange(state="failed", at=NOW, reason="exit 1", actor="cli"),),
        usage=(AttemptUsage(attempt=1, usage=Usage(input_tokens=5), cost_usd=0.25),),
    )
    write_outcome(home, run_id, outcome)
    assert read_outcome(home, run_id) == outcome
    assert sorted(path.name for path in home.run_dir(run_id).iterdir()) == ["outcome.json"]


def test_a_run_that_never_had_an_attempt_has_an_outcome(home: Home) -> None:
    """E3: a blocked run says why."""
    result = ExecutionResult(
        exit_code=None, signal=None, timed_out=False, error_code="preflight_failed"
    )
    write_outcome(home, run_id := new_id(), RunOutcome(state="failed", ended_at=NOW, result=result))
    found = read_outcome(home, run_id)
    assert found is not None and found.result == result


def test_text_that_json_cannot_hold_is_kept_as_far_as_possible(home: Home) -> None:
    """A8: output is untrusted; a lone surrogate or endless nesting cannot stop a run's record."""
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    result = ExecutionResult(
        exit_code=0, signal=None, timed_out=False, summary="a\ud800b", result_json={"x": deep}
    )
    write_outcome(home, run_id := new_id(), RunOutcome(state="failed", ended_at=NOW, result=result))
    found = read_outcome(home, run_id)
    assert found is not None and found.result is not None
    assert found.result.summary == "a?b"
    assert "nested too deeply" in str(found.result.result_json)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"id": 5}', b"\xff\xfe"])
def test_a_damaged_order_names_its_file(home: Home, content: bytes) -> None:
    path = home.make_run_dir(run_id := new_id()) / "run.json"
    path.write_bytes(content)
    with pytest.raises(StoreError, match=r"run\.json is damaged") as caught:
        read_order(home, run_id)
    assert str(path) in caught.value.message


def test_a_run_without_an_order_is_not_found(home: Home) -> None:
    with pytest.raises(RunNotFound):
        read_order(home, new_id())


def test_a_file_that_cannot_be_written_leaves_the_old_one(home: Home) -> None:
    order = an_order()
    write_order(home, order)
    blocked = home.run_dir(order.id) / "outcome.json"
    blocked.mkdir()
    with pytest.raises(StoreError, match=r"outcome\.json cannot be written"):
        write_outcome(home, order.id, RunOutcome(state="lost", ended_at=NOW))
    assert sorted(path.name for path in blocked.parent.iterdir()) == ["outcome.json", "run.json"]
