"""Skills in the words of plugins: lent to them, placed by them, seen by them (K1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from binderclip.contract.wire import to_plain
from binderclip.plugins.form import nested
from binderclip.sdk.adapter import Call
from binderclip.sdk.direct import RUNTIME_SKILLS

WANTED = "paperclipSkillSync"


def skill_entries(skills: Sequence[Path]) -> list[dict[str, str]]:
    """Skills as Paperclip's adapters read them from their config."""
    return [
        {"key": path.name, "runtimeName": path.name, "name": path.name, "source": str(path)}
        for path in skills
    ]


def lent(entries: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    """The keys of a config that lend skills to an npm adapter."""
    names = [each["key"] for each in entries]
    return {RUNTIME_SKILLS: list(entries), WANTED: {"desiredSkills": names}}


def npm_wish(call: Call, type: str) -> dict[str, Any]:
    """`syncSkills(context, desired)` of an npm adapter."""
    entries = skill_entries(call.skills)
    agent = call.request.agent
    context = {
        "agentId": agent.id,
        "companyId": agent.company_id,
        "adapterType": type,
        "config": {**nested(to_plain(call.request.config)), "cwd": str(call.cwd), **lent(entries)},
    }
    args = [context, [each["key"] for each in entries]]
    return {"name": "syncSkills", "args": args, "env": call.env}


def python_wish(call: Call) -> dict[str, Any]:
    """`sync_skills(call)` of a Python plugin."""
    return {
        "request": to_plain(call.request),
        "env": call.env,
        "cwd": str(call.cwd),
        "prompt": call.prompt,
        "scratch": str(call.scratch),
        "skills": [str(skill) for skill in call.skills],
    }


def names_of(found: Any) -> list[str]:
    """The names in a list of skills, or in Paperclip's snapshot of them."""
    listed = found.get("entries") if isinstance(found, Mapping) else found
    return [name for each in _list(listed) if (name := _name(each))]


def warnings_of(snapshot: Any) -> list[str]:
    """What an adapter had to say about the skills that it placed."""
    told = snapshot.get("warnings") if isinstance(snapshot, Mapping) else None
    return [text[:500] for text in _list(told) if isinstance(text, str) and text.strip()][:20]


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _name(each: Any) -> str | None:
    if isinstance(each, Mapping):
        each = each.get("key") or each.get("name") or each.get("runtimeName")
    return each if isinstance(each, str) and each else None
