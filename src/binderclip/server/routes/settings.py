"""What only a person sets: environments and secrets."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import Field

from binderclip.contract.check import Check, Status, verdict
from binderclip.contract.company import LOCAL_COMPANY, Environment, SecretView
from binderclip.contract.errors import ConfigError
from binderclip.contract.wire import Wire
from binderclip.runs.workplace import environment_target
from binderclip.server.answers import polled
from binderclip.server.auth import NoAgent, TheActor, ThePerson, cookie_name
from binderclip.server.requests import AnyLimit, Body, Id, Key, Position, cut, once
from binderclip.server.schema import answer, answers, page_of
from binderclip.server.site import TheSite
from binderclip.store.companies import Companies
from binderclip.store.environments import Environments
from binderclip.store.secrets import Secrets
from binderclip.workspaces.environment import check_environment
from binderclip.workspaces.ssh import Ssh

router = APIRouter(tags=["settings"])
EnvironmentPage = page_of("EnvironmentPage", Environment)
SecretPage = page_of("SecretPage", SecretView)
_Name = Annotated[str, Field(min_length=1, max_length=200)]
_CompanyId = Annotated[str | None, Query(alias="companyId", max_length=64)]
_SecretName = Annotated[str, Path(min_length=1, max_length=300)]


class Access(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """`person` holds the token, `local` is this machine's user without it, `agent` a run's."""

    kind: Literal["person", "local", "agent"]


class NewEnvironment(Body):
    name: _Name
    kind: Literal["local", "ssh"] = "local"
    config: dict[str, Any] = Field(default_factory=dict)
    company_id: Annotated[str, Field(max_length=64)] | None = None


class EnvironmentChange(Body):
    name: _Name | None = None
    config: dict[str, Any] | None = None


class EnvironmentTest(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """Whether runs can work in an environment, and what is missing there (E4)."""

    environment_id: str
    status: Status
    checks: tuple[Check, ...]
    tested_at: str


class TestWish(Body):
    """Programs that runs will need there."""

    commands: list[Annotated[str, Field(min_length=1, max_length=1000)]] = Field(
        default_factory=list, max_length=100
    )


class SecretValue(Body):
    value: Annotated[str, Field(min_length=1, max_length=100_000)]
    company_id: Annotated[str, Field(max_length=64)] | None = None


@router.get("/api/access", responses=answers(Access))
def access(actor: TheActor) -> Response:
    """Who asks, as the server sees it: what only a person may do needs the person's token."""
    return answer(Access(kind=actor.kind))


@router.delete("/api/access", status_code=204)
def leave(request: Request, _: NoAgent) -> Response:
    """Let this browser forget the person's token."""
    response = Response(status_code=204)
    response.delete_cookie(cookie_name(request.url.port), httponly=True, samesite="strict")
    return response


@router.get("/api/environments", responses=answers(EnvironmentPage))
def list_environments(
    site: TheSite,
    actor: TheActor,
    request: Request,
    company_id: _CompanyId = None,
    limit: AnyLimit = None,
    cursor: Position = 0,
) -> Response:
    """Where runs may work besides this machine, by name."""
    with site.database.reading() as connection:
        found = Environments(connection).list(actor.scope(company_id))
    page, more = cut(found, limit, cursor)
    return polled(request, EnvironmentPage(items=page, next=more))


@router.post("/api/environments", status_code=201, responses=answers(Environment, 201))
def create_environment(
    site: TheSite, person: ThePerson, body: NewEnvironment, key: Key = None
) -> Response:
    """Add an environment; a config that cannot work is refused, field by field."""
    company_id = body.company_id or LOCAL_COMPANY
    wanted = Environment(
        id="", company_id=company_id, name=body.name, kind=body.kind, config=body.config
    )

    _refuse_wrong(wanted)

    def make() -> Response:
        with site.database.writing() as connection:
            Companies(connection).get(company_id)
            return answer(Environments(connection).create(wanted, site.now()), 201)

    return once(site, person, "environments", key, body, make)


