"""From a source to a version that has answered: fetched, described, checked; nothing else changes.

Until its description is written, nobody refers to the directory; a failure removes it (P5).
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from binderclip.contract.errors import BinderclipError, ContractError
from binderclip.contract.manifest import Capabilities, humanised
from binderclip.contract.session import SessionManagement
from binderclip.contract.wire import to_plain
from binderclip.plugins.adapter import RUNS, host_process
from binderclip.plugins.archives import size_of
from binderclip.plugins.described import Description, understood, write_description
from binderclip.plugins.fetch import Fetched, Told, fetch
from binderclip.plugins.form import read_foreign_fields
from binderclip.plugins.records import PluginRecord, PluginStore
from binderclip.plugins.sources import Source
from binderclip.plugins.uiparser import declared_by_package, examine

DESCRIBE_SECONDS = 30
MAKING = ".making"
"""Ends the name of the file whose lock is held while a version is made."""


@contextlib.contextmanager
def new_version(
    store: PluginStore,
    source: Source,
    *,
    scripts: bool,
    told: Told,
    builtin_parser: bool = False,
) -> Iterator[tuple[Path, Description]]:
    """A directory with a new version, described and checked; what fails in the block removes it."""
    directory = store.folder / _folder_name(source) / secrets.token_hex(6)
    with _under_construction(store, directory):
        try:
            yield directory, _made(directory, source, scripts, told, builtin_parser)
        except BaseException as problem:
            shutil.rmtree(directory, ignore_errors=True)
            if isinstance(problem, BinderclipError):
                raise _of_the_author(problem, source, directory) from problem
            raise


def _made(
    directory: Path, source: Source, scripts: bool, told: Told, builtin_parser: bool
) -> Description:
    fetched = fetch(source, directory, scripts=scripts, told=told)
    told("load", "Asking it what it is.")
    description = describe(fetched, directory)
    description = msgspec.structs.replace(description, builtin_parser=builtin_parser)
    if description.parser.state == "refused":
        told("parser", f"Its ui-parser.js is not used: {description.parser.reason}.")
    write_description(directory, description)
    told("ready", f"{description.type} {description.version}, {description.bytes} bytes.")
    return description


def _of_the_author(problem: BinderclipError, source: Source, directory: Path) -> BinderclipError:
    """The same problem; it names files as their author knows them, not their copies."""
    if source.path is not None:
        for copy in (directory / source.path.name, directory / "package"):
            problem.message = problem.message.replace(str(copy), str(source.path))
    return problem


@contextlib.contextmanager
def _under_construction(store: PluginStore, directory: Path) -> Iterator[None]:
    """Hold a lock beside the directory, so that nobody takes it for one that was left behind."""
    mark = directory.with_name(directory.name + MAKING)
    with store.changing():
        mark.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fd = os.open(mark, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(fd, fcntl.LOCK_EX)
    try:
        yield
    finally:
        with store.changing(), contextlib.suppress(OSError):
            mark.unlink(missing_ok=True)
            os.close(fd)
            mark.parent.rmdir()


def describe(fetched: Fetched, directory: Path) -> Description:
    """The plugin's own words, asked in a process of its own."""
    bare = Description(
        type="",
        label="",
        version=fetched.version,
        language=fetched.language,
        source=fetched.source,
        interpreter=fetched.interpreter,
        package_name=fetched.package_name,
        integrity=fetched.integrity,
        bytes=size_of(directory),
    )
    process = host_process(bare, directory)
    try:
        answer = process.call("describe", {}, seconds=DESCRIBE_SECONDS)
    except BinderclipError as problem:
        # What names its file already needs no other subject.
        own = problem.message.partition(" failed in describe: ")[2]
        message = problem.message.replace(" failed in describe", " cannot be loaded")
        message = own if own.startswith("/") else message
        raise ContractError(message, hint=problem.hint) from problem
    finally:
        process.close()
    return _npm(answer, bare) if fetched.language == "npm" else _python(answer, bare)


def as_fetched(description: Description) -> Fetched:
    """A version that is on disk already, to be described once more."""
    return Fetched(
        language=description.language,
        package_name=description.package_name,
        version=description.version,
        source=description.source,
        integrity=description.integrity,
        interpreter=description.interpreter,
    )


