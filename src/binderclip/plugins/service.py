"""The verbs on plugins (P2), for the command line, the API and tests alike.

A verb either ends with a version that has answered, or leaves everything as it was.
"""

from __future__ import annotations

import builtins
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from binderclip.contract.errors import (
    AdapterError,
    AdapterLoadError,
    AdapterNotFound,
    BinderclipError,
    ContractError,
)
from binderclip.contract.manifest import AdapterView
from binderclip.contract.wire import Wire, iso_time
from binderclip.plugins.adapter import end_process
from binderclip.plugins.described import Description, ParserReport, write_description
from binderclip.plugins.fetch import Told, silent
from binderclip.plugins.install import as_fetched, describe, new_version, remove_unused
from binderclip.plugins.records import PluginRecord, PluginStore, read_foreign_store
from binderclip.plugins.registry import built_in_types, list_adapters, load_adapter
from binderclip.plugins.sources import Source, read_spec
from binderclip.plugins.uiparser import read_source
from binderclip.sdk.adapter import Adapter


class Progress(Wire, frozen=True, kw_only=True):
    """One step of an installation, for whoever watches."""

    step: str
    message: str
    at: str


class UiParser(Wire, frozen=True, kw_only=True):
    """A parser as browsers get it."""

    source: str
    etag: str
    report: ParserReport


