"""Documents of newer and foreign writers load, and lose nothing on the way (N2)."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from binderclip.contract.wire import to_plain
from binderclip.jobs import read_checkpoint, read_event, read_job, schemas
from binderclip.jobs.documents import EVENT_TYPES
from binderclip.jobs.normalized import create_complete_run_event
from tests.jobs.test_normalized import checkpoint

PLAIN: dict[str, Any] = to_plain(checkpoint(id="c", timestamp=7))
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**50), 2**50) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


def test_a_checkpoint_without_metadata_loads() -> None:
    """N2: old checkpoints have none."""
    old = {key: value for key, value in PLAIN.items() if key != "metadata"}
    kept = read_checkpoint(json.dumps(old))
    assert kept.value.metadata is None
    assert json.loads(kept.encode()) == old


@given(ANYTHING, ANYTHING)
def test_unknown_fields_survive_at_every_depth(one: Any, other: Any) -> None:
    message = {**PLAIN["messages"][0], "cache": one}
    newer = {
        **PLAIN,
        "pending": other,
        "messages": [message],
        "usage": {**PLAIN["usage"], "x": one},
    }
    assert json.loads(read_checkpoint(json.dumps(newer)).encode()) == newer


def test_a_changed_value_keeps_what_stood_beside_it() -> None:
    kept = read_checkpoint(json.dumps({**PLAIN, "addedLater": [1]}))
    changed = kept.with_value(msgspec.structs.replace(kept.value, status="stoppedByError"))
    plain = json.loads(changed.encode())
    assert (plain["status"], plain["addedLater"]) == ("stoppedByError", [1])


def test_an_event_of_an_unknown_type_stays_as_it_is() -> None:
    foreign = {"type": "skillConnected", "id": "e", "skillName": "x", "deep": {"y": [1, None]}}
    assert json.loads(read_event(json.dumps(foreign)).encode()) == foreign


def test_an_event_keeps_what_its_checkpoint_had_besides() -> None:
    made = to_plain(create_complete_run_event("j", "r", "k", checkpoint(), "Done"))
    made["checkpoint"]["contextWindow"] = 200_000
    kept = read_event(json.dumps(made))
    assert kept.value.checkpoint.status == "completed"  # type: ignore[union-attr]
    assert json.loads(kept.encode()) == made


def test_a_foreign_job_loads() -> None:
    """The fields that Perstack writes are enough."""
    foreign = {
        "id": "j",
        "status": "completed",
        "coordinatorExpertKey": "k",
        "totalSteps": 3,
        "maxSteps": 10,
        "usage": PLAIN["usage"],
        "startedAt": 1,
    }
    kept = read_job(json.dumps(foreign))
    assert kept.value.total_steps == 3
    assert foreign.items() <= json.loads(kept.encode()).items()


def test_what_is_no_checkpoint_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError):
        read_checkpoint(json.dumps({**PLAIN, "stepNumber": "one"}))


def test_the_schemas_name_every_event_and_leave_objects_open() -> None:
    defined = schemas()["$defs"]
    assert {"Checkpoint", "Event", "Job"} <= defined.keys()
    tags = {
        kind["properties"]["type"]["enum"][0]
        for kind in defined.values()
        if "type" in kind.get("properties", {}) and "enum" in kind["properties"]["type"]
    }
    assert tags >= EVENT_TYPES
    assert not any(kind.get("additionalProperties") is False for kind in defined.values())
