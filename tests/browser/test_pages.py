"""Adapters, costs and settings in a real browser; and what holds for every page."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.axe import seriously_wrong
from tests.browser.stage import Stage
from tests.plugins.conftest import write_python

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]
Open = Callable[..., Page]
PAGES = ("/runs", "/tasks", "/tasks?view=board", "/agents", "/agents/new", "/adapters", "/costs")
PAGES += ("/settings", "/workspaces", "/adapters/playground")


def as_person(page: Page, stage: Stage, path: str) -> None:
    token = (stage.home / "token").read_text().strip()
    page.goto(f"{stage.address}/?token={token}")
    page.goto(stage.address + path)


def test_adapters_show_what_they_can_and_are_disabled_by_a_person(
    open_page: Open, stage: Stage
) -> None:
    """C2, P2: badges come from capabilities; a refusal is told; a disabled one leaves the menu."""
    page = open_page("/adapters")
    row = page.get_by_role("listitem").filter(has_text="claude_local")
    expect(row).to_contain_text("instructions")
    http = page.get_by_role("button", name="HTTP endpoint")
    http.click()
    page.get_by_role("button", name="Disable").click()
    expect(page.get_by_role("alert")).to_be_visible()
    as_person(page, stage, "/adapters")
    http.click()
    page.get_by_role("button", name="Disable").click()
    expect(page.get_by_role("button", name="Enable")).to_be_visible()
    page.goto(f"{stage.address}/agents/new")
    page.get_by_role("button", name=re.compile("^Adapter")).click()
    expect(page.get_by_role("option").first).to_be_visible()
    expect(page.get_by_role("option", name="HTTP endpoint")).to_have_count(0)
    as_person(page, stage, "/adapters")
    http.click()
    page.get_by_role("button", name="Enable").click()
    expect(page.get_by_role("button", name="Disable")).to_be_visible()


def test_what_cannot_be_installed_says_why(open_page: Open, stage: Stage) -> None:
    """P5: a bad plugin is refused with a reason."""
    page = open_page("/adapters")
    as_person(page, stage, "/adapters")
    page.get_by_label("Install").fill(str(stage.folder / "nowhere"))
    page.get_by_role("button", name="Install").click()
    expect(page.get_by_role("alert")).to_contain_text("nowhere")


def test_unknown_cost_is_shown_as_unknown(open_page: Open, stage: Stage, told: str) -> None:
    """D10: money is exact or unknown, never 0 instead."""
    stage.listed(stage.call("run", "--adapter", "process", "--json", "--", "true"))
    page = open_page("/costs?by=adapterType")
    row = page.get_by_role("row").filter(has_text="Process")
    expect(row).to_contain_text("unknown")
    teller = page.get_by_role("row").filter(has_text="Story Teller")
    expect(teller).to_contain_text("$")
    page.get_by_label("Measured in").select_option("tokens")
    page.get_by_label("Time").select_option("365")
    page.get_by_label("Told apart by").select_option("model")
    expect(page).to_have_url(re.compile("by=model.*of=tokens.*days=365"))
    page.reload()
    expect(page.get_by_role("row").filter(has_text="sonnet-4-5")).to_contain_text(
        re.compile(r"\d+(\.\d)?k")
    )
    expect(page.get_by_text(re.compile("tokens in 365 days"))).to_be_visible()


def test_a_secret_is_kept_and_never_shown(open_page: Open, stage: Stage) -> None:
    """D8: the page knows names; values only go in."""
    page = open_page("/settings")
    as_person(page, stage, "/settings")
    page.get_by_label("Name of the secret").fill("DEPLOY_KEY")
    page.get_by_label("Value of the secret").fill("hunter2-hunter2")
    page.get_by_role("button", name="Keep").click()
    expect(page.get_by_role("listitem").filter(has_text="DEPLOY_KEY")).to_be_visible()
    assert "hunter2" not in page.content()
    assert "hunter2" not in httpx.get(f"{stage.address}/api/secrets").text


def test_the_theme_is_chosen_and_remembered(open_page: Open) -> None:
    page = open_page("/settings")
    page.get_by_label("dark", exact=True).check()
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("path", PAGES)
def test_every_page_is_accessible_and_fits(
    open_page: Open, told: str, path: str, width: int
) -> None:
    """Labels, contrast, roles; no sideways scrolling on a phone."""
    page = open_page(path, width, 844, "dark" if width == 390 else "light")
    expect(page.locator("main h1, main [role=row]").first).to_be_attached()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert seriously_wrong(page) == []


@pytest.mark.parametrize("width", [1280, 390])
def test_the_pages_of_one_agent_and_task_are_accessible_and_fit(
    open_as_person: Open, stage: Stage, width: int
) -> None:
    """Tabs, a question and a budget in use, at both widths and themes."""
    config = {"cwd": str(stage.cwd)}
    body = {"name": f"Looked at {width}", "adapterType": "claude_local", "adapterConfig": config}
    with httpx.Client(base_url=stage.address) as api:
        agent = api.post("/api/agents", json=body).json()["id"]
        task = api.post("/api/issues", json={"title": "Look", "body": "At **it**"}).json()["id"]
        asked = {"kind": "request_confirmation", "title": "Shall I?"}
        api.post(f"/api/issues/{task}/interactions", json=asked).raise_for_status()
    paths = [f"/agents/{agent}{tab}" for tab in ("", "?tab=config", "?tab=budget", "?tab=skills")]
    page = open_as_person("/runs", width, 844, "dark" if width == 1280 else "light")
    for path in [*paths, f"/tasks/{task}"]:
        page.goto(stage.address + path)
        expect(page.locator("main h2, main [role=region] p").first).to_be_attached()
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
        assert seriously_wrong(page) == [], path


def test_control_k_finds_runs_and_pages(open_page: Open, told: str) -> None:
    """Anything can be reached by its name."""
    page = open_page("/settings")
    expect(page.get_by_role("heading", name="Settings")).to_be_visible()
    page.keyboard.press("Control+k")
    page.keyboard.type("flaky")
    expect(page.get_by_role("option").first).to_contain_text("Fix the flaky test")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/runs/"))
    page.keyboard.press("Control+k")
    page.keyboard.type("adapt")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Adapters")).to_be_visible()


def adapter_row(page: Page, type: str) -> Locator:
    """The row of an adapter; steps of an installation, which name it too, are another list."""
    return page.locator("main ul > li").filter(has_text=type)


def test_a_plugin_is_installed_replaces_a_built_in_and_is_removed(
    open_as_person: Open, stage: Stage, tmp_path: Path
) -> None:
    """P2: all verbs by the page; which parser is in force and why stands with the adapter."""
    spec = str(write_python(tmp_path / "mine.py", "pi_local"))
    page = open_as_person("/adapters")
    page.get_by_label("Install", exact=True).fill(spec)
    page.get_by_role("button", name="Install").click()
    expect(page.get_by_role("alert")).to_contain_text("pi_local")
    page.get_by_label("may replace a built-in adapter").check()
    page.get_by_role("button", name="Install").click()
    row = adapter_row(page, "pi_local")
    expect(row).to_contain_text("overrides the built-in")
    row.locator("button.name").click()
    expect(row).to_contain_text("generic: the package declares none")
    row.get_by_role("button", name="Reload").click()
    row.get_by_role("button", name="Pause the override").click()
    expect(row).to_contain_text("override paused")
    row.get_by_role("button", name="Use the override").click()
    expect(row).to_contain_text("overrides the built-in")
    row.get_by_role("button", name="Remove").click()
    expect(row).to_contain_text("built in")
    expect(row).not_to_contain_text("overrides")


def test_a_plugin_is_upgraded_and_goes_back_a_version(
    open_as_person: Open, stage: Stage, tmp_path: Path
) -> None:
    """P2, D6: the version in force is told; there is only one step back; a refusal says why."""
    spec = write_python(tmp_path / "stepping.py", "stepping_agent")
    page = open_as_person("/adapters")
    page.get_by_label("Install", exact=True).fill(str(spec))
    page.get_by_role("button", name="Install").click()
    row = adapter_row(page, "stepping_agent")
    expect(row.locator(".version")).to_have_text("1")
    row.locator("button.name").click()
    row.get_by_role("button", name="Go back a version").click()
    expect(page.get_by_role("alert")).to_contain_text("no earlier version")
    write_python(tmp_path / "stepping.py", "stepping_agent", "2")
    row.get_by_role("button", name="Upgrade").click()
    expect(row.locator(".version")).to_have_text("2")
    expect(page.get_by_role("alert")).to_have_count(0)
    row.get_by_role("button", name="Go back a version").click()
    expect(row.locator(".version")).to_have_text("1")
    listed = {each["type"]: each for each in httpx.get(f"{stage.address}/api/adapters").json()}
    assert listed["stepping_agent"]["version"] == "1"
    spec.write_text("raise RuntimeError('not today')")
    row.get_by_role("button", name="Upgrade").click()
    expect(page.get_by_role("alert")).to_contain_text("not today")
    expect(row.locator(".version")).to_have_text("1")
    row.get_by_role("button", name="Remove").click()
    expect(row).to_have_count(0)
