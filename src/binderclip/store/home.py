"""The data directory: where each run lives, found by its id alone, readable by its owner only."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from binderclip.contract.errors import RunNotFound, StoreError
from binderclip.contract.ids import FULL_ID, SHORT_LENGTH, month_of, short

SHORTEST_SUFFIX = 4
_SQLITE = "sqlite:///"
_MONTH = re.compile(r"\d{4}-\d{2}")
_ATTEMPT = re.compile(r"attempt-([1-9]\d*)")
_SHOWN_CANDIDATES = 5
_LAST_ID = "e677d21f-d818"
"""Ids behind the year 9999 name no month."""


class Home:
    """`BINDERCLIP_HOME`, by default `~/.binderclip`."""

    def __init__(self, path: Path, database_url: str | None = None) -> None:
        self.path = path
        self.database_url = database_url or f"{_SQLITE}{path / 'binderclip.db'}"

    @classmethod
    def from_env(cls, env: Mapping[str, str] = os.environ) -> Home:
        named = env.get("BINDERCLIP_HOME")
        path = Path(named).expanduser() if named else Path.home() / ".binderclip"
        return cls(path.absolute(), env.get("BINDERCLIP_DATABASE_URL") or None)

    @property
    def sqlite(self) -> Path | None:
        """The file that is the database; None where a server keeps it."""
        told = self.database_url
        return Path(told.removeprefix(_SQLITE)) if told.startswith(_SQLITE) else None

    def ensure(self) -> Home:
        """Make the directory if it is missing and check that it can be written."""
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.runs.mkdir(mode=0o700, exist_ok=True)
        except OSError as problem:
            raise self._unusable(f"cannot be made: {problem.strerror}") from problem
        if not os.access(self.runs, os.R_OK | os.W_OK | os.X_OK):
            raise self._unusable("cannot be written by this user")
        return self

    @property
    def runs(self) -> Path:
        return self.path / "runs"

    def run_dir(self, run_id: str) -> Path:
        """`runs/<yyyy-mm>/<id>`; only a full id has one, so no text can lead outside."""
        if not FULL_ID.fullmatch(run_id) or run_id > _LAST_ID:
            raise RunNotFound(f"{run_id!r} is not the id of a run.", hint=_HINT)
        return self.runs / month_of(run_id) / run_id

    def make_run_dir(self, run_id: str) -> Path:
        """The run's directory, made (0700) if it is missing."""
        return self._make(self.run_dir(run_id))

    def attempt_dir(self, run_id: str, attempt: int) -> Path:
        return self.run_dir(run_id) / f"attempt-{attempt}"

    def make_attempt_dir(self, run_id: str, attempt: int) -> Path:
        """The attempt's directory, made (0700) if it is missing."""
        return self._make(self.attempt_dir(run_id, attempt))

    def attempts(self, run_id: str) -> list[int]:
        """Numbers of the attempts that have a directory, ascending."""
        found = map(_ATTEMPT.fullmatch, _names(self.run_dir(run_id)))
        return sorted(int(match[1]) for match in found if match)

    def run_ids(self) -> Iterator[str]:
        """Ids of all runs that have a directory, newest first."""
        for month in sorted(filter(_MONTH.fullmatch, _names(self.runs)), reverse=True):
            yield from sorted(filter(FULL_ID.fullmatch, _names(self.runs / month)), reverse=True)

    def find_run(self, text: str) -> str:
        """The id of the run that a person named by its full id or by its last characters."""
        wanted = text.strip().lower()
        if FULL_ID.fullmatch(wanted):
            if self.run_dir(wanted).is_dir():
                return wanted
        elif len(wanted) >= SHORTEST_SUFFIX:
            return self._only([id for id in self.run_ids() if id.endswith(wanted)], wanted)
        else:
            message = f"{text!r} is too short to name a run."
            raise RunNotFound(message, hint=f"Give at least {SHORTEST_SUFFIX} of its last letters.")
        raise RunNotFound(f"There is no run {wanted} in {self.path}.", hint=_HINT)

    def _only(self, found: list[str], wanted: str) -> str:
        if not found:
            message = f"No run in {self.path} has an id that ends in {wanted!r}."
            raise RunNotFound(message, hint=_HINT)
        if len(found) > 1:
            named = ", ".join(found[:_SHOWN_CANDIDATES])
            more = len(found) - _SHOWN_CANDIDATES
            listed = f"{named} and {more} more" if more > 0 else named
            message = f"{len(found)} runs have an id that ends in {wanted!r}: {listed}."
            fields = {short(id): id for id in found[:_SHOWN_CANDIDATES]}
            raise RunNotFound(message, hint="Give more of its last letters.", fields=fields)
        return found[0]

    def _make(self, directory: Path) -> Path:
        try:
            directory.mkdir(mode=0o700, exist_ok=True)
        except OSError:
            self._make_from_the_top(directory)
        return directory

    def _make_from_the_top(self, directory: Path) -> None:
        # One by one, since mkdir's mode does not hold for parents.
        try:
            for step in reversed([directory, *directory.parents]):
                if step.is_relative_to(self.path):
                    step.mkdir(mode=0o700, exist_ok=True)
        except OSError as problem:
            raise self._unusable(f"cannot be written: {problem}") from problem

    def _unusable(self, problem: str) -> StoreError:
        return StoreError(
            f"The data directory {self.path} {problem}.",
            hint="Check its owner and free space, or set BINDERCLIP_HOME to another directory.",
        )


_HINT = f"`binderclip runs` lists them; the last {SHORT_LENGTH} characters of an id are enough."


def _names(directory: Path) -> list[str]:
    try:
        return [path.name for path in directory.iterdir()]
    except (FileNotFoundError, NotADirectoryError):
        return []