@router.get("/api/environments/{environment_id}", responses=answers(Environment))
def show_environment(
    site: TheSite, actor: TheActor, request: Request, environment_id: Id
) -> Response:
    """One environment."""
    with site.database.reading() as connection:
        found = Environments(connection).get(environment_id)
    actor.must_see(found.company_id, f"environment {environment_id!r}")
    return polled(request, found)


@router.patch("/api/environments/{environment_id}", responses=answers(Environment))
def change_environment(
    site: TheSite, _: ThePerson, environment_id: Id, body: EnvironmentChange
) -> Response:
    """Change an environment."""
    fields = {name: value for name, value in body.given().items() if value is not None}
    with site.database.writing() as connection:
        environments = Environments(connection)
        _refuse_wrong(msgspec.structs.replace(environments.get(environment_id), **fields))
        return answer(environments.change(environment_id, site.now(), **fields))


@router.delete("/api/environments/{environment_id}", status_code=204)
def remove_environment(site: TheSite, _: ThePerson, environment_id: Id) -> Response:
    """Remove an environment that nothing names."""
    with site.database.writing() as connection:
        Environments(connection).remove(environment_id)
    return Response(status_code=204)


@router.post("/api/environments/{environment_id}/test", responses=answers(EnvironmentTest))
def test_environment(
    site: TheSite, _: ThePerson, environment_id: Id, body: TestWish | None = None
) -> Response:
    """Look whether runs can work there: connection, host key, Python, git, programs."""
    with site.database.reading() as connection:
        found = Environments(connection).get(environment_id)
    checks = _checks(found, body.commands if body else [])
    tested = EnvironmentTest(
        environment_id=found.id, status=verdict(checks), checks=checks, tested_at=site.now()
    )
    return answer(tested)


@router.get("/api/secrets", responses=answers(SecretPage))
def list_secrets(
    site: TheSite,
    actor: NoAgent,
    request: Request,
    company_id: _CompanyId = None,
    limit: AnyLimit = None,
    cursor: Position = 0,
) -> Response:
    """The names of secrets; values are never told."""
    with site.database.reading() as connection:
        found = Secrets(connection, site.home).list(company_id or LOCAL_COMPANY)
    page, more = cut(found, limit, cursor)
    return polled(request, SecretPage(items=page, next=more))


@router.put("/api/secrets/{name:path}", responses=answers(SecretView))
def set_secret(site: TheSite, _: ThePerson, name: _SecretName, body: SecretValue) -> Response:
    """Keep a value under a name; one that was there is replaced."""
    company_id = body.company_id or LOCAL_COMPANY
    with site.database.writing() as connection:
        Companies(connection).get(company_id)
        secrets = Secrets(connection, site.home)
        return answer(secrets.set(company_id, name, body.value, site.now()))


@router.delete("/api/secrets/{name:path}", status_code=204)
def remove_secret(
    site: TheSite, _: ThePerson, name: _SecretName, company_id: _CompanyId = None
) -> Response:
    """Forget a secret."""
    with site.database.writing() as connection:
        Secrets(connection, site.home).remove(company_id or LOCAL_COMPANY, name)
    return Response(status_code=204)


def _refuse_wrong(environment: Environment) -> None:
    """Name the wrong field when it is written, not when a run needs it; an empty one may wait."""
    if environment.config:
        _target(environment)


def _target(environment: Environment) -> Ssh | None:
    try:
        return environment_target(environment)
    except (TypeError, ValueError) as problem:
        raise ConfigError(f"The environment's config is wrong: {problem}.") from problem


def _checks(environment: Environment, commands: list[str]) -> tuple[Check, ...]:
    ssh = _target(environment)
    if ssh is None:
        return (Check(code="local", level="info", message="Runs work on this machine."),)
    return tuple(check_environment(ssh, commands))