class Plugins:
    """All plugins of one data directory; every call reads what is there now."""

    def __init__(self, store: PluginStore, clock: Callable[[], float] = time.time) -> None:
        self.store = store
        self._clock = clock

    def list(self) -> list[AdapterView]:
        """Built-in and installed adapters, as every listing shows them."""
        return list_adapters(store=self.store)

    def load(self, type: str) -> Adapter:
        return load_adapter(type, store=self.store)

    def record(self, type: str) -> PluginRecord:
        if self.store.find(type) is None and type in built_in_types():
            raise AdapterNotFound(
                f"{type} is built in and no plugin stands for it.",
                hint="It changes with binderclip itself; it can be disabled and overridden.",
            )
        return self.store.get(type)

    def describe(self, type: str) -> Description:
        return self.store.description_of(self.record(type))

    def install(
        self,
        spec: str,
        *,
        scripts: bool = False,
        override: bool = False,
        builtin_parser: bool = False,
        told: Told = silent,
    ) -> PluginRecord:
        """Install a new plugin, or another version of one that came from the same package.

        `builtin_parser` lets an override without a parser be read by the built-in adapter's (U5).
        """
        source = read_spec(spec)
        made = new_version(
            self.store, source, scripts=scripts, told=told, builtin_parser=builtin_parser
        )
        with made as (directory, description), self.store.changing():
            self._refuse_taken(description, source, override)
            record = self._activate(source, directory, description, override)
        told("done", f"{record.type} {record.version} is installed.")
        return record

    def reload(self, type: str, *, told: Told = silent) -> PluginRecord:
        """Take over what changed in a local folder; everything of it is loaded anew (P4)."""
        record = self.record(type)
        if record.local_path is None:
            return self._describe_again(record, told)
        return self._replace(record, read_spec(record.local_path), told)

    def reinstall(self, type: str, *, scripts: bool = False, told: Told = silent) -> PluginRecord:
        """Fetch the same version once more."""
        record = self.record(type)
        return self._replace(record, _same_version(record), told, scripts)

    def upgrade(self, type: str, *, scripts: bool = False, told: Told = silent) -> PluginRecord:
        """Fetch the newest version of the package."""
        record = self.record(type)
        return self._replace(record, _newest(record), told, scripts)

    def rollback(self, type: str) -> PluginRecord:
        """Put the version before this one back in force."""
        with self.store.changing():
            record = self.record(type)
            if not record.previous or not (self.store.folder / record.previous).is_dir():
                raise AdapterError(f"{type} has no earlier version to go back to.")
            back = msgspec.structs.replace(
                record, directory=record.previous, previous=record.directory
            )
            description = self.store.description_of(back)
            back = msgspec.structs.replace(
                back, version=description.version, integrity=description.integrity
            )
            self.store.put(back)
        return back

    def remove(self, type: str) -> None:
        """Remove a plugin; what it had replaced is in force again."""
        with self.store.changing():
            record = self.record(type)
            end_process(self.store.directory_of(record))
            self.store.drop(type)
            self._tidy()

    def set_disabled(self, type: str, disabled: bool) -> None:
        """Switch an adapter off or on; running runs are not touched."""
        with self.store.changing():
            record = self.store.find(type)
            if record is not None:
                self.store.put(msgspec.structs.replace(record, disabled=disabled))
            elif type in built_in_types():
                self.store.disable_type(type, disabled)
            else:
                self.store.get(type)

    def set_override(self, type: str, *, paused: bool) -> PluginRecord:
        """Let the plugin stand for the built-in adapter of its type, or the built-in itself."""
        with self.store.changing():
            record = self.record(type)
            if type not in built_in_types():
                raise AdapterError(f"{type} is no built-in type, so there is nothing to override.")
            record = msgspec.structs.replace(record, override=True, override_paused=paused)
            self.store.put(record)
        return record

    def import_store(
        self, path: Path, told: Told = silent
    ) -> builtins.list[tuple[str, str | None]]:
        """Install what an existing `adapter-plugins.json` names; each with its problem, if any."""
        outcomes: builtins.list[tuple[str, str | None]] = []
        for each in read_foreign_store(path):
            name = str(each.get("packageName") or each.get("localPath") or "?")
            try:
                record = self.install(_foreign_spec(each), override=True, told=told)
                if each.get("disabled") is True:
                    self.set_disabled(record.type, True)
                outcomes.append((name, None))
            except BinderclipError as problem:
                outcomes.append((name, problem.message))
        return outcomes

    def ui_parser(self, type: str) -> UiParser | None:
        """The parser that browsers load for a type, resolved from disk; None if there is none."""
        record = self.store.find(type)
        if record is None or (type in built_in_types() and record.override_paused):
            return None
        description = self.store.description_of(record)
        folder = Path(description.parser_folder or description.source)
        source = read_source(folder, description.parser)
        if source is None:
            return None
        etag = f'"{record.version}-{description.parser.sha256[:20]}"'
        return UiParser(source=source, etag=etag, report=description.parser)

    def _refuse_taken(self, description: Description, source: Source, override: bool) -> None:
        type = description.type
        there = self.store.find(type)
        if there is not None and there.package_name != description.package_name:
            raise ContractError(
                f"The type {type} belongs to the plugin {there.package_name} already.",
                hint=f"Remove that one first: binderclip adapters remove {type}.",
            )
        if type in built_in_types() and there is None and not override:
            raise ContractError(
                f"{description.package_name} claims the built-in type {type}.",
                hint=f"To let it stand for the built-in one: install {source.spec} --override.",
            )

    def _activate(
        self, source: Source, directory: Path, description: Description, override: bool
    ) -> PluginRecord:
        there = self.store.find(description.type)
        record = PluginRecord(
            package_name=description.package_name,
            type=description.type,
            installed_at=iso_time(self._clock()),
            version=description.version,
            local_path=str(source.path) if source.path else None,
            disabled=there.disabled if there else False,
            language=description.language,
            spec=source.spec,
            directory=str(directory.relative_to(self.store.folder)),
            previous=there.directory if there else None,
            integrity=description.integrity,
            override=override or (there.override if there else False),
            override_paused=there.override_paused if there else False,
        )
        self.store.put(record)
        if there is not None:
            end_process(self.store.directory_of(there))
        self._tidy()
        return record

    def _replace(
        self, record: PluginRecord, source: Source, told: Told, scripts: bool = False
    ) -> PluginRecord:
        kept = self.store.description_of(record).builtin_parser
        version = new_version(self.store, source, scripts=scripts, told=told, builtin_parser=kept)
        with version as (directory, description), self.store.changing():
            self.record(record.type)
            self._refuse_other(record, description)
            made = self._activate(source, directory, description, record.override)
            made = msgspec.structs.replace(made, spec=record.spec)
            self.store.put(made)
        told("done", f"{made.type} {made.version} is in force.")
        return made

    def _describe_again(self, record: PluginRecord, told: Told) -> PluginRecord:
        """A package from a registry: what lies on disk is asked anew, by a fresh process."""
        directory = self.store.directory_of(record)
        before = self.store.description_of(record)
        told("load", "Asking it what it is.")
        now = describe(as_fetched(before), directory)
        with self.store.changing():
            record = self.record(record.type)
            self._refuse_other(record, now)
            kept = msgspec.structs.replace(now, builtin_parser=before.builtin_parser)
            write_description(directory, kept)
            end_process(directory)
        told("done", f"{record.type} {record.version} is in force.")
        return record

    def _refuse_other(self, record: PluginRecord, description: Description) -> None:
        if description.type != record.type:
            raise ContractError(
                f"{record.package_name} now calls itself {description.type}, not {record.type}.",
                hint="Remove it and install it anew, if that is wanted.",
            )

    def _tidy(self) -> None:
        try:
            remove_unused(self.store, self.store.records())
        except AdapterError:
            return


def _same_version(record: PluginRecord) -> Source:
    if record.local_path is not None:
        return read_spec(record.local_path)
    separator = "@" if record.language == "npm" else "=="
    scheme = "npm" if record.language == "npm" else "pypi"
    return read_spec(f"{scheme}:{record.package_name}{separator}{record.version}")


def _newest(record: PluginRecord) -> Source:
    if record.local_path is not None:
        return read_spec(record.local_path)
    return read_spec(f"{'npm' if record.language == 'npm' else 'pypi'}:{record.package_name}")


def _foreign_spec(each: dict[str, Any]) -> str:
    if isinstance(each.get("localPath"), str) and each["localPath"]:
        return str(each["localPath"])
    name, version = each.get("packageName"), each.get("version")
    if not isinstance(name, str):
        raise AdapterLoadError("A record without packageName and localPath cannot be installed.")
    return f"npm:{name}@{version}" if isinstance(version, str) and version else f"npm:{name}"
