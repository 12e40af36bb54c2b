"""Companies: the scope of agents and tasks, and the policy that agents may only narrow."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from pydantic import Field

from binderclip.contract.company import Company, NetworkCeiling
from binderclip.server.answers import polled
from binderclip.server.auth import NoAgent, TheActor, ThePerson
from binderclip.server.requests import AnyLimit, Body, Id, Key, Position, cut, once
from binderclip.server.schema import answer, answers, page_of
from binderclip.server.site import TheSite
from binderclip.store.companies import Companies

router = APIRouter(prefix="/api/companies", tags=["companies"])
CompanyPage = page_of("CompanyPage", Company)
Name = Annotated[str, Field(min_length=1, max_length=200)]


class NewCompany(Body):
    name: Name


class CompanyChange(Body):
    name: Name | None = None
    forbid_dangerous: bool | None = None
    network: NetworkCeiling | None = None


@router.get("", responses=answers(CompanyPage))
def list_companies(
    site: TheSite,
    actor: TheActor,
    request: Request,
    q: Annotated[str, Query(max_length=200, description="Words of its name.")] = "",
    limit: AnyLimit = None,
    cursor: Position = 0,
) -> Response:
    """Every company that the asker may see, the oldest first."""
    with site.database.reading() as connection:
        found = Companies(connection).list()
    wanted = q.casefold()
    seen = [
        one for one in found if actor.company_id in (None, one.id) and wanted in one.name.casefold()
    ]
    page, more = cut(seen, limit, cursor)
    return polled(request, CompanyPage(items=page, next=more))


@router.post("", status_code=201, responses=answers(Company, 201))
def create_company(site: TheSite, actor: NoAgent, body: NewCompany, key: Key = None) -> Response:
    """Add a company."""

    def make() -> Response:
        with site.database.writing() as connection:
            return answer(Companies(connection).create(body.name, site.now()), 201)

    return once(site, actor, "companies", key, body, make)


@router.get("/{company_id}", responses=answers(Company))
def show_company(site: TheSite, actor: TheActor, request: Request, company_id: Id) -> Response:
    """One company."""
    actor.must_see(company_id, f"company {company_id!r}")
    with site.database.reading() as connection:
        return polled(request, Companies(connection).get(company_id))


@router.patch("/{company_id}", responses=answers(Company))
def change_company(site: TheSite, _: ThePerson, company_id: Id, body: CompanyChange) -> Response:
    """Change a company's name or policy."""
    fields = {name: value for name, value in body.given().items() if value is not None}
    with site.database.writing() as connection:
        return answer(Companies(connection).change(company_id, site.now(), **fields))
