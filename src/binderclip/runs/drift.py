"""The drift alarm: a run that printed what its adapter has never seen says so, once per version."""

from __future__ import annotations

from pathlib import Path

import msgspec

from binderclip.contract.errors import StoreError
from binderclip.contract.run import ExecutionResult
from binderclip.runs.driver import Drive
from binderclip.sdk.checks import version_of
from binderclip.sdk.drift import known_events, new_events
from binderclip.sdk.parser import JsonParser, Parser
from binderclip.store.drift import Drift, note_drift, read_drift
from binderclip.supervisor.launch import read_meta

RESULT_KEY = "newEvents"
"""Where a run's result lists them."""
HINT = "binderclip record makes a fixture of it"


def with_drift(
    drive: Drive, result: ExecutionResult, parser: Parser, attempt_dir: Path
) -> ExecutionResult:
    """The result with what was new in the output; the first run of a version also tells it."""
    if not isinstance(parser, JsonParser):
        return result
    found = new_events(parser.shapes, known_events(drive.adapter.folder))
    if not found:
        return result
    drift = _drift(drive, parser, attempt_dir, found)
    try:
        first = note_drift(drive.home, drive.adapter.type, drift)
    except (StoreError, OSError) as problem:
        drive.listener.notice(f"What is new in the output could not be kept: {problem}")
        first = True
    if first:
        more = f" and {len(found) - 3} more" if len(found) > 3 else ""
        told = f"{', '.join(found[:3])}{more}"
        drive.listener.notice(
            f"New in the output of {drive.adapter.type} {drift.version}: {told}; {HINT}"
        )
    kept = {**(result.result_json or {}), RESULT_KEY: list(found)}
    return msgspec.structs.replace(result, result_json=kept)


def _drift(drive: Drive, parser: Parser, attempt_dir: Path, found: tuple[str, ...]) -> Drift:
    """The finding under the runtime's version; the program is asked once, if the output is mute."""
    program = _program(attempt_dir)
    mark = _mark(program) if program else None
    version = parser.facts.version
    if version is None and mark is not None:
        seen = read_drift(drive.home, drive.adapter.type)
        version = next((one.version for one in seen if one.program == mark), None)
    if version is None and program is not None:
        wanted = ("PATH", "HOME", "LANG", "TMPDIR")
        env = {name: drive.host_env[name] for name in wanted if name in drive.host_env}
        version = version_of(program, env)
    return Drift(
        version=version or "of unknown version",
        found=found,
        run_id=drive.run_id,
        at=drive.now(),
        program=mark,
    )


def _program(attempt_dir: Path) -> Path | None:
    invocation = (read_meta(str(attempt_dir)) or {}).get("invocation") or {}
    command = invocation.get("command")
    return Path(command) if isinstance(command, str) else None


def _mark(program: Path) -> str | None:
    try:
        stat = program.stat()
    except OSError:
        return None
    return f"{program} {stat.st_size} {stat.st_mtime_ns}"
