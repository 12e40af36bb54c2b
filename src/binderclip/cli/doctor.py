"""`binderclip doctor`: the environment tests of the adapters, and of the data directory."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import click
import msgspec

from binderclip.cli.layout import Colour, Look, wrapped
from binderclip.cli.listing import print_json
from binderclip.cli.safe import safe
from binderclip.cli.terminal import Terminal
from binderclip.contract.check import (
    Check,
    CheckRequest,
    Depth,
    EnvironmentReport,
    Level,
    Status,
    verdict,
)
from binderclip.contract.errors import BinderclipError
from binderclip.contract.ids import short
from binderclip.contract.wire import iso_time
from binderclip.plugins.registry import list_adapters, load_adapter
from binderclip.runs.wake import LOCAL_COMPANY
from binderclip.sdk.adapter import Adapter
from binderclip.sdk.config import config_from_assignments
from binderclip.store.drift import read_drift
from binderclip.store.home import Home

HOME = "data directory"
_LOW_SPACE = 1024**3
_AT_ONCE = 4
_MARKS: dict[Level, tuple[str, Colour]] = {
    "info": ("✓", "green"),
    "warn": ("!", "yellow"),
    "error": ("✗", "red"),
}
_VERDICTS: dict[Status, tuple[str, Colour]] = {
    "pass": ("ready", "green"),
    "warn": ("ready, with warnings", "yellow"),
    "fail": ("cannot run here", "red"),
}


@click.command("doctor")
@click.option("--adapter", "-a", metavar="TYPE", help="Only this adapter; fails if it cannot run.")
@click.option("--config", "-c", multiple=True, metavar="KEY=VALUE", help="A field of the adapter.")
@click.option("--live", is_flag=True, help="Also make a tiny real call to the model.")
@click.option("--json", "as_json", is_flag=True, help="Print the reports as JSON.")
@click.pass_context
def command(
    ctx: click.Context, adapter: str | None, config: tuple[str, ...], live: bool, as_json: bool
) -> None:
    """Test whether agents can run here, and say what is missing.

    Exits 1 when the named adapter, or without one the data directory, cannot be used.
    """
    if config and not adapter:
        raise click.UsageError("--config needs --adapter.")
    depth: Depth = "live" if live else "quick"
    home = _home_report()
    if adapter:
        named = load_adapter(adapter)
        reports = [home, _tested(named, depth, config)]
    else:
        reports = [home, *_all_reports(depth)]
    if as_json:
        print_json(reports)
    else:
        _print(reports)
    decisive = reports if adapter else reports[:1]
    ctx.exit(1 if any(report.status == "fail" for report in decisive) else 0)


def _tested(adapter: Adapter, depth: Depth, assignments: tuple[str, ...]) -> EnvironmentReport:
    request = CheckRequest(
        company_id=LOCAL_COMPANY,
        adapter_type=adapter.type,
        config=config_from_assignments(adapter.Config, assignments),
        depth=depth,
    )
    report = adapter.test_environment(request, os.environ, iso_time(time.time()))
    checks = (*report.checks, *_drift_checks(adapter.type))
    return msgspec.structs.replace(report, checks=checks, status=verdict(checks))


def _drift_checks(type: str) -> Iterator[Check]:
    """What runs showed that the adapter has never seen; an unknown event may hide something."""
    for drift in read_drift(Home.from_env(), type)[-1:]:
        is_event = any(found.startswith("event ") for found in drift.found)
        yield Check(
            code="drift",
            level="warn" if is_event else "info",
            message=f"Version {drift.version} prints what is new here: {', '.join(drift.found)}.",
            detail=f"First seen in run {short(drift.run_id)}.",
            hint=f"binderclip record --adapter {type} --name CASE -- COMMAND keeps it.",
        )


def _all_reports(depth: Depth) -> Iterator[EnvironmentReport]:
    types = [view.type for view in list_adapters()]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        yield from pool.map(lambda type: _report(type, depth), types)


def _report(type: str, depth: Depth) -> EnvironmentReport:
    try:
        adapter = load_adapter(type)
        missing = [field.key for field in adapter.config_schema().fields if field.required]
        if not missing:
            return _tested(adapter, depth, ())
        needed = Check(
            code="config_needed",
            level="info",
            message=f"Needs {', '.join(missing)} to be tested.",
            hint=f"binderclip doctor --adapter {type} --config {missing[0]}=…",
        )
        return _made(type, [needed])
    except BinderclipError as problem:
        check = Check(code=problem.code, level="error", message=problem.message, hint=problem.hint)
        return _made(type, [check])


def _made(type: str, checks: list[Check]) -> EnvironmentReport:
    return EnvironmentReport(
        adapter_type=type,
        status=verdict(checks),
        checks=tuple(checks),
        tested_at=iso_time(time.time()),
    )


def _home_report() -> EnvironmentReport:
    return _made(HOME, list(_home_checks(Home.from_env())))


def _home_checks(home: Home) -> Iterator[Check]:
    try:
        home.ensure()
    except BinderclipError as problem:
        yield Check(code="home_unusable", level="error", message=problem.message, hint=problem.hint)
        return
    yield Check(code="home_ok", level="info", message=f"{home.path} can be written.")
    if home.path.stat().st_mode & 0o077:
        yield Check(
            code="home_open",
            level="warn",
            message="Other users of this machine can look into it.",
            hint=f"chmod 700 {home.path}",
        )
    free = shutil.disk_usage(home.path).free
    if free < _LOW_SPACE:
        yield Check(
            code="disk_low",
            level="warn",
            message=f"Only {free // 1024**2} MiB are free there.",
            hint="Runs are stopped when the disk is full.",
        )


def _print(reports: list[EnvironmentReport]) -> None:
    terminal = Terminal()
    look = Look(colour=terminal.colour, width=terminal.width)
    for at, report in enumerate(reports):
        word, colour = _VERDICTS[report.status]
        if report.status == "pass" and any(c.code == "config_needed" for c in report.checks):
            word, colour = "not tested", "dim"
        title = look.paint(report.adapter_type, "bold")
        terminal.write(("\n" if at else "") + f"{title}  {look.paint(word, colour)}\n")
        terminal.write("".join(_check(check, look) for check in report.checks))


def _check(check: Check, look: Look) -> str:
    mark, colour = _MARKS[check.level]
    out = f"  {look.paint(mark, colour)} {wrapped(safe(check.message), look.width, '    ')}\n"
    if check.detail and check.level != "info":
        out += f"    {look.paint(wrapped(safe(check.detail), look.width, '    '), 'dim')}\n"
    if check.hint:
        out += f"    {look.paint(wrapped(safe(check.hint), look.width, '    '), 'dim')}\n"
    return out
