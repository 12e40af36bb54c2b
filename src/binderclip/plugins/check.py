"""`adapters check`: an adapter before it is published, with a score card in three tiers (U7).

The adapter is copied and loaded as an installed one would be, in processes of its own.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec

from binderclip.contract.errors import BinderclipError
from binderclip.contract.wire import Wire
from binderclip.plugins.adapter import PluginAdapter
from binderclip.plugins.described import ParserReport
from binderclip.plugins.fetch import silent
from binderclip.plugins.install import new_version
from binderclip.plugins.parsing import JsParser
from binderclip.plugins.records import PluginStore
from binderclip.plugins.sources import Source, read_spec
from binderclip.plugins.uiparser import MAJOR, PROBE, TS, examine

CONFORM_SECONDS = 110
PACKAGE_PREFIX = "binderclip-adapter-"
Level = Literal["ok", "warn", "fail"]


class Finding(Wire, frozen=True, kw_only=True):
    level: Level
    message: str


class Tier(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """One step of the score card, and what is missing to reach it."""

    name: str
    missing: tuple[str, ...] = ()

    @property
    def reached(self) -> bool:
        return not self.missing


class CheckReport(Wire, frozen=True, kw_only=True, omit_defaults=False):
    path: str
    type: str
    findings: tuple[Finding, ...]
    tiers: tuple[Tier, ...]

    @property
    def passed(self) -> bool:
        return all(finding.level != "fail" for finding in self.findings)


def check_path(path: Path, sample: Path | None = None) -> CheckReport:
    """Everything that can be said about an adapter without an agent."""
    if path.suffix in (".js", ".cjs", ".mjs"):
        return _parser_alone(path, sample)
    source = read_spec(str(path))
    with tempfile.TemporaryDirectory(prefix="binderclip-check-") as scratch:
        try:
            with new_version(PluginStore(Path(scratch)), source, scripts=False, told=silent) as (
                directory,
                _,
            ):
                return _loaded(path, source, PluginAdapter(directory), _lines(path, sample))
        except BinderclipError as problem:
            message = " ".join(filter(None, (problem.message, problem.hint)))
            return _report(path, source.name, [Finding(level="fail", message=message)], ())


def _loaded(path: Path, source: Source, plugin: PluginAdapter, lines: list[str]) -> CheckReport:
    told = plugin.description
    findings = [Finding(level="ok", message=f"{told.type} loads and answers in its host.")]
    findings += _parser_findings(plugin.folder, told.parser, lines)
    if source.is_npm:
        return _report(path, told.type, findings, _npm_tiers(plugin))
    if told.interpreter and not told.package_name.startswith(PACKAGE_PREFIX):
        text = f"The package is called {told.package_name}; people look for {PACKAGE_PREFIX}NAME."
        findings.append(Finding(level="warn", message=text))
    return _conforming(path, plugin, findings)


def _conforming(path: Path, plugin: PluginAdapter, findings: list[Finding]) -> CheckReport:
    process = plugin.new_process()
    try:
        told = process.call("conform", seconds=CONFORM_SECONDS)
    finally:
        process.close()
    findings += [Finding(level="fail", message=text) for text in told["failed"]]
    findings.append(Finding(level="ok", message=f"{told['met']} requirements are met."))
    tiers = msgspec.convert(told["tiers"], tuple[Tier, ...])
    return _report(path, plugin.type, findings, tiers)


def _npm_tiers(plugin: PluginAdapter) -> tuple[Tier, ...]:
    told = plugin.description
    test = () if "testEnvironment" in told.methods else ("testEnvironment()",)
    parser = () if told.parser.state == "ready" else ("a ui-parser that loads",)
    schema = () if told.config else ("getConfigSchema()",)
    return (
        Tier(name="runs", missing=test),
        Tier(name="is configured by a form", missing=schema),
        Tier(name="is shown richly", missing=parser),
    )


def _parser_alone(path: Path, sample: Path | None) -> CheckReport:
    report = examine(path.parent, path.name, f"{MAJOR}.0.0")
    return _report(path, path.stem, _parser_findings(path.parent, report, _lines(path, sample)), ())


def _parser_findings(folder: Path, report: ParserReport, lines: list[str]) -> list[Finding]:
    if report.state == "none":
        return []
    if report.state == "refused":
        return [Finding(level="fail", message=f"ui-parser.js: {report.reason}.")]
    found = [
        Finding(level="ok", message=f"ui-parser.js loads ({report.form}, {report.size} bytes).")
    ]
    found += [Finding(level="warn", message=f"ui-parser.js: {text}.") for text in report.warnings]
    source = (folder / (report.path or "")).read_text("utf-8")
    return found + _on_lines(source, lines)


def _on_lines(source: str, lines: list[str]) -> list[Finding]:
    """What the parser makes of sample output."""
    parser = JsParser(source)
    parser.prepare([("stdout", line, TS) for line in lines])
    thrown = entries = 0
    for line in lines:
        try:
            entries += sum(entry is not None for entry in parser.parse_line(line, TS) or ())
        except BinderclipError:
            thrown += 1
    parser.finish(TS)
    told = f"{len(lines)} lines gave {entries} entries; {parser.silent} gave none"
    found = [Finding(level="ok" if entries else "warn", message=f"ui-parser.js: {told}.")]
    if thrown:
        found.append(Finding(level="fail", message=f"ui-parser.js throws on {thrown} lines."))
    if parser.dropped:
        text = f"ui-parser.js gives {parser.dropped} things that are no entries."
        found.append(Finding(level="fail", message=text))
    return found


def _lines(path: Path, sample: Path | None) -> list[str]:
    """The sample, else the recordings beside the adapter, else lines that anything must survive."""
    if sample is not None:
        return sample.read_text("utf-8", "replace").splitlines()
    recorded = sorted(path.glob("fixtures/*/stdout.txt")) if path.is_dir() else []
    lines = [line for file in recorded for line in file.read_text("utf-8", "replace").splitlines()]
    return [line for line in lines if line] or list(PROBE)


def _report(
    path: Path, type: str, findings: Sequence[Finding], tiers: Sequence[Tier]
) -> CheckReport:
    return CheckReport(path=str(path), type=type, findings=tuple(findings), tiers=tuple(tiers))
