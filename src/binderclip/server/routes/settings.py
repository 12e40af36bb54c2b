"""What only a person sets: environments and secrets."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import Field

from binderclip.contract.company import LOCAL_COMPANY, Environment, SecretView
from binderclip.server.answers import polled
from binderclip.server.auth import NoAgent, TheActor, ThePerson
from binderclip.server.requests import Body, Id, Key, once
from binderclip.server.schema import answer, answers, page_of
from binderclip.server.site import TheSite
from binderclip.store.companies import Companies
from binderclip.store.environments import Environments
from binderclip.store.secrets import Secrets

router = APIRouter(tags=["settings"])
EnvironmentPage = page_of("EnvironmentPage", Environment)
SecretPage = page_of("SecretPage", SecretView)
_Name = Annotated[str, Field(min_length=1, max_length=200)]
_CompanyId = Annotated[str | None, Query(alias="companyId", max_length=64)]
_SecretName = Annotated[str, Path(min_length=1, max_length=300)]


class NewEnvironment(Body):
    name: _Name
    kind: Literal["local", "ssh"] = "local"
    config: dict[str, Any] = Field(default_factory=dict)
    company_id: Annotated[str, Field(max_length=64)] | None = None


class EnvironmentChange(Body):
    name: _Name | None = None
    config: dict[str, Any] | None = None


class SecretValue(Body):
    value: Annotated[str, Field(min_length=1, max_length=100_000)]
    company_id: Annotated[str, Field(max_length=64)] | None = None


@router.get("/api/environments", responses=answers(EnvironmentPage))
def list_environments(
    site: TheSite, actor: TheActor, request: Request, company_id: _CompanyId = None
) -> Response:
    """Where runs may work besides this machine."""
    with site.database.reading() as connection:
        found = Environments(connection).list(actor.scope(company_id))
    return polled(request, EnvironmentPage(items=found, next=None))


@router.post("/api/environments", status_code=201, responses=answers(Environment, 201))
def create_environment(
    site: TheSite, person: ThePerson, body: NewEnvironment, key: Key = None
) -> Response:
    """Add an environment."""
    company_id = body.company_id or LOCAL_COMPANY
    wanted = Environment(
        id="", company_id=company_id, name=body.name, kind=body.kind, config=body.config
    )

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
        return answer(Environments(connection).change(environment_id, site.now(), **fields))


@router.delete("/api/environments/{environment_id}", status_code=204)
def remove_environment(site: TheSite, _: ThePerson, environment_id: Id) -> Response:
    """Remove an environment that nothing names."""
    with site.database.writing() as connection:
        Environments(connection).remove(environment_id)
    return Response(status_code=204)


@router.get("/api/secrets", responses=answers(SecretPage))
def list_secrets(
    site: TheSite, actor: NoAgent, request: Request, company_id: _CompanyId = None
) -> Response:
    """The names of secrets; values are never told."""
    with site.database.reading() as connection:
        found = Secrets(connection, site.home).list(company_id or LOCAL_COMPANY)
    return polled(request, SecretPage(items=found, next=None))


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
