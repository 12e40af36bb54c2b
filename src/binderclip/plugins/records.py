"""The store of installed plugins: `adapter-plugins.json` in Paperclip's shape (P3).

Written by rename under a lock; a damaged file is kept aside and reported, never emptied.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from binderclip.contract.errors import AdapterError, AdapterNotFound
from binderclip.contract.wire import Wire
from binderclip.plugins.described import Description, Language, put, read_description

STORE = "adapter-plugins.json"
SETTINGS = "adapter-settings.json"


class PluginRecord(Wire, frozen=True, kw_only=True):
    """One installed plugin; the first six fields are Paperclip's, the rest are ours."""

    package_name: str
    type: str
    installed_at: str = ""
    version: str = ""
    local_path: str | None = None
    disabled: bool = False
    language: Language = "npm"
    spec: str = ""
    directory: str = ""
    """The directory of the version in force, below `plugins/`."""
    previous: str | None = None
    integrity: str = ""
    override: bool = False
    override_paused: bool = False


class Settings(Wire, frozen=True, kw_only=True):
    """What concerns types rather than plugins."""

    disabled_types: tuple[str, ...] = ()


class PluginStore:
    """The records of one data directory."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.folder = home / "plugins"
        self.file = home / STORE

    @classmethod
    def from_env(cls, env: Mapping[str, str] = os.environ) -> PluginStore:
        named = env.get("BINDERCLIP_HOME")
        home = Path(named).expanduser() if named else Path.home() / ".binderclip"
        return cls(home.absolute())

    def records(self) -> list[PluginRecord]:
        """All records; a damaged file raises, and stays as it is for a person to look at."""
        try:
            data = self.file.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return []
        try:
            return msgspec.json.decode(data, type=list[PluginRecord])
        except (msgspec.DecodeError, UnicodeDecodeError) as problem:
            raise AdapterError(
                f"{self.file} is damaged: {problem}",
                hint="Repair it, or move it away: the next install keeps a copy of it aside.",
            ) from problem

    def find(self, type: str) -> PluginRecord | None:
        return next((record for record in self.records() if record.type == type), None)

    def get(self, type: str) -> PluginRecord:
        record = self.find(type)
        if record is None:
            known = ", ".join(sorted(each.type for each in self.records())) or "none"
            raise AdapterNotFound(f"No plugin has the type {type!r}.", hint=f"Installed: {known}.")
        return record

    def put(self, record: PluginRecord) -> None:
        """Add a record, or replace the one of the same type."""
        rest = [each for each in self._trusted() if each.type != record.type]
        self._write([*rest, record])

    def drop(self, type: str) -> None:
        self._write([each for each in self._trusted() if each.type != type])

    def directory_of(self, record: PluginRecord) -> Path:
        return self.folder / record.directory

    def description_of(self, record: PluginRecord) -> Description:
        return read_description(self.directory_of(record))

    @property
    def settings(self) -> Settings:
        try:
            return msgspec.json.decode((self.home / SETTINGS).read_bytes(), type=Settings)
        except (FileNotFoundError, NotADirectoryError, msgspec.DecodeError):
            return Settings()

    def disable_type(self, type: str, disabled: bool) -> None:
        """Switch a built-in type off or on."""
        others = [each for each in self.settings.disabled_types if each != type]
        kept = Settings(disabled_types=tuple([*others, type] if disabled else others))
        self.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        put(self.home / SETTINGS, msgspec.json.encode(kept))

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Hold the lock under which the store is changed; CLI and server take turns."""
        # Each by itself: a mode is not for the parents that are made on the way.
        self.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.folder.mkdir(mode=0o700, exist_ok=True)
        fd = os.open(self.folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)

    def _trusted(self) -> list[PluginRecord]:
        """The records to build upon; a damaged file is moved aside first."""
        try:
            return self.records()
        except AdapterError:
            self.file.replace(self.file.with_name(f"{STORE}.damaged-{time.time_ns()}"))
            return []

    def _write(self, records: list[PluginRecord]) -> None:
        self.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        ordered = sorted(records, key=lambda record: record.type)
        put(self.file, msgspec.json.format(msgspec.json.encode(ordered), indent=2) + b"\n")


def read_foreign_store(path: Path) -> list[dict[str, Any]]:
    """The records of an existing `adapter-plugins.json`, as plain objects."""
    try:
        found = msgspec.json.decode(path.read_bytes(), type=list[dict[str, Any]])
    except (OSError, msgspec.DecodeError) as problem:
        raise AdapterError(f"{path} cannot be imported: {problem}") from problem
    return found
