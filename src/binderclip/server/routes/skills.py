"""The skills of an agent: what its runs are handed, and what its runtime finds by itself (K1).

Nothing is written here: a run puts them where its runtime looks, never into its directory.
"""

from __future__ import annotations

import os
from pathlib import Path

from fastapi import APIRouter, Response

from binderclip.contract.agent import Agent
from binderclip.contract.check import CheckRequest
from binderclip.contract.errors import BinderclipError
from binderclip.contract.wire import Wire
from binderclip.plugins.registry import load_adapter
from binderclip.runs.lending import shipped_skills
from binderclip.sdk.adapter import Adapter
from binderclip.sdk.checks import check_call
from binderclip.sdk.skills import skill_summary
from binderclip.server.auth import NoAgent
from binderclip.server.requests import Id
from binderclip.server.routes.adapters import opened
from binderclip.server.schema import answer, answers
from binderclip.server.site import Site, TheSite
from binderclip.store.agents import Agents

router = APIRouter(tags=["agents"])


class SkillView(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """A skill by the words that stand in the base prompt, and the folder that it comes from."""

    name: str
    description: str
    source: str


class AgentSkills(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """The skills that the next run of an agent has; empty where its adapter takes none."""

    supported: bool
    handed: tuple[SkillView, ...]
    """Linked for the runtime at the start of every run."""
    found: tuple[str, ...]
    """What the runtime sees by itself on this machine."""
    problem: str | None
    """Why the adapter could not tell what it finds, if so."""


@router.get("/api/agents/{agent_id}/skills", responses=answers(AgentSkills))
def agent_skills(site: TheSite, actor: NoAgent, agent_id: Id) -> Response:
    """The skills that the next run of an agent has, where its adapter takes any (C1)."""
    with site.database.reading() as connection:
        agent = Agents(connection).get(agent_id)
    adapter = load_adapter(agent.adapter_type)
    if not adapter.capabilities.supports_skills:
        return answer(AgentSkills(supported=False, handed=(), found=(), problem=None))
    found, problem = _found(site, agent, adapter)
    handed = tuple(_view(path) for path in shipped_skills())
    return answer(AgentSkills(supported=True, handed=handed, found=found, problem=problem))


def _view(path: Path) -> SkillView:
    name, description = skill_summary(path)
    return SkillView(name=name, description=description, source=str(path))


def _found(site: Site, agent: Agent, adapter: Adapter) -> tuple[tuple[str, ...], str | None]:
    try:
        config = opened(site, agent.company_id, agent.adapter_config)
        request = CheckRequest(
            company_id=agent.company_id, adapter_type=agent.adapter_type, config=config
        )
        return tuple(adapter.list_skills(check_call(adapter, request, os.environ))), None
    except (BinderclipError, OSError) as problem:
        return (), str(problem)
