"""The verbs of `binderclip adapters` on plugins: install, reload, remove, check, make new ones."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from binderclip.cli.layout import Look
from binderclip.cli.listing import print_json
from binderclip.cli.safe import safe
from binderclip.cli.terminal import Terminal
from binderclip.contract.errors import BinderclipError
from binderclip.plugins.records import PluginRecord, PluginStore
from binderclip.plugins.registry import built_in_types
from binderclip.plugins.service import Plugins

PARTS = {
    "__init__.py": "the command line of your agent",
    "parser.py": "one method per event that it prints",
    "fixtures/": "what it printed in each situation, and what that becomes",
    "doc.md": "when to use it, when not",
}
_TYPE = click.argument("type", metavar="TYPE")
_JSON = click.option("--json", "as_json", is_flag=True, help="Print the record as JSON.")
_SCRIPTS = click.option(
    "--allow-scripts", is_flag=True, help="Let the package run its install scripts."
)


def _plugins() -> Plugins:
    return Plugins(PluginStore.from_env())


def _steps(as_json: bool) -> Callable[[str, str], None]:
    def told(step: str, message: str) -> None:
        # The end is told on stdout.
        if not as_json and step != "done":
            click.echo(f"  {safe(message)}", err=True)

    return told


def _say(record: PluginRecord, what: str, as_json: bool) -> None:
    if as_json:
        print_json(record)
        return
    origin = f"{record.package_name} {record.version}"
    Terminal().write(safe(f"{record.type} {what} ({origin}).") + "\n")


@click.command("install")
@click.argument("spec", metavar="SPEC")
@click.option("--override", is_flag=True, help="Let it stand for the built-in adapter of its type.")
@click.option("--builtin-parser", is_flag=True, help="Read an override by the built-in parser.")
@_SCRIPTS
@_JSON
def install(
    spec: str, override: bool, builtin_parser: bool, allow_scripts: bool, as_json: bool
) -> None:
    """Install an adapter from npm, PyPI or a path.

    \b
    binderclip adapters install npm:@me/my-adapter@1.2.0
    binderclip adapters install pypi:binderclip-adapter-mine
    binderclip adapters install ./my_adapter

    SPEC is npm:NAME[@VERSION], pypi:NAME[==VERSION], a folder, a .py file, a .whl or a .tgz. The
    plugin is checked before it is used; install scripts do not run unless they are allowed.
    """
    record = _plugins().install(
        spec,
        scripts=allow_scripts,
        override=override,
        builtin_parser=builtin_parser,
        told=_steps(as_json),
    )
    _say(record, "is installed", as_json)


@click.command("reload")
@_TYPE
@_JSON
def reload(type: str, as_json: bool) -> None:
    """Load a plugin anew, with what changed in its folder."""
    _say(_plugins().reload(type, told=_steps(as_json)), "is loaded anew", as_json)


@click.command("reinstall")
@_TYPE
@_SCRIPTS
@_JSON
def reinstall(type: str, allow_scripts: bool, as_json: bool) -> None:
    """Fetch the same version of a plugin once more."""
    record = _plugins().reinstall(type, scripts=allow_scripts, told=_steps(as_json))
    _say(record, "is installed again", as_json)


@click.command("upgrade")
@_TYPE
@_SCRIPTS
@_JSON
def upgrade(type: str, allow_scripts: bool, as_json: bool) -> None:
    """Fetch the newest version of a plugin; running runs keep theirs."""
    plugins = _plugins()
    before = plugins.record(type).version
    record = plugins.upgrade(type, scripts=allow_scripts, told=_steps(as_json))
    is_new = record.version != before
    _say(record, "is upgraded" if is_new else "was the newest already", as_json)


@click.command("rollback")
@_TYPE
@_JSON
def rollback(type: str, as_json: bool) -> None:
    """Put the version before the last change back in force."""
    _say(_plugins().rollback(type), "is back at the version before", as_json)


@click.command("remove")
@_TYPE
def remove(type: str) -> None:
    """Remove a plugin; a built-in adapter that it replaced is in force again."""
    _plugins().remove(type)
    Terminal().write(f"{type} is removed.\n")


@click.command("disable")
@_TYPE
def disable(type: str) -> None:
    """Start nothing new with an adapter; running runs go on."""
    _plugins().set_disabled(type, True)
    Terminal().write(f"{type} is disabled.\n")


@click.command("enable")
@_TYPE
def enable(type: str) -> None:
    """Allow an adapter again."""
    _plugins().set_disabled(type, False)
    Terminal().write(f"{type} is enabled.\n")


@click.command("override")
@_TYPE
@_JSON
def override(type: str, as_json: bool) -> None:
    """Let the plugin of a built-in type stand for the built-in adapter."""
    _say(_plugins().set_override(type, paused=False), "stands for the built-in adapter", as_json)


@click.command("pause")
@_TYPE
@_JSON
def pause(type: str, as_json: bool) -> None:
    """Use the built-in adapter again, without removing the plugin of its type."""
    _say(_plugins().set_override(type, paused=True), "stands back", as_json)


@click.command("import")
@click.argument("path", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.pass_context
def import_store(ctx: click.Context, path: Path) -> None:
    """Install what an existing adapter-plugins.json names."""
    outcomes = _plugins().import_store(path, told=_steps(False))
    for name, problem in outcomes:
        Terminal().write(safe(f"{name}: {problem or 'installed'}") + "\n")
    ctx.exit(1 if any(problem for _, problem in outcomes) else 0)


@click.command("new")
@click.argument("name", metavar="NAME")
@click.option("--in", "folder", type=click.Path(path_type=Path), default=".", help="Where to.")
def new(name: str, folder: Path) -> None:
    """Write the folder of a new adapter that passes its own tests."""
    from binderclip.plugins.scaffold import write_adapter

    made = write_adapter(name, folder)
    place = _shown(made)
    terminal = Terminal()
    terminal.write(f"{place} is ready. It runs a sample agent until you change it:\n\n")
    for file, what in PARTS.items():
        terminal.write(f"  {file:<12} {what}\n")
    terminal.write(f"\n  binderclip adapters check {place}\n")
    terminal.write(f'  binderclip run --adapter {place} "hello"\n')
    terminal.write(f"  binderclip adapters dev {place}\n")


def _shown(path: Path) -> str:
    """A path as a person would type it here."""
    try:
        return shlex.quote(f"./{path.relative_to(Path.cwd())}")
    except ValueError:
        return shlex.quote(str(path))


@click.command("check")
@click.argument("path", type=click.Path(exists=True, path_type=Path))
@click.option("--sample", type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="Output of the runtime, to try the parser on.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@click.pass_context
def check(ctx: click.Context, path: Path, sample: Path | None, as_json: bool) -> None:
    """Check an adapter's folder, file or package before it is published.

    Contract, conformance to the requirements of built-in adapters, the rules of ui-parser.js, and
    a score card. Exits 0 when everything that must hold holds.
    """
    from binderclip.plugins.check import check_path

    report = check_path(path.absolute(), sample)
    if as_json:
        print_json(report)
    else:
        _print_report(report)
    ctx.exit(0 if report.passed else 1)


def _print_report(report: Any) -> None:
    terminal = Terminal()
    look = Look(colour=terminal.colour, width=terminal.width)
    terminal.write(look.paint(safe(f"{report.type}  {report.path}"), "bold") + "\n\n")
    for finding in report.findings:
        mark, colour = {"ok": ("✓", "green"), "warn": ("!", "yellow"), "fail": ("✗", "red")}[
            finding.level
        ]
        terminal.write(f"  {look.paint(mark, colour)} {safe(finding.message)}\n")  # type: ignore[arg-type]
    terminal.write("\n")
    for tier in report.tiers:
        mark = look.paint("✓", "green") if tier.reached else look.paint("·", "dim")
        missing = f"  missing: {', '.join(tier.missing)}" if tier.missing else ""
        terminal.write(f"  {mark} {tier.name}{look.paint(safe(missing), 'dim')}\n")


@click.command("dev")
@click.argument("path", type=click.Path(exists=True, path_type=Path))
@click.option("--once", is_flag=True, hidden=True)
def dev(path: Path, once: bool) -> None:
    """Install an adapter from its folder and load it anew whenever a file of it is saved."""
    from binderclip.plugins.dev import state_of, watch_folder

    plugins, terminal = _plugins(), Terminal()
    # Seen before it is read: a save while it is being installed counts as a change.
    seen = state_of(path)
    record = plugins.install(str(path), override=True, told=_steps(False))
    if record.type in built_in_types():
        terminal.write(f"It stands for the built-in adapter {record.type} until it is removed.\n")
    told = "saving a file loads it anew. Ctrl-C ends this and leaves it installed."
    terminal.write(f"{record.type} is installed; {told}\n")

    def changed() -> None:
        try:
            plugins.reload(record.type)
            terminal.write(f"{_clock()} {record.type} is loaded anew.\n")
        except BinderclipError as problem:
            terminal.write(safe(f"{_clock()} {problem.message}") + "\n")
            terminal.write("The version before stays in force.\n")

    watch_folder(path, seen, changed, once=once)


def _clock() -> str:
    return time.strftime("%H:%M:%S")


VERBS: dict[str, click.Command] = {
    verb.name or "": verb
    for verb in (
        *(install, reload, reinstall, upgrade, rollback, remove),
        *(disable, enable, override, pause, import_store),
        *(new, check, dev),
    )
}
