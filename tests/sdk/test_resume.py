"""S1-S5: when a session is resumed, and which one is kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from binderclip.contract.run import ExecutionResult
from binderclip.contract.session import SessionManagement, StoredSession
from binderclip.sdk import SessionParams, safe_session_id
from binderclip.sdk.resume import decide, next_session

NOW = "2026-01-02T00:00:00.000Z"
DAY_BEFORE = "2026-01-01T00:00:00.000Z"
RUN = "0190c0de-0000-7000-8000-0000deadbeef"


def stored(**fields: Any) -> StoredSession:
    usual: dict[str, Any] = {
        "agent_id": "a",
        "adapter_type": "t",
        "task_key": "heartbeat",
        "params": {"sessionId": "s-1"},
        "display_id": "s-1",
        "cwd": "/w",
        "created_at": DAY_BEFORE,
    }
    return StoredSession(**{**usual, **fields})


def result(**fields: Any) -> ExecutionResult:
    return ExecutionResult(exit_code=0, signal=None, timed_out=False, **fields)


def test_without_a_session_a_run_is_fresh() -> None:
    decision = decide(None, cwd="/w", now=NOW)
    assert (decision.action, decision.reason) == ("fresh", "no earlier session")
    assert decision.params is None


def test_the_stored_session_is_resumed_and_the_run_says_of_whom() -> None:
    """S1, S5: reuse is the default, with the reason that people are shown."""
    decision = decide(stored(last_run_id=RUN), cwd="/w", now=NOW)
    assert (decision.action, decision.params) == ("resume", {"sessionId": "s-1"})
    assert (decision.reason, decision.display_id) == (
        "continues the session of run deadbeef",
        "s-1",
    )


def test_another_directory_is_fresh_and_named() -> None:
    """S3: a session made in another cwd is not resumed; the run says so."""
    decision = decide(stored(), cwd="/other", now=NOW)
    assert decision.action == "fresh"
    assert "another directory, /w" in decision.reason


def test_directories_are_compared_after_resolving(tmp_path: Path) -> None:
    """S3: a link to the same place is the same place."""
    real, link = tmp_path / "real", tmp_path / "link"
    real.mkdir()
    link.symlink_to(real)
    made_here = stored(cwd=str(real))
    assert decide(made_here, cwd=f"{link}/../link/", now=NOW).action == "resume"


def test_a_session_without_a_directory_is_resumed() -> None:
    """S3: an old record without cwd does not lose its session."""
    assert decide(stored(cwd=None), cwd="/anywhere", now=NOW).action == "resume"


def test_another_target_is_fresh_and_named() -> None:
    """S3: or on another remote target."""
    decision = decide(stored(target="ssh://build"), cwd="/w", now=NOW)
    assert decision.action == "fresh"
    assert "lives on ssh://build, this run on local" in decision.reason


@pytest.mark.parametrize(
    ("limits", "fields", "told"),
    [
        ({"max_runs": 3}, {"runs": 3}, "served 3 runs, the limit is 3"),
        ({"max_tokens": 100}, {"tokens": 101}, "used 101 tokens"),
        ({"max_age_sec": 86400}, {}, "older than 86400 seconds"),
    ],
)
def test_a_worn_out_session_is_rotated(
    limits: dict[str, int], fields: dict[str, int], told: str
) -> None:
    """S5: rotation limits are runs, tokens and age."""
    decision = decide(stored(**fields), cwd="/w", now=NOW, management=SessionManagement(**limits))
    assert (decision.action, decision.params) == ("rotate", None)
    assert told in decision.reason


def test_below_the_limits_nothing_is_rotated() -> None:
    management = SessionManagement(max_runs=3, max_tokens=100, max_age_sec=86401)
    kept = stored(runs=2, tokens=99)
    assert decide(kept, cwd="/w", now=NOW, management=management).action == "resume"


def test_a_runtime_that_compacts_itself_is_never_rotated() -> None:
    """S5: rotation is off for them."""
    management = SessionManagement(compacts_itself=True, max_runs=1)
    assert decide(stored(runs=9), cwd="/w", now=NOW, management=management).action == "resume"


@pytest.mark.parametrize(
    ("earlier", "fields", "kept"),
    [
        ({"sessionId": "old"}, {}, {"sessionId": "old"}),
        ({"sessionId": "old"}, {"session_params": {"sessionId": "new"}}, {"sessionId": "new"}),
        ({"sessionId": "old"}, {"clear_session": True}, None),
        (
            {"sessionId": "old"},
            {"clear_session": True, "session_params": {"sessionId": "new"}},
            {"sessionId": "new"},
        ),
        (None, {}, None),
    ],
)
def test_the_next_session_follows_the_result(
    earlier: dict[str, Any] | None, fields: dict[str, Any], kept: dict[str, Any] | None
) -> None:
    """S1: clearSession gives none; params in the result, those; else the earlier one stays."""
    assert next_session(earlier, result(**fields)) == kept


@pytest.mark.parametrize("good", ["a", "abc-123", "0190C0DE_x.y:z", "s" * 200])
def test_ordinary_ids_are_safe(good: str) -> None:
    assert safe_session_id(good) == good


@pytest.mark.parametrize(
    "bad",
    ["", "-x", "--resume", "a b", "a\n", "a/b", "../x", "a;b", "$(id)", "é", "s" * 201, 5, None],
)
def test_ids_that_could_do_harm_are_refused(bad: object) -> None:
    """A8: session ids are validated before they are stored or passed on."""
    assert safe_session_id(bad) is None
    assert SessionParams().deserialize({"sessionId": bad}) is None


def test_the_codec_keeps_what_an_adapter_added() -> None:
    """S2: params are opaque to the host."""
    codec = SessionParams()
    params = {"sessionId": "s", "cwd": "/w", "totals": {"costUsd": 1.5}}
    assert codec.serialize(params) == params == codec.deserialize(params)
    assert codec.get_display_id(params) == "s"


def test_the_codec_reads_the_older_spelling() -> None:
    assert SessionParams().deserialize({"session_id": "s"}) == {
        "session_id": "s",
        "sessionId": "s",
    }


@pytest.mark.parametrize("raw", [None, 5, "s-1", [], {}, {"other": 1}])
def test_garbage_is_no_session(raw: object) -> None:
    codec = SessionParams()
    assert codec.deserialize(raw) is None
    assert codec.serialize(None) is None
    assert codec.get_display_id(None) is None
