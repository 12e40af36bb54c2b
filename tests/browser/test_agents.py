"""Making, changing and waking agents in a real browser."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import count

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.browser.stage import Stage

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]
Open = Callable[..., Page]
_numbers = count(1)


@pytest.fixture
def greeter(stage: Stage) -> str:
    config = {
        "command": "bash",
        "args": ["-c", "echo hello"],
        "cwd": str(stage.cwd),
        "stranger": {"kept": True},
    }
    name = f"Greeter {next(_numbers)}"
    body = {"name": name, "adapterType": "process", "adapterConfig": config}
    answer = httpx.post(f"{stage.address}/api/agents", json=body)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def test_an_agent_is_made_by_the_form_of_its_adapter_and_woken(
    open_page: Open, stage: Stage
) -> None:
    """F1, F3: the form is drawn from the schema; one POST makes the agent; waking starts a run."""
    page = open_page("/agents/new")
    page.get_by_role("button", name=re.compile("^Adapter")).click()
    page.get_by_role("option", name=re.compile("process")).click()
    expect(page.get_by_role("listbox")).to_have_count(0)
    page.get_by_label("Name").fill("Echo")
    page.get_by_label("Working directory").fill(str(stage.cwd))
    page.get_by_role("textbox", name="Command").fill("echo")
    page.get_by_role("button", name="Create agent").click()
    expect(page.get_by_role("heading", name="Echo")).to_be_visible()
    page.get_by_label("Wake now").fill("Say it")
    page.get_by_role("button", name="Wake").click()
    expect(page).to_have_url(re.compile("/runs/"))
    expect(page.locator("header")).to_contain_text("succeeded")
    expect(page.locator("header")).to_contain_text("Echo")


def test_the_menu_of_adapters_closes_by_escape_and_outside(open_page: Open) -> None:
    """The menu never stays in the way."""
    page = open_page("/agents/new")
    menu = page.get_by_role("button", name=re.compile("^Adapter"))
    for close in (lambda: page.keyboard.press("Escape"), lambda: page.mouse.click(1200, 60)):
        menu.click()
        expect(page.get_by_role("listbox")).to_be_visible()
        close()
        expect(page.get_by_role("listbox")).to_have_count(0)


def test_a_field_commits_when_it_is_left_and_a_change_can_be_discarded(
    open_page: Open, stage: Stage, greeter: str
) -> None:
    """F2, F3: only what changed is marked and sent; stored keys that nobody knows stay."""
    page = open_page(f"/agents/{greeter}?tab=config")
    command = page.get_by_role("textbox", name="Command")
    expect(command).to_have_value("bash")
    save = page.get_by_role("button", name=re.compile("^Save"))
    command.fill("sh")
    expect(save).to_be_disabled()
    command.press("Escape")
    expect(command).to_have_value("bash")
    command.fill("sh")
    command.press("Enter")
    expect(page.get_by_text("changed", exact=True)).to_be_visible()
    page.get_by_role("button", name="Discard the change of Command").click()
    expect(command).to_have_value("bash")
    command.fill("dash")
    command.blur()
    page.get_by_role("button", name="Save 1 change").click()
    expect(page.get_by_role("button", name="Saved")).to_be_disabled()
    kept = httpx.get(f"{stage.address}/api/agents/{greeter}").json()["adapterConfig"]
    assert kept["command"] == "dash"
    assert kept["stranger"] == {"kept": True}


def test_the_environment_test_shows_the_worst_first(open_page: Open, greeter: str) -> None:
    """E1: results by level, with hints."""
    page = open_page(f"/agents/{greeter}?tab=config")
    command = page.get_by_role("textbox", name="Command")
    command.fill("no-such-program-here")
    command.press("Enter")
    page.get_by_role("button", name="Test environment").click()
    expect(page.get_by_text("It cannot run here yet.")).to_be_visible()
    expect(page.get_by_label("Environment test").locator("li").first).to_contain_text(
        "no-such-program-here"
    )


def test_a_paused_agent_says_so_and_cannot_be_woken(open_page: Open, greeter: str) -> None:
    """R2: paused is visible, and resumes by a click."""
    page = open_page(f"/agents/{greeter}")
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("button", name="Wake")).to_be_disabled()
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_role("button", name="Wake")).to_be_enabled()
    page.get_by_role("link", name="Agents").click()
    expect(page.get_by_role("link", name=re.compile("Greeter")).first).to_be_visible()
