"""`binderclip environments`: other machines that agents work on, and whether they can (E4)."""

from __future__ import annotations

import json
from typing import Any

import click

from binderclip.cli.asking import Api
from binderclip.cli.listing import print_json, print_table
from binderclip.cli.safe import safe_line
from binderclip.contract.errors import ConfigError, NotFound
from binderclip.contract.ids import short

_HEAD = ("ENVIRONMENT", "KIND", "HOST", "NAME")
_MARKS = {"info": "ok", "warn": "warning", "error": "error"}
_json = click.option("--json", "as_json", is_flag=True, help="Print the records as JSON.")
_config = click.option(
    "--config", "-c", multiple=True, metavar="KEY=VALUE", help="A field; lists as JSON."
)


@click.group("environments", invoke_without_command=True)
@_json
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> None:
    """List environments; make, change, test and remove them.

    ENVIRONMENT is its name, or the end of its id.
    """
    if ctx.invoked_subcommand is None:
        _list(as_json)


@command.command("list")
@_json
def list_command(as_json: bool) -> None:
    """List environments by name."""
    _list(as_json)


def _list(as_json: bool) -> None:
    with Api() as api:
        found = api.get("/api/environments")["items"]
    if as_json:
        print_json(found)
    elif found:
        print_table(_HEAD, [_row(one) for one in found])
    else:
        click.echo("No environments: agents work on this machine.")


def _row(one: Any) -> tuple[str, ...]:
    host = str(one["config"].get("host", "–"))
    return short(one["id"]), one["kind"], safe_line(host), safe_line(one["name"])


@command.command("create")
@click.argument("name")
@_config
@_json
def create_command(name: str, config: tuple[str, ...], as_json: bool) -> None:
    """Make an environment of another machine: --config host=box.example.org."""
    with Api() as api:
        body = {"name": name, "kind": "ssh", "config": _values(config)}
        made = api.post("/api/environments", body)
    _told(made, as_json, f"Made {safe_line(name)}. `binderclip environments test` tries it.")


@command.command("edit")
@click.argument("environment")
@click.option("--name", help="Another name.")
@_config
@_json
def edit_command(
    environment: str, name: str | None, config: tuple[str, ...], as_json: bool
) -> None:
    """Change an environment; fields that are not named stay, `--config key=` removes one."""
    with Api() as api:
        found = find_environment(api, environment)
        body: dict[str, Any] = {} if name is None else {"name": name}
        if config:
            values = {**found["config"], **_values(config)}
            body["config"] = {key: value for key, value in values.items() if value != ""}
        changed = api.patch(f"/api/environments/{found['id']}", body)
    _told(changed, as_json, f"Changed {safe_line(changed['name'])}.")


@command.command("remove")
@click.argument("environment")
def remove_command(environment: str) -> None:
    """Remove an environment that no agent and no task names."""
    with Api() as api:
        found = find_environment(api, environment)
        api.ask("DELETE", f"/api/environments/{found['id']}")
    click.echo(f"Removed {safe_line(found['name'])}.")


@command.command("test")
@click.argument("environment")
@click.argument("programs", nargs=-1)
@_json
@click.pass_context
def test_command(
    ctx: click.Context, environment: str, programs: tuple[str, ...], as_json: bool
) -> None:
    """Look whether runs can work there, and whether PROGRAMS are there; 1 if they cannot."""
    with Api() as api:
        found = find_environment(api, environment)
        path = f"/api/environments/{found['id']}/test"
        tested = api.post(path, {"commands": list(programs)})
    if as_json:
        print_json(tested)
    else:
        _show(tested)
    ctx.exit(1 if tested["status"] == "fail" else 0)


def _show(tested: Any) -> None:
    for check in tested["checks"]:
        click.echo(safe_line(f"{_MARKS[check['level']]:8} {check['message']}"))
        if check.get("hint"):
            click.echo(safe_line(f"         {check['hint']}"))
    click.echo(f"{tested['status']}")


def find_environment(api: Api, text: str) -> Any:
    """The environment that a person named."""
    listed = api.get("/api/environments")["items"]
    found = [one for one in listed if one["name"] == text] or [
        one for one in listed if one["id"].endswith(text.lower())
    ]
    if len(found) != 1:
        told = f"{len(found)} environments are" if found else "No environment is"
        hint = "`binderclip environments` lists them."
        raise NotFound(f"{told} called {text!r}.", hint=hint)
    return found[0]


def _values(assignments: tuple[str, ...]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for word in assignments:
        key, equals, text = word.partition("=")
        if not equals:
            raise ConfigError(f"--config {word}: write it as key=value")
        values[key] = _value(text)
    return values


def _value(text: str) -> Any:
    """Numbers and lists as they are written, everything else as text."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, int | float | list) else text


def _told(record: Any, as_json: bool, text: str) -> None:
    if as_json:
        print_json(record)
    else:
        click.echo(text)