def _python(answer: Any, bare: Description) -> Description:
    answer = dict(answer) if isinstance(answer, dict) else answer
    file, version = None, None
    if isinstance(answer, dict):
        file, version = answer.pop("uiParser", None), answer.pop("uiParserVersion", None)
    told = understood(answer, **_known(bare, answer))
    folder = Path(told.parser_folder or bare.source)
    return msgspec.structs.replace(told, parser=examine(folder, file, version))


def _npm(answer: Any, bare: Description) -> Description:
    if not isinstance(answer, dict):
        raise ContractError(f"{bare.package_name} described itself as no object.")
    methods = answer.get("methods") or []
    flags = answer.get("flags") or {}
    skills = any(name in methods for name in ("listSkills", "syncSkills"))
    capabilities = msgspec.convert({**flags, "supportsSkills": skills}, Capabilities)
    schema = read_foreign_fields(answer.get("schema"))
    facts = json.loads(Path(bare.source, "package.json").read_text("utf-8"))
    parser = examine(Path(bare.source), *declared_by_package(facts))
    told = {
        "type": answer.get("type"),
        "label": answer.get("label") or humanised(str(answer.get("type"))),
        "methods": methods,
        "models": [_model(model) for model in answer.get("models") or []],
        "doc": answer.get("doc") or "",
        "capabilities": to_plain(capabilities),
        "sessionManagement": to_plain(_management(answer.get("sessionManagement"))),
        "config": to_plain(schema) if schema else None,
        "structured": parser.state == "ready",
        "parserFolder": bare.source,
        "parser": to_plain(parser),
        "notes": [str(note) for note in answer.get("notes") or []],
    }
    return understood(told, **_known(bare, told))


def _known(bare: Description, answer: Any) -> dict[str, Any]:
    """What the host knows better than the plugin."""
    plain: dict[str, Any] = to_plain(bare)
    names = ("language", "source", "interpreter", "packageName", "integrity", "bytes", "version")
    known = {name: plain[name] for name in names}
    if bare.language == "python" and isinstance(answer, dict) and answer.get("version"):
        known["version"] = bare.version if bare.interpreter else str(answer["version"])
    return known


def _model(model: dict[str, Any]) -> dict[str, str]:
    return {"id": model["id"], "label": str(model.get("label") or model["id"])}


def _management(told: Any) -> SessionManagement:
    if not isinstance(told, dict):
        return SessionManagement()
    limits = told.get("defaultSessionCompaction")
    limits = limits if isinstance(limits, dict) and limits.get("enabled") else {}
    hours = limits.get("maxSessionAgeHours")
    return SessionManagement(
        compacts_itself=told.get("nativeContextManagement") == "confirmed",
        max_runs=_limit(limits.get("maxSessionRuns")),
        max_tokens=_limit(limits.get("maxRawInputTokens")),
        max_age_sec=_limit(hours * 3600 if isinstance(hours, int | float) else None),
    )


def _limit(value: Any) -> int | None:
    return int(value) if isinstance(value, int | float) and value > 0 else None


def _folder_name(source: Source) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "_", source.name).strip("._") or "plugin"


def remove_unused(store: PluginStore, records: list[PluginRecord]) -> None:
    """Remove versions that no record names, no run uses and nobody is making."""
    used = {record.directory for record in records}
    used |= {record.previous for record in records if record.previous}
    for path in store.folder.glob("*/*"):
        if path.name.endswith(MAKING):
            _end_mark(path)
        elif str(path.relative_to(store.folder)) not in used and not _in_use(path):
            shutil.rmtree(path, ignore_errors=True)
        with contextlib.suppress(OSError):
            path.parent.rmdir()


def _in_use(directory: Path) -> bool:
    held = directory / RUNS
    if held.is_dir() and any(held.iterdir()):
        return True
    return _is_made(directory.with_name(directory.name + MAKING))


def _is_made(mark: Path) -> bool:
    try:
        with mark.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        return False
    return False


def _end_mark(mark: Path) -> None:
    """An installer that was killed left its mark behind."""
    if not _is_made(mark):
        mark.unlink(missing_ok=True)
