"""Adapters: which there are, how they are configured, whether they can run here."""

from __future__ import annotations

import os
from typing import Annotated, Any, Literal

import msgspec
from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import Field

from binderclip.contract.check import CheckRequest, EnvironmentReport
from binderclip.contract.company import LOCAL_COMPANY
from binderclip.contract.config import ConfigSchema
from binderclip.contract.errors import AdapterNotFound
from binderclip.contract.manifest import AdapterView
from binderclip.plugins.models import ModelList
from binderclip.plugins.registry import list_adapters, load_adapter
from binderclip.sdk.config import read_config
from binderclip.server.answers import polled
from binderclip.server.auth import Actor, NoAgent, TheActor, not_agent
from binderclip.server.errors import Refused
from binderclip.server.requests import Body
from binderclip.server.schema import answer, answers
from binderclip.server.site import Site, TheSite
from binderclip.store.agents import Agents
from binderclip.store.secrets import Secrets, replace_references

router = APIRouter(tags=["adapters"])
Type = Annotated[str, Path(max_length=200, pattern=r"^[a-z][a-z0-9_]*$")]


class AdapterDetail(AdapterView, frozen=True, kw_only=True, omit_defaults=False):
    """An adapter with the document that says when to use it."""

    agent_configuration_doc: str = ""
    runtime: str = ""
    command: str = ""
    usage_told: str = "never"
    pass_env: tuple[str, ...] = ()


class EnvironmentTest(Body):
    config: dict[str, Any] = Field(default_factory=dict)
    depth: Literal["quick", "live"] = "quick"
    company_id: str | None = None


@router.get("/api/adapters", responses=answers(list[AdapterView]))
def adapters(request: Request, _: TheActor) -> Response:
    """Every adapter; a broken one is listed with its problem."""
    return polled(request, list_adapters())


@router.get("/api/adapters/{type}", responses=answers(AdapterDetail))
def show_adapter(request: Request, _: TheActor, type: Type) -> Response:
    """One adapter, with its document."""
    view = _view(type)
    adapter = load_adapter(type)
    fields = {name: getattr(view, name) for name in view.__struct_fields__}
    manifest = adapter.manifest
    detail = AdapterDetail(
        **fields,
        agent_configuration_doc=adapter.agent_configuration_doc(),
        runtime=manifest.runtime,
        command=manifest.command,
        usage_told=manifest.usage_told,
        pass_env=manifest.pass_env,
    )
    return polled(request, msgspec.structs.replace(detail, capabilities=adapter.capabilities))


@router.get("/api/adapters/{type}/config-schema", responses=answers(ConfigSchema))
def config_schema(request: Request, _: TheActor, type: Type) -> Response:
    """The form fields and the JSON Schema of an adapter's configuration (F3)."""
    return polled(request, load_adapter(type).config_schema())


@router.get("/api/adapters/{type}/models", responses=answers(ModelList))
def models(
    site: TheSite,
    request: Request,
    actor: TheActor,
    type: Type,
    refresh: Annotated[bool, Query()] = False,
    agent_id: Annotated[str | None, Query(alias="agentId", max_length=64)] = None,
) -> Response:
    """The models to choose from, asked of the runtime; kept for ten minutes unless refreshed.

    `agentId` asks with the configuration of that agent, for runtimes that cannot tell without one.
    """
    asked = CheckRequest(company_id=LOCAL_COMPANY, adapter_type=type, config={})
    if agent_id is not None:
        asked = _as_agent(site, not_agent(actor), type, agent_id)
    found = site.models.get(load_adapter(type), asked, os.environ, refresh=refresh)
    return polled(request, found)


@router.post("/api/adapters/{type}/test-environment", responses=answers(EnvironmentReport))
def check_environment(
    site: TheSite, actor: NoAgent, type: Type, body: EnvironmentTest | None = None
) -> Response:
    """Test whether the adapter can run here; `live` also makes a tiny real call (E1, E2)."""
    asked = body or EnvironmentTest()
    adapter = load_adapter(type)
    company_id = asked.company_id or LOCAL_COMPANY
    config = opened(site, company_id, asked.config)
    read_config(adapter.Config, config)
    request = CheckRequest(
        company_id=company_id, adapter_type=type, config=config, depth=asked.depth
    )
    return answer(adapter.test_environment(request, os.environ, site.now()))


def _as_agent(site: Site, actor: Actor, type: str, agent_id: str) -> CheckRequest:
    """A question with an agent's own configuration, its secrets in place."""
    with site.database.reading() as connection:
        agent = Agents(connection).get(agent_id)
    actor.must_see(agent.company_id, f"agent {agent_id!r}")
    if agent.adapter_type != type:
        message = f"That agent runs by {agent.adapter_type}, not by {type}."
        raise Refused(422, "invalid_request", message, fields={"agentId": message})
    config = opened(site, agent.company_id, agent.adapter_config)
    return CheckRequest(company_id=agent.company_id, adapter_type=type, config=config)


def _view(type: str) -> AdapterView:
    for view in list_adapters():
        if view.type == type:
            return view
    load_adapter(type)
    raise AdapterNotFound(f"No adapter has the type {type!r}.")


def opened(site: Site, company_id: str, config: dict[str, Any]) -> dict[str, Any]:
    """A configuration with its secrets in place of their references."""
    with site.database.reading() as connection:
        secrets = Secrets(connection, site.home)
        found: dict[str, Any] = replace_references(
            config, lambda name: secrets.open(company_id, name)
        )
    return found
