"""The requirements that every adapter meets, built-in or not; what does not apply is left out.

import pytest
from binderclip.sdk.testing.conformance import requirements

@pytest.mark.parametrize("requirement", requirements(create_adapter()), ids=str)
def test_adapter_conforms(requirement):
    requirement()
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from binderclip.sdk.adapter import Adapter
from binderclip.sdk.testing.conformance import describing, fuzzing, reading, running
from binderclip.sdk.testing.conformance.requirement import Requirement, Subject
from binderclip.sdk.testing.fixtures import Case

__all__ = ["Requirement", "check_adapter", "requirements"]

ALWAYS: tuple[tuple[int, str, Callable[[Subject], None]], ...] = (
    (1, "the manifest is complete", describing.manifest_is_complete),
    (2, "the doc routes and lists every field", describing.doc_routes_and_lists_every_field),
    (3, "every config field is explained", describing.every_field_is_explained),
    (4, "config survives a round trip", describing.config_survives_a_round_trip),
    (5, "bad config values are named", describing.bad_values_are_named),
    (6, "dangers are off, secrets hidden", describing.dangers_are_off_and_secrets_hidden),
    (7, "the session codec refuses garbage", running.codec_refuses_garbage),
    (8, "the session codec round-trips", running.codec_round_trips),
    (9, "the quick test leaves no trace", running.quick_test_leaves_no_trace),
    (10, "findings never raise", running.findings_never_raise),
)
FOR_CLIS: tuple[tuple[int, str, Callable[[Subject], None]], ...] = (
    (11, "the plan keeps secrets out of argv", running.plan_keeps_secrets_out_of_argv),
    (12, "the plan hands over the prompt", running.plan_hands_over_the_prompt),
    (13, "the plan refuses unsafe sessions", running.plan_refuses_unsafe_sessions),
)
PER_CASE: tuple[tuple[int, str, Callable[[Subject, Case], None]], ...] = (
    (20, "the outcome is as expected", reading.outcome_is_as_expected),
    (21, "entries are well-formed", reading.entries_are_well_formed),
    (22, "tool calls are paired", reading.tool_calls_are_paired),
    (23, "replay is deterministic", reading.replay_is_deterministic),
    (24, "chunks do not matter", reading.chunks_do_not_matter),
    (25, "junk hides nothing", fuzzing.junk_hides_nothing),
    (26, "strange values never raise", fuzzing.strange_values_never_raise),
)
UNKNOWN_SESSION = (
    27,
    "talk about sessions is no unknown session",
    reading.talk_about_sessions_is_no_unknown_session,
)


def requirements(adapter: Adapter, config: Mapping[str, Any] | None = None) -> list[Requirement]:
    """What this adapter must meet; `config` gives the fields that it requires, if any."""
    subject = Subject(adapter, dict(config or {}))
    found = [*ALWAYS, *(FOR_CLIS if subject.is_cli else ())]
    whole = [Requirement(n, sentence, partial(check, subject)) for n, sentence, check in found]
    return whole + list(_per_case(subject))


def check_adapter(adapter: Adapter, config: Mapping[str, Any] | None = None) -> list[str]:
    """Every requirement that is not met, with its reason; for tools that do not run pytest."""
    broken = []
    for requirement in requirements(adapter, config):
        try:
            requirement()
        except Exception as problem:
            broken.append(f"{requirement}: {problem}")
    return broken


def _per_case(subject: Subject) -> Iterator[Requirement]:
    for case in subject.cases:
        steps = list(PER_CASE)
        if (case.expected or {}).get("unknownSession"):
            steps.append(UNKNOWN_SESSION)
        for number, sentence, check in steps:
            yield Requirement(number, f"{sentence}: {case.name}", partial(check, subject, case))
