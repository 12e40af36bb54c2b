"""Who asks, and what they may do (R3; design, section 6).

A token decides alone where there is one; without one, a loopback peer must be the server's user.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Annotated, Literal

from fastapi import Depends, Request

from binderclip.contract.errors import NotFound
from binderclip.contract.run import TERMINAL_STATES
from binderclip.server.errors import Refused
from binderclip.server.guard import LOOPBACK_NAMES, name_of
from binderclip.server.peers import PEER_UID
from binderclip.server.site import Site, TheSite

COOKIE = "binderclip"
RUN_HEADER = "x-paperclip-run-id"
PERSON_HINT = (
    "Open the address that `binderclip up` printed, or send the token of BINDERCLIP_HOME/token."
)
_FORWARDED = frozenset({"forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via"})


@dataclass(frozen=True)
class Actor:
    """Somebody who asks: a person by token, this machine's user without one, or an agent."""

    kind: Literal["person", "local", "agent"]
    company_id: str | None = None
    """The only company that an agent sees; None for people."""
    agent_id: str | None = None
    run_id: str | None = None

    @property
    def name(self) -> str:
        return f"agent:{self.agent_id}" if self.kind == "agent" else "person"

    def must_see(self, company_id: str | None, what: str = "such thing") -> None:
        """Refuse what belongs to another company as if it did not exist."""
        if self.company_id is not None and company_id != self.company_id:
            raise NotFound(f"There is no {what}.")

    def scope(self, company_id: str | None) -> str | None:
        """The company that a list is about: an agent's own, whatever it asks for."""
        if company_id is not None:
            self.must_see(company_id, f"company {company_id!r}")
        return company_id or self.company_id


def cookie_name(port: object) -> str:
    """Cookies are shared by all ports of a host; servers are not."""
    return f"{COOKIE}-{port}"


def actor(request: Request, site: TheSite) -> Actor:
    """Who asks; refused if that is nobody."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme:
        if scheme.lower() != "bearer":
            raise _nobody("Tokens are sent as `Authorization: Bearer …`.")
        return _by_token(request, site, token.strip())
    cookie = request.cookies.get(cookie_name(request.url.port), "")
    if cookie and site.tokens.is_person(cookie):
        return Actor("person")
    if _is_own_user(request):
        return Actor("local")
    raise _nobody("This needs the token of BINDERCLIP_HOME/token.")


def _by_token(request: Request, site: Site, token: str) -> Actor:
    if site.tokens.is_person(token):
        return Actor("person")
    claim = site.tokens.read(token)
    if claim is None:
        raise _nobody("This token was not made by this server.")
    # Its files as well: a run is over when its outcome is there, its row follows.
    view = site.run(claim.run_id) if site.row(claim.run_id) else None
    if view is None or view.status in TERMINAL_STATES or view.agent_id != claim.agent_id:
        raise _nobody("The run that this token was made for is over.")
    named = request.headers.get(RUN_HEADER, claim.run_id)
    if named != claim.run_id:
        message = "X-Paperclip-Run-Id names another run than the token."
        raise Refused(403, "run_mismatch", message)
    return Actor("agent", claim.company_id, claim.agent_id, claim.run_id)


def _is_own_user(request: Request) -> bool:
    # What a proxy passes on is not its user's wish.
    if not _FORWARDED.isdisjoint(request.headers.keys()):
        return False
    if name_of(request.headers.get("host", "")) not in LOOPBACK_NAMES:
        return False
    uid = getattr(request.state, PEER_UID, None)
    return uid is not None and uid == os.getuid()


def person(actor: TheActor) -> Actor:
    """Only somebody who holds the person's token."""
    if actor.kind != "person":
        raise Refused(403, "person_needed", "Only a person may do this.", hint=PERSON_HINT)
    return actor


def not_agent(actor: TheActor) -> Actor:
    """Somebody at this machine, with or without a token, but no agent."""
    if actor.kind == "agent":
        raise Refused(403, "forbidden", "An agent may not do this.")
    return actor


def _nobody(message: str) -> Refused:
    headers = {"www-authenticate": "Bearer"}
    return Refused(401, "unauthorized", message, headers=headers)


TheActor = Annotated[Actor, Depends(actor)]
ThePerson = Annotated[Actor, Depends(person)]
NoAgent = Annotated[Actor, Depends(not_agent)]
