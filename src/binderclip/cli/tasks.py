"""`binderclip tasks`: work for agents, what was said about it, and what waits for a person."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar, get_args

import click

from binderclip.cli.agents import find_agent
from binderclip.cli.asking import Api
from binderclip.cli.listing import print_json, print_table
from binderclip.cli.safe import safe, safe_line
from binderclip.cli.words import age, moment
from binderclip.contract.errors import NotFound
from binderclip.contract.ids import short
from binderclip.contract.task import TaskStatus

_HEAD = ("TASK", "STATE", "ASSIGNEE", "CHANGED", "TITLE")
_json = click.option("--json", "as_json", is_flag=True, help="Print the records as JSON.")
Command = TypeVar("Command", bound=Callable[..., Any])
_states = click.Choice(get_args(TaskStatus))


def _branching(command: Command) -> Command:
    """Options that say how the worktree of a task is made."""
    for option in (
        click.option("--dirty/--clean", default=None, help="Take uncommitted files along, or not."),
        click.option("--base", metavar="REF", help="What its worktree starts from; '' is HEAD."),
        click.option("--branch", metavar="NAME", help="Its branch, such as 'fix/{task}'."),
    ):
        command = option(command)
    return command


def _worktree(branch: str | None, base: str | None, dirty: bool | None) -> dict[str, Any]:
    told = {"branchTemplate": branch, "baseRef": base}
    wanted: dict[str, Any] = {name: text or None for name, text in told.items() if text is not None}
    return wanted if dirty is None else {**wanted, "withDirtyFiles": dirty}


@click.group("tasks", invoke_without_command=True)
@_json
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> None:
    """List tasks; make, change, discuss and decide them.

    TASK is a short name like T-12, or an id.
    """
    if ctx.invoked_subcommand is None:
        _list(as_json, None)


@command.command("list")
@click.option("--status", type=_states, help="Only in this state.")
@_json
def list_command(status: str | None, as_json: bool) -> None:
    """List tasks, newest first."""
    _list(as_json, status)


def _list(as_json: bool, status: str | None) -> None:
    with Api() as api:
        tasks = api.pages("/api/issues", status=status)
        names = {agent["id"]: agent["name"] for agent in api.pages("/api/agents")}
    if as_json:
        print_json(tasks)
    elif tasks:
        print_table(_HEAD, [_row(task, names, time.time()) for task in tasks])
    else:
        click.echo("No tasks yet. Make one: binderclip tasks create TITLE --assign AGENT")


def _row(task: Any, names: dict[str, str], now: float) -> tuple[str, ...]:
    changed = moment(task["updatedAt"])
    return (
        task["identifier"],
        task["status"],
        safe_line(names.get(task["assigneeAgentId"], "–")),
        age(now - changed) if changed else "",
        safe_line(task["title"]),
    )


@command.command("show")
@click.argument("task")
@_json
def show_command(task: str, as_json: bool) -> None:
    """Show a task, what was said, its runs, and what waits for a person."""
    with Api() as api:
        found = api.get(f"/api/issues/{task}")
        said = api.get(f"/api/issues/{found['id']}/comments")
        asked = api.get(f"/api/issues/{found['id']}/interactions")
        runs = api.get("/api/runs", issueId=found["id"])["items"]
    if as_json:
        print_json({**found, "comments": said, "interactions": asked, "runs": runs})
        return
    click.echo(f"{found['identifier']}  {found['status']}  {safe_line(found['title'])}")
    if found["body"]:
        click.echo(f"\n{safe(found['body'])}")
    for comment in said:
        click.echo(f"\n{safe_line(comment['author'])}, {comment['createdAt']}")
        click.echo(safe(comment["body"]))
    for run in runs:
        click.echo(f"\nrun {short(run['id'])}  {run['status']}")
    for question in asked:
        title = question["payload"].get("title") or question["kind"]
        click.echo(f"\n{short(question['id'])}  {question['status']}  {safe_line(str(title))}")


@command.command("create")
@click.argument("title")
@click.option("--body", default="", help="What exactly shall be done.")
@click.option("--assign", metavar="AGENT", help="Who shall do it; it wakes.")
@click.option("--cwd", help="Where; the agent's directory if not given.")
@click.option("--after", multiple=True, metavar="TASK", help="Only when this one is done.")
@_branching
@_json
def create_command(
    title: str,
    body: str,
    assign: str | None,
    cwd: str | None,
    after: tuple[str, ...],
    branch: str | None,
    base: str | None,
    dirty: bool | None,
    as_json: bool,
) -> None:
    """Make a task; its assignee wakes."""
    with Api() as api:
        wanted = {
            "title": title,
            "body": body,
            "cwd": cwd,
            "assigneeAgentId": find_agent(api, assign)["id"] if assign else None,
            "blockedBy": [api.get(f"/api/issues/{name}")["id"] for name in after],
            **_worktree(branch, base, dirty),
        }
        made = api.post("/api/issues", wanted)
    _told(made, as_json, f"Made {made['identifier']}.")


@command.command("edit")
@click.argument("task")
@click.option("--title", help="Another title.")
@click.option("--body", help="Another text.")
@click.option("--status", type=_states, help="Another state.")
@click.option("--assign", metavar="AGENT", help="Somebody else.")
@_branching
@_json
def edit_command(
    task: str,
    title: str | None,
    body: str | None,
    status: str | None,
    assign: str | None,
    branch: str | None,
    base: str | None,
    dirty: bool | None,
    as_json: bool,
) -> None:
    """Change a task."""
    with Api() as api:
        given = {"title": title, "body": body, "status": status}
        wanted: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        wanted |= _worktree(branch, base, dirty)
        if assign is not None:
            wanted["assigneeAgentId"] = find_agent(api, assign)["id"]
        changed = api.patch(f"/api/issues/{task}", wanted)
    _told(changed, as_json, f"{changed['identifier']} is {changed['status']}.")


@command.command("comment")
@click.argument("task")
@click.argument("words", nargs=-1, required=True)
@_json
def comment_command(task: str, words: tuple[str, ...], as_json: bool) -> None:
    """Say something; the assignee and everybody named by @name wake."""
    with Api() as api:
        said = api.post(f"/api/issues/{task}/comments", {"body": " ".join(words)})
    _told(said, as_json, "Said.")


def _deciding(verb: str, done: str, about: str) -> None:
    @command.command(verb, help=about)
    @click.argument("task")
    @click.argument("question", required=False)
    @click.option("--note", help="Told to the agent.")
    @_json
    def decide(task: str, question: str | None, note: str | None, as_json: bool) -> None:
        with Api() as api:
            found = _open_question(api, task, question)
            path = f"/api/issues/{found['taskId']}/interactions/{found['id']}/{verb}"
            decided = api.post(path, {"note": note} if note else {})
        _told(decided, as_json, done)


_deciding("accept", "Accepted.", "Say yes to what an agent asked; the only open question if unset.")
_deciding("reject", "Rejected.", "Say no to what an agent asked.")


@command.command("answer")
@click.argument("task")
@click.argument("answers", nargs=-1, required=True)
@click.option("--question", help="Which one, by the last characters of its id.")
@_json
def answer_command(
    task: str, answers: tuple[str, ...], question: str | None, as_json: bool
) -> None:
    """Answer the questions of an agent, in their order."""
    with Api() as api:
        found = _open_question(api, task, question)
        path = f"/api/issues/{found['taskId']}/interactions/{found['id']}/respond"
        answered = api.post(path, {"answers": list(answers)})
    _told(answered, as_json, "Answered.")


def _open_question(api: Api, task: str, named: str | None) -> Any:
    asked = api.get(f"/api/issues/{task}/interactions")
    found = [one for one in asked if one["status"] == "open" and one["id"].endswith(named or "")]
    if len(found) != 1:
        told = f"{len(found)} questions are open" if found else "No question is open"
        raise NotFound(f"{told} on {task}.", hint="`binderclip tasks show` lists them.")
    return found[0]


def _told(record: Any, as_json: bool, text: str) -> None:
    if as_json:
        print_json(record)
    else:
        click.echo(text)
