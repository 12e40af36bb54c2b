"""K2: the shipped skills with a real Claude Code on a real server: it comments, asks, finishes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from binderclip.runs.lending import shipped_skills
from binderclip.sdk.skills import check_skill, skill_summary
from binderclip.sdk.testing.scripted_model import ScriptedModel, Shell, Turn
from tests.live.agent import missing
from tests.live.install import search_path
from tests.live.runtimes import CLAUDE
from tests.server.conftest import serving

SKILLS = {path.name: (path / "SKILL.md").read_text("utf-8") for path in shipped_skills()}


def function(name: str) -> str:
    """The shell function that a skill defines, as an agent would copy it."""
    (found,) = re.findall(r"^api\(\).*?^}", SKILLS[name], re.M | re.S)
    return str(found)


def says(name: str, *lines: str) -> Shell:
    return Shell("\n".join([function(name), *lines]))


def examples(name: str, verb: str) -> list[str]:
    """The calls of a kind that a skill shows."""
    blocks = re.findall(r"```bash\n(.*?)```", SKILLS[name], re.S)
    calls = re.findall(r"^api [A-Z]+ .*?(?=^api |\Z)", "\n".join(blocks), re.M | re.S)
    return [call.strip() for call in calls if verb in call]


def test_the_skills_are_shipped_with_a_name_and_a_time_to_load_them() -> None:
    assert sorted(SKILLS) == ["paperclip", "paperclip-create-agent"]
    for path in shipped_skills():
        check_skill(path)
        name, description = skill_summary(path)
        assert name == path.name
        assert description.startswith("Use when")


@pytest.fixture
def woken(tmp_path: Path) -> Any:
    """A server, a scripted model and a way to have Claude do what a skill says."""
    if problem := missing(CLAUDE):
        pytest.fail(problem)
    (tmp_path / "work").mkdir()
    (tmp_path / "empty").mkdir()
    env = {"PATH": search_path("claude"), "HOME": str(tmp_path / "empty"), "LANG": "C.UTF-8"}

    def run(*turns: Turn) -> tuple[dict[str, Any], str]:
        with (
            ScriptedModel([*turns, Turn(text="Finished.")]) as model,
            serving(tmp_path / "home", env={**env, **CLAUDE.env(model.url)}) as served,
        ):
            config = {
                **CLAUDE.config,
                "cwd": str(tmp_path / "work"),
                "env": {"IS_SANDBOX": "1", "CLAUDE_CODE_MAX_RETRIES": "1"},
            }
            body = {"name": "Claude", "adapterType": "claude_local", "adapterConfig": config}
            agent = served.post("/api/agents", body, 201)["id"]
            task = {"title": "A task", "assigneeAgentId": agent, "workspace": "cwd"}
            issue = served.post("/api/issues", task, 201)["id"]
            (queued,) = served.get(f"/api/runs?issueId={issue}")["items"]
            run = served.ended(queued["id"])
            assert run["status"] == "succeeded", run["errorMessage"]
            after = {
                "issue": served.get(f"/api/issues/{issue}"),
                "comments": served.get(f"/api/issues/{issue}/comments"),
                "interactions": served.get(f"/api/issues/{issue}/interactions"),
                "approvals": served.get("/api/approvals")["items"],
                "run": run,
                "log": served.client.get(f"/api/runs/{run['id']}/log").text,
            }
            return after, json.dumps([request.body for request in model.requests])

    return run


@pytest.mark.live
def test_a_real_agent_reports_asks_and_finishes_by_the_skill(woken: Any) -> None:
    comment = examples("paperclip", "comments\" '{")[0]
    confirm = examples("paperclip", "request_confirmation")[0]
    done = examples("paperclip", '"status": "done"')[0]
    after, asked = woken(
        Turn(
            calls=(
                says(
                    "paperclip",
                    'api GET "/issues/$PAPERCLIP_TASK_ID"',
                    'api POST "/issues/$PAPERCLIP_TASK_ID/checkout" "{}"',
                ),
            )
        ),
        Turn(calls=(says("paperclip", comment),)),
        Turn(calls=(says("paperclip", confirm),)),
        Turn(calls=(says("paperclip", done),)),
    )
    assert after["issue"]["status"] == "done"
    bodies = [one["body"] for one in after["comments"]]
    assert bodies[0].startswith("Found the cause")
    assert bodies[1].startswith("Fixed in store.py")
    (question,) = after["interactions"]
    assert (question["kind"], question["status"]) == ("request_confirmation", "open")
    assert question["runId"] == after["run"]["id"]
    assert skill_summary(shipped_skills()[0])[1][:60] in asked


@pytest.mark.live
def test_a_real_agent_proposes_another_by_the_skill(woken: Any) -> None:
    (propose,) = examples("paperclip-create-agent", 'POST "/agents"')
    after, _ = woken(
        Turn(calls=(says("paperclip-create-agent", propose),)),
    )
    (approval,) = after["approvals"]
    assert (approval["kind"], approval["status"]) == ("hire_agent", "pending")
    assert approval["payload"]["name"] == "Docs keeper"
