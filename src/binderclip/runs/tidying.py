"""Workspaces that nobody needs go by themselves, one after the other, kept by saved refs (W8).

Nothing goes that `binderclip workspaces clean` would not let go with the same policy.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping

from binderclip.contract.errors import BinderclipError, ConfigError
from binderclip.runs.control import Control
from binderclip.runs.places import clean_workspaces
from binderclip.workspaces.cleaning import Policy
from binderclip.workspaces.git import GitFailed

DAYS = "BINDERCLIP_WORKSPACE_DAYS"
GIB = "BINDERCLIP_WORKSPACE_GIB"
FIRST_SEC = 60.0
EVERY_SEC = 3600.0
_PAUSE_SEC = 1.0
_log = logging.getLogger(__name__)


def policy_from(env: Mapping[str, str]) -> Policy | None:
    """The policy that the environment sets; None if workspaces stay until a person cleans up."""
    days, gib = _number(env, DAYS), _number(env, GIB)
    if days == 0:
        return None
    idle = Policy.idle_days if days is None else days
    return Policy(idle, None if gib is None else int(gib * (1 << 30)))


class Tidying:
    """Cleans up now and then in a thread of its own, until `leaving` is set."""

    def __init__(
        self,
        control: Control,
        policy: Policy | None,
        leaving: threading.Event,
        first_sec: float = FIRST_SEC,
    ) -> None:
        self._control = control
        self._policy = policy
        self._leaving = leaving
        self._next = time.monotonic() + first_sec
        self._thread: threading.Thread | None = None

    def begin_if_due(self) -> None:
        """Start to clean up, if that was long ago and is over."""
        if self._policy is None or time.monotonic() < self._next or self._leaving.is_set():
            return
        if self._thread is not None and self._thread.is_alive():
            return
        self._next = time.monotonic() + EVERY_SEC
        self._thread = threading.Thread(
            target=self._clean, args=(self._policy,), name="tidying", daemon=True
        )
        self._thread.start()

    def wait(self) -> None:
        """Return when nothing is being removed any more."""
        if self._thread is not None:
            self._thread.join()

    def _clean(self, policy: Policy) -> None:
        try:
            verdicts = clean_workspaces(self._control, policy, going_on=self._going_on)
        except (BinderclipError, GitFailed, OSError) as problem:
            _log.error("workspaces cannot be cleaned up for now: %s", problem)
            return
        for one in verdicts:
            if one.removes:
                kept = f"; its work is kept: {one.saved}" if one.saved else ""
                _log.info("workspace %s is gone: %s%s", one.workspace.id, one.reason, kept)

    def _going_on(self) -> bool:
        return not self._leaving.wait(_PAUSE_SEC)


def _number(env: Mapping[str, str], name: str) -> float | None:
    text = env.get(name, "").strip()
    try:
        value = float(text) if text else None
    except ValueError:
        value = -1.0
    if value is not None and not 0 <= value < 1e9:
        raise ConfigError(f"{name} is {text!r}.", hint="Set it to a number, or not at all.")
    return value
