"""What the routes of one server share: the data directory, its database, worker and streams."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Annotated

import msgspec
from fastapi import Depends, Request

from binderclip.contract.errors import BinderclipError, RunNotFound
from binderclip.contract.run import TERMINAL_STATES, RunOrder, RunView
from binderclip.contract.wire import iso_time, to_json
from binderclip.jobs.store import JobStore
from binderclip.plugins.models import ModelLists
from binderclip.plugins.registry import load_adapter
from binderclip.runs.desk import Desk
from binderclip.runs.lending import Lent, shipped_skills
from binderclip.runs.retell import retell
from binderclip.runs.roster import Roster
from binderclip.runs.worker import Worker
from binderclip.server.board import Board
from binderclip.server.feeds import Feeds
from binderclip.server.lines import PrintedLines
from binderclip.server.lookout import Lookout
from binderclip.server.tokens import Tokens
from binderclip.server.transcripts import TranscriptShelf
from binderclip.store.database import Database
from binderclip.store.fileview import file_view
from binderclip.store.home import Home
from binderclip.store.runfile import ORDER
from binderclip.store.runs import RunStore
from binderclip.workspaces.sizes import Sizes


class Site:
    """One data directory as the server sees it."""

    def __init__(self, home: Home, clock: Callable[[], float] = time.time) -> None:
        self.home = home.ensure()
        self.clock = clock
        self.address: str | None = None
        """Where agents reach the API; None until somebody listens."""
        self.guarded_port: Callable[[], int | None] = lambda: None
        """Where agents on other machines reach it, through a forward (W6)."""
        self.database = Database.open(home)
        self.runs = RunStore(self.database)
        self.jobs = JobStore(home, self._retell)
        self.tokens = Tokens(home)
        lent = Lent(
            api_url=lambda: self.address,
            token=self._run_token,
            skills=shipped_skills(),
            guarded_port=lambda: self.guarded_port(),
        )
        self.worker = Worker(self.database, load_adapter, lent=lent, clock=clock)
        self.desk = Desk(self.database, clock=clock, nudge=self._nudge)
        self.roster = Roster(self.database, load_adapter, clock=clock, nudge=self._nudge)
        self.shelf = TranscriptShelf(home, self._retell)
        self.printed = PrintedLines(home)
        self.feeds = Feeds(home, self.run)
        self.board = Board()
        self.models = ModelLists(clock)
        self.sizes = Sizes(clock)
        watched = lambda: self.board.watched  # noqa: E731
        self.lookout = Lookout(self.database, self.jobs, self.run_changed, watched, self._shelve)
        self._loop: asyncio.AbstractEventLoop | None = None

    def now(self) -> str:
        return iso_time(self.clock())

    def start(self) -> None:
        """Begin to follow what happens; called in the server's loop."""
        self._loop = asyncio.get_running_loop()
        self.lookout.start()

    def end_streams(self) -> None:
        """Let every viewer go; they come back by their last id."""
        self.feeds.close()
        self.board.close()

    def close(self) -> None:
        self.lookout.stop()
        self.printed.close()
        self.shelf.close()

    def run(self, run_id: str) -> RunView:
        """A run: its row once it is over, else what its files tell as well."""
        row = self.row(run_id)
        if row is not None and row.status in TERMINAL_STATES:
            return row
        if not (self.home.run_dir(run_id) / ORDER).exists():
            if row is None:
                raise RunNotFound(f"There is no run {run_id}.")
            return row
        filed = file_view(self.home, run_id)
        if row is None or filed.status in TERMINAL_STATES:
            return filed
        started = row.started_at or filed.started_at
        status = row.status if row.scheduled else filed.status
        return msgspec.structs.replace(
            row,
            attempts=filed.attempts,
            started_at=started,
            status=status,
            usage=filed.usage,
            cost_usd=filed.cost_usd,
        )

    def row(self, run_id: str) -> RunView | None:
        """What the database tells of a run."""
        try:
            return self.runs.get(run_id)
        except RunNotFound:
            return None

    def run_changed(self, run_id: str) -> None:
        """A run is in another state; may be called from any thread."""
        try:
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self._tell, run_id)
        except RuntimeError:
            # The loop has ended, and everybody who looked has gone.
            self._loop = None

    def notice(self, name: str, data: bytes) -> None:
        """Tell everybody who looks at lists; may be called from any thread."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self.board.post, name, None, data)

    def _tell(self, run_id: str) -> None:
        self.feeds.changed(run_id)
        try:
            view = self.run(run_id)
        except BinderclipError:
            # Its files were removed by hand; the next reading of a list shows it.
            return
        self.board.post("run", view.company_id, to_json(msgspec.structs.replace(view, result=None)))

    def _nudge(self) -> None:
        self.worker.nudge()
        self.lookout.look_soon()

    def _shelve(self, run_id: str) -> None:
        """Have the index of a run made and kept before anybody asks for a page of it."""
        with self.shelf.reading(run_id):
            return

    def _retell(self, run_id: str) -> bool:
        return retell(self.home, run_id, load_adapter)

    def _run_token(self, order: RunOrder) -> str:
        return self.tokens.for_run(order.id, order.agent.id, order.agent.company_id)


def _site(request: Request) -> Site:
    site = request.app.state.site
    assert isinstance(site, Site)
    return site


TheSite = Annotated[Site, Depends(_site)]
