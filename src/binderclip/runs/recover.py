"""Runs whose driver died: found by their free lock, taken over, never run twice."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from binderclip.contract.errors import BinderclipError, RunBusy
from binderclip.contract.run import StateChange
from binderclip.runs import lifecycle
from binderclip.runs.driver import Drive, Listener, Place
from binderclip.runs.execute import Attempt, keep_supervised
from binderclip.sdk.adapter import Adapter
from binderclip.store.fileview import is_driven
from binderclip.store.home import Home
from binderclip.store.runfile import RunOutcome, read_order, read_outcome
from binderclip.supervisor.launch import attempt_state

LoadAdapter = Callable[[str], Adapter]


def take_over(
    home: Home,
    run_id: str,
    load: LoadAdapter,
    listener: Listener | None = None,
    history: Sequence[StateChange] = (),
    place: Place | None = None,
) -> RunOutcome:
    """Drive an abandoned run to its end; raises `RunBusy` if somebody else got it first."""
    order = read_order(home, run_id)
    adapter = load(order.adapter_path or order.adapter_type)
    drive = Drive(
        home,
        order,
        adapter,
        request=None,
        listener=listener or Listener(),
        history=list(history),
        place=place,
    )
    return lifecycle.resume(drive)


def is_abandoned(home: Home, run_id: str) -> bool:
    """Whether a run is unfinished and nobody drives it."""
    return read_outcome(home, run_id) is None and not is_driven(home, run_id)


def finish_if_ended(
    home: Home, run_id: str, load: LoadAdapter, listener: Listener | None = None
) -> RunOutcome | None:
    """Finish the record of an abandoned run whose agent has ended; a working one is left alone.

    An agent whose supervisor died gets a new one first, so that its limits hold again.
    """
    numbers = home.attempts(run_id)
    if numbers:
        attempt = Attempt(numbers[-1], home.attempt_dir(run_id, numbers[-1]))
        keep_supervised(attempt)
        if attempt_state(str(attempt.directory)) != "finished":
            return None
    try:
        return take_over(home, run_id, load, listener)
    except RunBusy:
        return None


def finish_all(
    home: Home, run_ids: list[str], load: LoadAdapter, listener: Listener | None = None
) -> list[tuple[str, str]]:
    """Finish what can be finished; returns the runs that could not be, each with its problem."""
    problems = []
    for run_id in run_ids:
        if not is_abandoned(home, run_id):
            continue
        try:
            finish_if_ended(home, run_id, load, listener)
        except BinderclipError as problem:
            problems.append((run_id, problem.message))
    return problems
