"""A10: prompts from templates; missing values render empty."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from binderclip.contract.run import AgentRef, ExecutionRequest, RuntimeSession
from binderclip.sdk import DEFAULT_PROMPT, render_prompt, render_template


def request(**context: Any) -> ExecutionRequest:
    agent = AgentRef(id="a-1", company_id="c-1", name="Ada", adapter_type="process")
    return ExecutionRequest(
        run_id="r-1", agent=agent, runtime=RuntimeSession(), config={}, context=context
    )


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{{agentId}} {{companyId}} {{runId}}", "a-1 c-1 r-1"),
        ("{{agent.id}} {{agent.name}} {{ agent.companyId }}", "a-1 Ada c-1"),
        ("{{company.id}} {{run.id}} {{run.source}}", "c-1 r-1 timer"),
        ("{{context.taskId}}/{{context.issueIds.1}}", "t/i2"),
        ("{{context.flag}} {{context.count}}", "true 3"),
        ("{{context.nested}}", '{"a": "ü"}'),
        ("<{{missing}}{{agent.nothing}}{{context.taskId.deeper}}{{context.issueIds.9}}>", "<>"),
        ("{{}} {{ }} {{a b}} {single} {{unclosed", "{{}} {{ }} {{a b}} {single} {{unclosed"),
    ],
)
def test_placeholders_are_paths(template: str, text: str) -> None:
    """A10: agentId, companyId, runId, company, agent, run, context."""
    asked = request(
        taskId="t", wakeReason="timer", issueIds=["i1", "i2"], flag=True, count=3, nested={"a": "ü"}
    )
    assert render_prompt(asked, template) == text


def test_the_default_says_who_the_agent_is() -> None:
    """A10: the default prompt of the contract."""
    assert DEFAULT_PROMPT == (
        "You are agent {{agent.id}} ({{agent.name}}). Continue your Paperclip work."
    )
    expected = "You are agent a-1 (Ada). Continue your Paperclip work."
    assert render_prompt(request(), None) == expected == render_prompt(request(), "")


def test_a_runs_own_prompt_goes_first() -> None:
    asked = request(promptText="Fix it. {{agent.id}}")
    assert render_prompt(asked, "Template") == "Fix it. {{agent.id}}"
    assert render_prompt(asked, None) == "Fix it. {{agent.id}}"


@pytest.mark.parametrize("name", ["prompt", "context.promptText"])
def test_a_template_can_embed_the_runs_prompt(name: str) -> None:
    asked = request(promptText="Fix it.")
    assert render_prompt(asked, f"As {{{{agent.name}}}}: {{{{{name}}}}}") == "As Ada: Fix it."


def test_a_blank_prompt_is_no_prompt() -> None:
    assert render_prompt(request(promptText="  \n"), "T") == "T"


@given(st.text())
def test_values_are_not_templates(value: str) -> None:
    """A8: text from outside is inserted as it is, never rendered again."""
    assert render_template("{{x}}", {"x": value, "secret": "no"}) == value
