"""The driver of a run: whoever holds `driver.lock` tails, parses and finalizes it, alone."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import msgspec

from binderclip.contract.check import Check
from binderclip.contract.entry import Record
from binderclip.contract.errors import RunBusy
from binderclip.contract.ids import short
from binderclip.contract.run import (
    ExecutionRequest,
    ExecutionResult,
    RunOrder,
    RunState,
    StateChange,
    Usage,
)
from binderclip.contract.wire import iso_time
from binderclip.sdk.adapter import Adapter, Plan
from binderclip.store.fileview import driver_lock
from binderclip.store.home import Home
from binderclip.supervisor import locks
from binderclip.supervisor.spare import Spare

Clock = Callable[[], float]


class Listener:
    """Who is told what happens to a run while it happens; override what you need."""

    def state(self, change: StateChange) -> None:
        """The run entered another state."""

    def attempt(self, directory: Path) -> None:
        """An attempt's process runs, or was found running."""

    def records(self, records: Sequence[Record]) -> None:
        """The transcript grew."""

    def notice(self, text: str) -> None:
        """Something about the run itself that its reader should know."""

    def usage(self, usage: Usage | None, cost_usd: float | None) -> None:
        """What the runtime told of its usage so far; called at least every second."""

    def finalized(self, home: Home, run_id: str) -> None:
        """The run is over and its outcome is on disk; must not raise."""

    def stays(self) -> bool:
        """Whether to go on driving the run; False leaves it to whoever comes next."""
        return True


class LetGo(Exception):
    """The driver leaves a run whose agent works on."""


class Place(Protocol):
    """Where a run works, if that is more than a directory of this machine."""

    @property
    def cwd(self) -> str | None:
        """The directory of this machine; None where the work is not here."""
        ...

    @property
    def session_target(self) -> str:
        """The machine that sessions of the agent live on (S3)."""
        ...

    def checks(self, command: str) -> list[Check] | None:
        """What stands in the way there; None if that is this machine's to say."""
        ...

    def plan(self, plan: Plan, attempt: int, scratch: Path, host: Mapping[str, str]) -> Plan:
        """The plan of an attempt as this machine carries it out."""
        ...

    def finalize(self, result: ExecutionResult) -> ExecutionResult:
        """Bring the work back; a failure to do so is the run's."""
        ...


class Drive(msgspec.Struct):
    """A run in the hands of this process."""

    home: Home
    order: RunOrder
    adapter: Adapter
    request: ExecutionRequest | None
    """None when the run was taken over: what it needs to start again is not on disk."""
    listener: Listener = msgspec.field(default_factory=Listener)
    host_env: dict[str, str] = msgspec.field(default_factory=dict)
    api_url: str | None = None
    nursery: str | Spare | None = None
    """Who starts the supervisor sooner: a nursery's socket, or an interpreter kept ready."""
    skills: tuple[Path, ...] = ()
    secrets: tuple[str, ...] = ()
    """Values that must show up nowhere, besides those that the adapter knows to be secret."""
    lock: int | None = None
    """The driver lock, where whoever made this took it already."""
    place: Place | None = None
    clock: Clock = time.time
    history: list[StateChange] = msgspec.field(default_factory=list)

    @property
    def run_id(self) -> str:
        return self.order.id

    def now(self) -> str:
        return iso_time(self.clock())

    def enter(self, state: RunState, reason: str, at: str | None = None) -> None:
        """Change the run's state and tell the listener."""
        change = StateChange(state=state, at=at or self.now(), reason=reason, actor="driver")
        self.history.append(change)
        self.listener.state(change)


@contextmanager
def driving(home: Home, run_id: str, held: int | None = None) -> Iterator[None]:
    """Hold the driver lock, or raise `RunBusy`; one that is held already ends with the block."""
    if held is None:
        held = locks.take(str(driver_lock(home, run_id)))
    if held is None:
        raise RunBusy(
            f"Run {short(run_id)} is driven by another process.",
            hint=f"Use `binderclip watch {short(run_id)}` to see it.",
        )
    try:
        yield
    finally:
        locks.release(held)


def own_environment() -> dict[str, str]:
    """This process's environment, as the host's part of a plan."""
    return dict(os.environ)
