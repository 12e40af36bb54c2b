"""Prompt templates: `{{path.to.value}}` with missing values rendered empty (A10)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from binderclip.contract.run import ExecutionRequest

DEFAULT_PROMPT = "You are agent {{agent.id}} ({{agent.name}}). Continue your Paperclip work."

HANDOFF = "paperclipSessionHandoffMarkdown"
"""Where a run's context holds what the session before it left to say (S5)."""

_PLACEHOLDER = re.compile(r"\{\{\s*([\w.$-]+)\s*\}\}")


def render_template(template: str, data: Mapping[str, Any]) -> str:
    """Replace each placeholder by the value at its dotted path."""
    return _PLACEHOLDER.sub(lambda match: _as_text(_look_up(data, match[1])), template)


def render_prompt(request: ExecutionRequest, template: str | None) -> str:
    """The prompt of a run: its own text, unless a template wants to embed it, else the template."""
    own = request.context.get("promptText")
    if isinstance(own, str) and own.strip() and not _embeds_prompt(template):
        prompt = own
    else:
        prompt = render_template(template or DEFAULT_PROMPT, prompt_data(request))
    note = request.context.get(HANDOFF)
    if isinstance(note, str) and note.strip() and HANDOFF not in (template or ""):
        return f"{note.strip()}\n\n{prompt}"
    return prompt


def prompt_data(request: ExecutionRequest) -> dict[str, Any]:
    """What a template can name: agentId, companyId, runId, company, agent, run, context."""
    agent = request.agent
    return {
        "agentId": agent.id,
        "companyId": agent.company_id,
        "runId": request.run_id,
        "company": {"id": agent.company_id},
        "agent": {
            "id": agent.id,
            "companyId": agent.company_id,
            "name": agent.name,
            "adapterType": agent.adapter_type,
        },
        "run": {"id": request.run_id, "source": request.context.get("wakeReason", "")},
        "context": request.context,
        "prompt": request.context.get("promptText", ""),
    }


def _embeds_prompt(template: str | None) -> bool:
    names = _PLACEHOLDER.findall(template or "")
    return "prompt" in names or "context.promptText" in names


def _look_up(data: Any, path: str) -> Any:
    for part in path.split("."):
        if isinstance(data, Mapping):
            data = data.get(part)
        elif isinstance(data, list | tuple) and part.isdigit() and int(part) < len(data):
            data = data[int(part)]
        else:
            return None
    return data


def _as_text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else str(value)
