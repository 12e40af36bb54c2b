"""`binderclip agents`: who can be woken, with which runtime, and waking them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

import click

from binderclip.cli.asking import Api
from binderclip.cli.environments import find_environment
from binderclip.cli.listing import print_json, print_table
from binderclip.cli.safe import safe_line
from binderclip.cli.words import age, moment
from binderclip.contract.errors import ConfigError, NotFound
from binderclip.contract.ids import SHORT_LENGTH, short

F = TypeVar("F", bound=Callable[..., Any])
_HEAD = ("AGENT", "NAME", "ADAPTER", "STATE", "EVERY", "CHANGED")
_json = click.option("--json", "as_json", is_flag=True, help="Print the records as JSON.")
_config = click.option(
    "--config", "-c", multiple=True, metavar="KEY=VALUE", help="A field of the adapter."
)
_every = click.option("--every", type=click.FloatRange(min=0), metavar="MIN", help="Wake so often.")
_BUDGETS = ("usd", "tokens", "runs", "minutes", "period")
LOCAL = "local"
"""What `--environment` calls this machine."""


def _settings(command: F) -> F:
    """What can be set besides the fields of the adapter."""
    for option in (
        click.option("--retries", type=click.IntRange(0, 100), help="After passing failures."),
        click.option("--at-once", type=click.IntRange(1, 1000), metavar="N", help="Runs at once."),
        click.option("--run-budget", multiple=True, metavar="KEY=VALUE", help="Of each run."),
        click.option(
            "--budget",
            multiple=True,
            metavar="KEY=VALUE",
            help="What it may use: usd, tokens, runs, minutes; period is day, month or total.",
        ),
        click.option("--instructions", type=click.File(), metavar="FILE", help="Its AGENTS.md."),
        click.option(
            "--workspace",
            type=click.Choice(["worktree", "cwd"]),
            help="A git worktree for each task, or its directory as it is.",
        ),
        click.option(
            "--environment", metavar="NAME", help=f"Where it works; {LOCAL} is this machine."
        ),
    ):
        command = option(command)
    return command


def _set_up(api: Api, given: dict[str, Any], before: Any = None) -> dict[str, Any]:
    """The settings of a request's body; those that were not given are left out."""
    body: dict[str, Any] = {}
    if given["environment"] is not None:
        named = given["environment"]
        body["environmentId"] = None if named == LOCAL else find_environment(api, named)["id"]
    if given["instructions"] is not None:
        body["instructions"] = given["instructions"].read()
    for option, name in (("budget", "budget"), ("run_budget", "runBudget")):
        if given[option]:
            kept = before[name] if before else {}
            body[name] = {**kept, **_budget(f"--{option.replace('_', '-')}", given[option])}
    names = {"workspace": "workspace", "at_once": "maxConcurrentRuns", "retries": "retryLimit"}
    for option, name in names.items():
        if given[option] is not None:
            body[name] = given[option]
    return body


def _budget(option: str, words: tuple[str, ...]) -> dict[str, Any]:
    """Limits by name; an empty one takes the limit away."""
    limits: dict[str, Any] = {}
    for word in words:
        key, equals, text = word.partition("=")
        if not equals or key not in _BUDGETS:
            raise ConfigError(f"{option} {word}: write KEY=VALUE; keys are {', '.join(_BUDGETS)}.")
        try:
            limits[key] = text if key == "period" else float(text) if text else None
        except ValueError:
            raise ConfigError(f"{option} {word}: {text!r} is no number.") from None
        if key in ("tokens", "runs") and limits[key] is not None:
            limits[key] = int(limits[key])
    return limits


@click.group("agents", invoke_without_command=True)
@_json
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> None:
    """List agents; make, change and wake them.

    AGENT is a name, or an id or its last characters.
    """
    if ctx.invoked_subcommand is None:
        _list(as_json)


@command.command("list")
@_json
def list_command(as_json: bool) -> None:
    """List agents, newest first."""
    _list(as_json)


def _list(as_json: bool) -> None:
    with Api() as api:
        agents = api.pages("/api/agents")
    if as_json:
        print_json(agents)
    elif agents:
        print_table(_HEAD, [_row(agent, time.time()) for agent in agents])
    else:
        click.echo("No agents yet. Make one: binderclip agents create NAME --adapter TYPE")


def _row(agent: Any, now: float) -> tuple[str, ...]:
    changed = moment(agent["updatedAt"])
    every = agent["heartbeatMinutes"]
    return (
        short(agent["id"]),
        safe_line(agent["name"]),
        safe_line(agent["adapterType"]),
        agent["status"],
        f"{every:g} min" if every else "–",
        age(now - changed) if changed else "",
    )


@command.command("show")
@click.argument("agent")
@_json
def show_command(agent: str, as_json: bool) -> None:
    """Show an agent, what it spent, and what the breaker stopped."""
    with Api() as api:
        found = find_agent(api, agent)
        state = api.get(f"/api/agents/{found['id']}/state")
    if as_json:
        print_json({**found, **state})
        return
    spent = state["spent"]
    for name in ("id", "name", "role", "adapterType", "status", "workspace", "heartbeatMinutes"):
        if found[name] is not None:
            click.echo(f"{name:<18}{safe_line(str(found[name]))}")
    for key, value in found["adapterConfig"].items():
        click.echo(f"  {safe_line(key):<16}{safe_line(str(value))}")
    click.echo(f"{'spent':<18}{spent['runs']} runs, {spent['tokens']} tokens, ${spent['usd']:.2f}")
    for pause in state["pauses"]:
        click.echo(f"{'paused':<18}{safe_line(pause['taskKey'])}: {safe_line(pause['reason'])}")


