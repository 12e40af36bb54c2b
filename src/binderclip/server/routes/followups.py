"""What follows a run: seeing what it changed, doing it again, going on from it with a message."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Response
from pydantic import Field

from binderclip.contract.run import RunView
from binderclip.contract.wire import Wire
from binderclip.runs.again import continued, retried
from binderclip.runs.changes import changes_of
from binderclip.runs.driver import Drive
from binderclip.runs.wake import LOCAL_AGENT
from binderclip.runs.waking import Ask
from binderclip.server.auth import Actor, NoAgent
from binderclip.server.requests import Body, Key, once
from binderclip.server.routes.runs import RunId, seen_run
from binderclip.server.schema import answer, answers
from binderclip.server.site import Site, TheSite
from binderclip.store.fileview import driver_lock
from binderclip.store.rebuild import take_in
from binderclip.store.runfile import write_order
from binderclip.supervisor import locks
from binderclip.workspaces.comparing import RunChanges

router = APIRouter(prefix="/api/runs", tags=["runs"])


class NextRun(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """The run that follows."""

    run_id: str


class Message(Body):
    """What the agent is told."""

    prompt: Annotated[str, Field(min_length=1, max_length=1_000_000)]


@router.get("/{run_id}/diff", responses=answers(RunChanges))
def run_changes(site: TheSite, actor: NoAgent, run_id: RunId) -> Response:
    """What the run changed in its directory, files and lines; or why that cannot be told."""
    seen_run(site, actor, run_id)
    return answer(changes_of(site.home, run_id))


@router.post("/{run_id}/retry", status_code=202, responses=answers(NextRun, 202))
def retry_run(site: TheSite, actor: NoAgent, run_id: RunId, key: Key = None) -> Response:
    """The same wish once more: a wake of its agent, or the same run by hand in a fresh session."""
    run = seen_run(site, actor, run_id)

    def make() -> Response:
        if _by_hand(run):
            return _begun(site, retried(site.home, run_id, site.worker.load, site.clock()))
        return _woken(site, actor, run, run.prompt)

    return once(site, actor, f"retry:{run_id}", key, None, make)


@router.post("/{run_id}/continue", status_code=202, responses=answers(NextRun, 202))
def continue_run(
    site: TheSite, actor: NoAgent, run_id: RunId, body: Message, key: Key = None
) -> Response:
    """Go on in the run's session with a message."""
    run = seen_run(site, actor, run_id)

    def make() -> Response:
        if _by_hand(run):
            drive = continued(site.home, run_id, site.worker.load, site.clock(), body.prompt)
            return _begun(site, drive)
        return _woken(site, actor, run, body.prompt)

    return once(site, actor, f"continue:{run_id}", key, body, make)


def _by_hand(run: RunView) -> bool:
    return run.agent_id in (None, LOCAL_AGENT)


def _begun(site: Site, drive: Drive) -> Response:
    # Locked before anybody can see it, or it would look abandoned; kept before anybody is told.
    site.home.make_run_dir(drive.run_id)
    drive.lock = locks.take(str(driver_lock(site.home, drive.run_id)))
    write_order(site.home, drive.order)
    take_in(site.home, site.runs, drive.run_id)
    site.worker.begin(drive)
    site.lookout.look_soon()
    return answer(NextRun(run_id=drive.run_id), 202)


def _woken(site: Site, actor: Actor, run: RunView, prompt: str | None) -> Response:
    assert run.agent_id is not None
    ask = Ask(run.agent_id, run.task_id, "manual", prompt=prompt, actor=actor.name)
    return answer(NextRun(run_id=site.desk.wake(ask).run_id), 202)
