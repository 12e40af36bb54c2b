"""`binderclip run --agent` and `--task`: an agent of the control plane, driven by this terminal."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pkgutil import resolve_name
from typing import Any

from sqlalchemy import Connection

from binderclip.cli.asking import APP, Api, running
from binderclip.cli.running import left, prompt_of, shown
from binderclip.cli.show import show_for
from binderclip.cli.terminal import Terminal
from binderclip.contract.company import LOCAL_COMPANY
from binderclip.contract.errors import NotFound
from binderclip.contract.run import RunOrder
from binderclip.plugins.registry import load_adapter
from binderclip.runs.here import detach_here, prepare_here, run_here
from binderclip.runs.lending import Lent, shipped_skills
from binderclip.runs.waking import Ask
from binderclip.runs.workplace import NO_API
from binderclip.store.agents import Agents
from binderclip.store.database import Database
from binderclip.store.environments import Environments
from binderclip.store.home import Home
from binderclip.store.tasks import Tasks

TOKENS = "binderclip.server.tokens:Tokens"
LISTENER = "binderclip.server.guarded:GuardedListener"


def run_agent(
    agent: str | None,
    task: str | None,
    prompt: tuple[str, ...],
    *,
    detach: bool,
    as_json: bool,
    debug: bool,
) -> int:
    """Run an agent now, by the rules of the server; the exit code."""
    home = Home.from_env().ensure()
    said = prompt_of(prompt)
    with Database.open(home) as db, ExitStack() as held:
        with db.reading() as connection:
            ask = _ask(connection, agent, task, said)
            away = _works_elsewhere(connection, ask)
        lent = _lent(home)
        if away and lent.api_url() is None and not detach:
            lent = held.enter_context(answering(home))
        drive = prepare_here(db, ask, load_adapter, lent, time.time)
        show = show_for(drive.run_id, Terminal(), as_json=as_json, debug=debug)
        if away and lent.guarded_port() is None:
            show.notice(NO_API)
        if detach:
            return left(drive, show, detach_here(db, drive, show))
        return shown(drive, show, lambda: run_here(db, drive, show))


def _ask(connection: Connection, agent: str | None, task: str | None, prompt: str | None) -> Ask:
    found = Tasks(connection).find(LOCAL_COMPANY, task) if task else None
    task_id = found.id if found else None
    if agent is not None:
        return Ask(Agents(connection).find(LOCAL_COMPANY, agent).id, task_id, prompt=prompt)
    assert found is not None
    if found.assignee_agent_id is None:
        hint = "Name one by --agent, or `binderclip tasks edit` with --assign."
        raise NotFound(f"{found.identifier} is assigned to no agent.", hint=hint)
    return Ask(found.assignee_agent_id, task_id, prompt=prompt)


def _works_elsewhere(connection: Connection, ask: Ask) -> bool:
    """Whether the agent works on another machine, from where this one's loopback is far."""
    task = Tasks(connection).get(ask.task_id) if ask.task_id else None
    agent = Agents(connection).get(ask.agent_id)
    named = (task.environment_id if task else None) or agent.environment_id
    return named is not None and Environments(connection).get(named).kind == "ssh"


def _lent(home: Home) -> Lent:
    """The API, a token and the skills that use them, if a server is up."""
    address = running(home)
    if address is None:
        return Lent()

    def port() -> int | None:
        with Api(home) as api:
            found: int | None = api.post("/api/workspaces/listener")["port"]
        return found

    return _lending(home, address, port)


@contextmanager
def answering(home: Home) -> Iterator[Lent]:
    """The API for one agent on another machine, from this process, while the block lasts (W6)."""
    app: Any = resolve_name(APP)(home)
    listener: Any = resolve_name(LISTENER)(home, app, app.state.site.tokens, lasting=False)
    try:
        port = listener.port()
        yield _lending(home, f"http://127.0.0.1:{port}", lambda: port)
    finally:
        listener.close()
        app.state.site.database.close()


def _lending(home: Home, address: str, port: Callable[[], int | None]) -> Lent:
    # By name, since the server stands beside the CLI and not below it.
    tokens: Any = resolve_name(TOKENS)(home)

    def token(order: RunOrder) -> str:
        made: str = tokens.for_run(order.id, order.agent.id, order.agent.company_id)
        return made

    return Lent(
        api_url=lambda: address, token=token, skills=shipped_skills(), guarded_port=cache(port)
    )