@command.command("create")
@click.argument("name")
@click.option("--adapter", "-a", required=True, metavar="TYPE", help="Type of an adapter.")
@_config
@_every
@click.option("--role", help="What it is for, in a few words.")
@_settings
@_json
def create_command(
    name: str,
    adapter: str,
    config: tuple[str, ...],
    every: float | None,
    role: str | None,
    as_json: bool,
    **settings: Any,
) -> None:
    """Make an agent."""
    body = {
        "name": name,
        "adapterType": adapter,
        "adapterConfig": _values(adapter, config),
        "heartbeatMinutes": every or None,
        "role": role,
    }
    with Api() as api:
        made = api.post("/api/agents", body | _set_up(api, settings))
    _told(made, as_json, f"Made {safe_line(name)}, {short(made['id'])}.")


@command.command("edit")
@click.argument("agent")
@click.option("--name", help="Another name.")
@_config
@_every
@click.option("--role", help="What it is for.")
@_settings
@_json
def edit_command(
    agent: str,
    name: str | None,
    config: tuple[str, ...],
    every: float | None,
    role: str | None,
    as_json: bool,
    **settings: Any,
) -> None:
    """Change an agent; `--every 0` stops its timer, a field of the adapter is added or replaced.

    A limit of a budget that is left empty (`--budget usd=`) is taken away.
    """
    with Api() as api:
        found = find_agent(api, agent)
        body = _set_up(api, settings, found)
        if name is not None:
            body["name"] = name
        if role is not None:
            body["role"] = role
        if every is not None:
            body["heartbeatMinutes"] = every or None
        if config:
            values = _values(found["adapterType"], config)
            body["adapterConfig"] = {**found["adapterConfig"], **values}
        changed = api.patch(f"/api/agents/{found['id']}", body)
    _told(changed, as_json, f"Changed {safe_line(changed['name'])}.")


@command.command("pause")
@click.argument("agent")
@click.option("--reason", help="Shown with what waits.")
def pause_command(agent: str, reason: str | None) -> None:
    """Let nothing of an agent start until it is resumed."""
    _set(agent, {"status": "paused", "pausedReason": reason})


@command.command("resume")
@click.argument("agent")
def resume_command(agent: str) -> None:
    """Let a paused agent work again, also on tasks that the circuit breaker stopped."""
    _set(agent, {"status": "active"})
    with Api() as api:
        found = find_agent(api, agent)
        place = f"/api/agents/{found['id']}"
        for pause in api.get(f"{place}/state")["pauses"]:
            api.post(f"{place}/pauses/reset", {"taskKey": pause["taskKey"]})
            click.echo(f"It may work on {safe_line(pause['taskKey'])} again.")


@command.command("archive")
@click.argument("agent")
def archive_command(agent: str) -> None:
    """Put an agent away; its runs stay."""
    _set(agent, {"status": "archived"})


def _set(agent: str, body: dict[str, Any]) -> None:
    with Api() as api:
        found = find_agent(api, agent)
        changed = api.patch(f"/api/agents/{found['id']}", body)
    click.echo(f"{safe_line(changed['name'])} is {changed['status']}.")


@command.command("wake")
@click.argument("agent")
@click.argument("prompt", nargs=-1)
@click.option("--task", metavar="TASK", help="For this task, like T-12.")
@_json
def wake_command(agent: str, prompt: tuple[str, ...], task: str | None, as_json: bool) -> None:
    """Wake an agent: a run is queued, or joins the one that waits."""
    with Api() as api:
        found = find_agent(api, agent)
        issue = api.get(f"/api/issues/{task}")["id"] if task else None
        body = {"issueId": issue, "prompt": " ".join(prompt) or None}
        receipt = api.post(f"/api/agents/{found['id']}/wakeup", body)
    joined = "joins" if receipt["coalesced"] else "is"
    start = "" if api.served else " It starts with the next `binderclip up`."
    told = f"Run {short(receipt['runId'])} {joined} queued.{start}"
    _told(receipt, as_json, told)


def find_agent(api: Api, text: str) -> Any:
    """The agent that a person named."""
    agents = api.pages("/api/agents")
    found = [one for one in agents if one["name"] == text]
    if not found and len(text) >= SHORT_LENGTH // 2:
        found = [one for one in agents if one["id"].endswith(text.lower())]
    if len(found) != 1:
        told = f"{len(found)} agents are" if found else "No agent is"
        raise NotFound(f"{told} called {text!r}.", hint="`binderclip agents` lists them.")
    return found[0]


def _values(adapter: str, assignments: tuple[str, ...]) -> dict[str, Any]:
    from binderclip.plugins.registry import load_adapter
    from binderclip.sdk.config import config_from_assignments

    return config_from_assignments(load_adapter(adapter).Config, assignments)


def _told(record: Any, as_json: bool, text: str) -> None:
    if as_json:
        print_json(record)
    else:
        click.echo(text)
