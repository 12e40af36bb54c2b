"""Doing a run again, or going on from it with a message, for runs that a person started by hand.

They get the environment of whoever drives them now. What was secret is not kept, so a run that
was given secrets in its configuration cannot be repeated from here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from binderclip.contract.errors import BinderclipError, Conflict
from binderclip.contract.ids import short
from binderclip.contract.run import RunOrder
from binderclip.contract.session import ResumeDecision, StoredSession
from binderclip.contract.wire import iso_time
from binderclip.runs.driver import Drive
from binderclip.runs.orders import LoadAdapter
from binderclip.runs.wake import LOCAL_AGENT, local_order
from binderclip.sdk.adapter import Adapter
from binderclip.sdk.env import REDACTED
from binderclip.sdk.resume import decide, next_session
from binderclip.store.home import Home
from binderclip.store.runfile import RunOutcome, read_order, read_outcome

Refusal = str | None
_HIDDEN = ("**********", REDACTED)


def by_hand(order: RunOrder) -> bool:
    """Whether a run belongs to no agent that could be woken."""
    return order.agent.id == LOCAL_AGENT


def retry_refusal(home: Home, order: RunOrder) -> Refusal:
    """Why a run cannot be done again from here; None if it can."""
    if read_outcome(home, order.id) is None:
        return "The run is not over yet."
    if hidden := _hidden(order.config):
        return (
            f"It was given secrets ({', '.join(hidden)}), which are not kept: "
            "start it again where they are."
        )
    return None


def message_refusal(home: Home, order: RunOrder) -> Refusal:
    """Why nobody can go on from a run with a message; None if somebody can."""
    outcome = read_outcome(home, order.id)
    if outcome is not None and _session(order, outcome) is None:
        return "Its runtime told no session that a message could go on with."
    return retry_refusal(home, order)


def retried(home: Home, run_id: str, load: LoadAdapter, now: float) -> Drive:
    """The same wish once more, in a fresh session."""
    order = read_order(home, run_id)
    _refuse(retry_refusal(home, order))
    reason = f"a retry of run {short(run_id)} starts fresh"
    session = ResumeDecision(action="fresh", reason=reason)
    made = _made(home, order, load, now, order.prompt, lambda _: session)
    made.order = msgspec.structs.replace(made.order, retry_of=run_id)
    return made


def continued(home: Home, run_id: str, load: LoadAdapter, now: float, message: str) -> Drive:
    """Go on in the session of a run, with a message as the prompt."""
    order = read_order(home, run_id)
    _refuse(message_refusal(home, order))
    outcome = read_outcome(home, run_id)
    assert outcome is not None

    def session(adapter: Adapter) -> ResumeDecision:
        stored = _stored(order, outcome, adapter)
        decision = decide(stored, cwd=order.cwd, now=iso_time(now))
        return msgspec.structs.replace(decision, continues=run_id)

    return _made(home, order, load, now, message, session)


def _made(
    home: Home,
    old: RunOrder,
    load: LoadAdapter,
    now: float,
    prompt: str | None,
    session: Callable[[Adapter], ResumeDecision],
) -> Drive:
    adapter = load(old.adapter_path or old.adapter_type)
    order, request = local_order(
        adapter,
        cwd=old.cwd,
        prompt=prompt,
        config=old.config,
        session=session(adapter),
        now=now,
    )
    return Drive(home, order, adapter, request)


def _session(order: RunOrder, outcome: RunOutcome) -> dict[str, Any] | None:
    if outcome.result is None or outcome.session_target != "local":
        return None
    return next_session(order.runtime.session_params, outcome.result)


def _stored(order: RunOrder, outcome: RunOutcome, adapter: Adapter) -> StoredSession | None:
    params = adapter.session_codec.deserialize(_session(order, outcome))
    if params is None:
        return None
    return StoredSession(
        agent_id=LOCAL_AGENT,
        adapter_type=adapter.type,
        task_key=order.task_key or "",
        params=params,
        display_id=adapter.session_codec.get_display_id(params),
        cwd=str(params.get("cwd") or order.cwd),
        last_run_id=order.id,
    )


def _hidden(value: Any, name: str = "config") -> list[str]:
    """The names of values that are kept as asterisks only."""
    if isinstance(value, dict):
        return [found for key, item in value.items() for found in _hidden(item, str(key))]
    if isinstance(value, list):
        return [found for item in value for found in _hidden(item, name)]
    return [name] if value in _HIDDEN else []


def _refuse(reason: Refusal) -> None:
    if reason is not None:
        raise Conflict(reason, code="cannot_repeat")


def refused_quietly(home: Home, run_id: str) -> tuple[Refusal, Refusal]:
    """Why a run cannot be retried and why not continued, for people who look at it."""
    try:
        order = read_order(home, run_id)
    except BinderclipError as problem:
        return problem.message, problem.message
    if not by_hand(order):
        return None, None
    return retry_refusal(home, order), message_refusal(home, order)
