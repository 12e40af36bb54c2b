"""`binderclip adapters`: which agent runtimes can be run, how each is configured, and plugins."""

from __future__ import annotations

import os
import time
from typing import Any

import click
import msgspec

from binderclip.cli.layout import Look, wrapped
from binderclip.cli.listing import print_json, print_table
from binderclip.cli.safe import safe
from binderclip.cli.terminal import Terminal
from binderclip.contract.check import CheckRequest
from binderclip.contract.company import LOCAL_COMPANY
from binderclip.contract.config import ConfigField
from binderclip.contract.manifest import AdapterView
from binderclip.contract.wire import iso_time
from binderclip.plugins.registry import list_adapters, load_adapter, store_problem
from binderclip.sdk.adapter import Adapter

_HEAD = ("TYPE", "LABEL", "VERSION", "SOURCE", "STATE", "MODELS")


class Verbs(click.Group):
    """The verbs on plugins are imported when one is called, so that listing is fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*super().list_commands(ctx), *PLUGIN_VERBS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in PLUGIN_VERBS:
            from binderclip.cli.plugins import VERBS

            return VERBS[cmd_name]
        return super().get_command(ctx, cmd_name)


PLUGIN_VERBS = (
    *("install", "reload", "reinstall", "upgrade", "rollback", "remove"),
    *("disable", "enable", "override", "pause", "import"),
    *("new", "check", "dev"),
)


@click.group("adapters", cls=Verbs, invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="Print the records as JSON.")
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> None:
    """List the agent runtimes that can be run, show one, install others."""
    if ctx.invoked_subcommand is None:
        _list(as_json)


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print the records as JSON.")
def list_command(as_json: bool) -> None:
    """List all adapters."""
    _list(as_json)


def _list(as_json: bool) -> None:
    views = list_adapters()
    if problem := store_problem():
        click.echo(safe(f"Plugins are not listed: {problem}"), err=True)
    if as_json:
        print_json(views)
        return
    rows = [
        (
            view.type,
            safe(view.label),
            view.version,
            view.source,
            safe(view.problem or _state(view)),
            ", ".join(model.id for model in view.models),
        )
        for view in views
    ]
    print_table(_HEAD, rows, lambda row, column: ("bold",) if column == 0 else ("plain",))


def _state(view: AdapterView) -> str:
    if view.override_paused:
        return f"{view.state}, override paused"
    return f"{view.state}, overrides" if view.overridden_builtin else view.state


@command.command("show")
@click.argument("type", metavar="TYPE")
@click.option("--json", "as_json", is_flag=True, help="Print the facts as JSON.")
def show_command(type: str, as_json: bool) -> None:
    """Show when to use an adapter, its configuration and what it can do."""
    adapter = load_adapter(type)
    if as_json:
        print_json(_facts(adapter))
        return
    terminal = Terminal()
    look = Look(colour=terminal.colour, width=terminal.width)
    # The list of fields at the end of the document is for models; people get the table.
    doc = adapter.agent_configuration_doc().split("\n## Configuration\n")[0].strip()
    doc = doc.removeprefix(f"# {adapter.manifest.label}").strip()
    terminal.write(f"{look.paint(adapter.manifest.label, 'bold')}  {adapter.type}\n\n")
    terminal.write("".join(_doc_line(line, look) for line in doc.split("\n")) + "\n")
    terminal.write(look.paint("Configuration (--config key=value)", "bold") + "\n\n")
    terminal.write("".join(_field(field, look) for field in adapter.config_schema().fields))
    terminal.write(f"\n{look.paint('Capabilities', 'bold')}\n\n" + _capabilities(adapter, look))
    if told := _plugin_facts(adapter):
        terminal.write(f"\n{look.paint('Plugin', 'bold')}\n\n")
        rows = [f"  {look.paint(name, 'dim')}  {safe(text)}\n" for name, text in told.items()]
        terminal.write("".join(rows))


@command.command("models")
@click.argument("type", metavar="TYPE")
@click.option("--json", "as_json", is_flag=True, help="Print the list as JSON.")
def models_command(type: str, as_json: bool) -> None:
    """Ask a runtime for its models; else tell those that its adapter declares."""
    from binderclip.plugins.models import ask_models

    adapter = load_adapter(type)
    asked = CheckRequest(company_id=LOCAL_COMPANY, adapter_type=type, config={})
    told = ask_models(adapter, asked, os.environ, now=iso_time(time.time()), fresh=True)
    if as_json:
        print_json(told)
        return
    if told.problem:
        click.echo(safe(told.problem), err=True)
    rows = [
        (safe(model.id), safe(model.label), "default" if model.id == told.detected else "")
        for model in told.models
    ]
    if not rows:
        click.echo("No models are known; name one by --config model=NAME.", err=True)
        return
    print_table(("MODEL", "LABEL", ""), rows, lambda row, column: ("plain",))
    origin = "the runtime" if told.source == "runtime" else "the adapter's own list"
    default = f"; it would use {told.detected} by itself" if told.detected else ""
    click.echo(safe(f"From {origin}{default}."), err=True)


def _plugin_facts(adapter: Adapter) -> dict[str, str]:
    """Where a plugin came from and what became of its parser; nothing for a built-in adapter."""
    told = getattr(adapter, "description", None)
    if told is None:
        return {}
    parser = told.parser
    own = "its own, in Python" if told.own_parser else None
    refused = f"generic, since {parser.reason}" if parser.state == "refused" else "generic"
    ready = f"ui-parser.js ({parser.form}, {parser.size} bytes)"
    facts = {
        "package": f"{told.package_name} {told.version}",
        "directory": adapter.origin,
        "integrity": told.integrity,
        "parser": own or (ready if parser.state == "ready" else refused),
    }
    notes = [*parser.warnings, *told.notes]
    return {**facts, "notes": "; ".join(notes)} if notes else facts


def _facts(adapter: Adapter) -> dict[str, Any]:
    manifest: dict[str, Any] = msgspec.to_builtins(adapter.manifest)
    told = getattr(adapter, "description", None)
    plugin = {"plugin": msgspec.to_builtins(told)} if told is not None else {}
    return {
        **manifest,
        **plugin,
        "type": adapter.type,
        "capabilities": msgspec.to_builtins(adapter.capabilities),
        "agentConfigurationDoc": adapter.agent_configuration_doc(),
        "configSchema": msgspec.to_builtins(adapter.config_schema()),
    }


def _doc_line(line: str, look: Look) -> str:
    text = safe(line)
    if text.startswith("#"):
        return look.paint(text.lstrip("# "), "bold") + "\n"
    indent = "  " if text.startswith("- ") else ""
    return wrapped(text, look.width, indent) + "\n"


def _field(field: ConfigField, look: Look) -> str:
    kind = " | ".join(option.value for option in field.options) or field.type
    marks = [look.paint("required", "yellow")] if field.required else []
    if field.dangerous:
        marks.append(look.paint("dangerous", "red"))
    if field.default not in (None, "", [], {}):
        marks.append(look.paint(f"default {field.default}", "dim"))
    head = f"  {look.paint(field.key, 'cyan')}  {look.paint(kind, 'dim')}  {'  '.join(marks)}"
    hint = wrapped(safe(field.hint or ""), look.width, "      ")
    return head.rstrip() + "\n" + (f"      {hint}\n" if field.hint else "")


def _capabilities(adapter: Adapter, look: Look) -> str:
    flags: dict[str, Any] = msgspec.to_builtins(adapter.capabilities)
    rows = {**flags, "usageTold": adapter.manifest.usage_told}
    return "".join(f"  {look.paint(key, 'dim')}  {_said(value)}\n" for key, value in rows.items())


def _said(value: Any) -> str:
    return {True: "yes", False: "no"}.get(value, str(value)) if isinstance(value, bool) else value
