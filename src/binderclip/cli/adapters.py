"""`binderclip adapters`: which agent runtimes can be run, and how each is configured."""

from __future__ import annotations

from typing import Any

import click
import msgspec

from binderclip.cli.layout import Look, wrapped
from binderclip.cli.listing import print_json, print_table
from binderclip.cli.safe import safe
from binderclip.cli.terminal import Terminal
from binderclip.contract.config import ConfigField
from binderclip.plugins.registry import list_adapters, load_adapter
from binderclip.sdk.adapter import Adapter

_HEAD = ("TYPE", "LABEL", "VERSION", "SOURCE", "STATE", "MODELS")


@click.group("adapters", invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="Print the records as JSON.")
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> None:
    """List the agent runtimes that can be run, or show one."""
    if ctx.invoked_subcommand is None:
        _list(as_json)


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print the records as JSON.")
def list_command(as_json: bool) -> None:
    """List all adapters."""
    _list(as_json)


def _list(as_json: bool) -> None:
    views = list_adapters()
    if as_json:
        print_json(views)
        return
    rows = [
        (
            view.type,
            safe(view.label),
            view.version,
            view.source,
            safe(view.problem or view.state),
            ", ".join(model.id for model in view.models),
        )
        for view in views
    ]
    print_table(_HEAD, rows, lambda row, column: ("bold",) if column == 0 else ("plain",))


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


def _facts(adapter: Adapter) -> dict[str, Any]:
    manifest: dict[str, Any] = msgspec.to_builtins(adapter.manifest)
    return {
        **manifest,
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
