"""Making, changing and waking agents in a real browser."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.browser.axe import seriously_wrong
from tests.browser.stage import Stage

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]
Open = Callable[..., Page]
_numbers = count(1)
GATED = """
from pathlib import Path
from binderclip.sdk import Adapter, AdapterConfig, Manifest, Model

class Config(AdapterConfig):
    gateway: str
    model: str | None = None

class Gated(Adapter):
    Config = Config
    manifest = Manifest(
        id="gated_agent", label="Gated", version="1", models=(Model(id="old", label="Old one"),)
    )

    def list_models(self, call):
        told = Path(call.config.gateway).read_text()
        return [Model(id=name, label=name) for name in told.split()]

    def detect_model(self, call):
        return "swift-1"

    async def execute(self, ctx):
        raise NotImplementedError

def create_adapter():
    return Gated()
"""


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


@pytest.fixture
def gated(stage: Stage, tmp_path: Path) -> Iterator[Path]:
    """A plugin that tells the models which stand in a file that its configuration names."""
    (tmp_path / "gated.py").write_text(GATED)
    token = {"authorization": f"Bearer {(stage.home / 'token').read_text().strip()}"}
    with httpx.Client(base_url=stage.address, headers=token, timeout=60) as api:
        spec = {"spec": str(tmp_path / "gated.py")}
        api.post("/api/adapters/install", json=spec).raise_for_status()
        gateway = tmp_path / "gateway"
        gateway.write_text("swift-1 deep-2")
        yield gateway
        api.delete("/api/adapters/gated_agent").raise_for_status()


def test_a_model_is_chosen_from_those_that_the_runtime_tells(
    open_page: Open, stage: Stage, gated: Path
) -> None:
    """A3, F3: asked with the agent's own configuration; any other name may be typed."""
    config = {"gateway": str(gated)}
    body = {"name": "Gate", "adapterType": "gated_agent", "adapterConfig": config}
    agent = httpx.post(f"{stage.address}/api/agents", json=body).json()["id"]
    page = open_page(f"/agents/{agent}?tab=config")
    model = page.get_by_role("combobox", name="Model")
    source = page.get_by_role("status").filter(has_text="told by Gated")
    expect(source).to_contain_text("2 models")
    expect(source).to_contain_text("By itself it uses swift-1")
    options = page.get_by_role("listbox", name="Model").get_by_role("option")
    model.click()
    expect(options).to_have_text(["swift-1", "deep-2"])
    assert seriously_wrong(page) == []
    gated.write_text("swift-1 deep-2 deep-3")
    model.press("Escape")
    page.get_by_role("button", name="Ask again").click()
    expect(source).to_contain_text("3 models")
    model.fill("deep")
    expect(options).to_have_text(["deep-2", "deep-3"])
    model.press("ArrowDown")
    model.press("ArrowDown")
    model.press("Enter")
    expect(model).to_have_value("deep-3")
    expect(options).to_have_count(0)
    model.fill("my-own")
    model.press("Enter")
    page.get_by_role("button", name="Save 1 change").click()
    expect(page.get_by_role("button", name="Saved")).to_be_disabled()
    kept = httpx.get(f"{stage.address}/api/agents/{agent}").json()["adapterConfig"]
    assert kept["model"] == "my-own"


def test_models_that_a_runtime_does_not_tell_are_those_of_the_adapter_with_the_reason(
    open_page: Open, gated: Path
) -> None:
    """A3: without the gateway nobody can be asked; the form says so and goes on."""
    page = open_page("/agents/new")
    page.get_by_role("button", name=re.compile("^Adapter")).click()
    page.get_by_role("option", name=re.compile("^Gated")).click()
    expect(page.get_by_text("1 model that the adapter knows of")).to_be_visible()
    expect(page.get_by_text(re.compile("Gated did not tell its own:.*gateway"))).to_be_visible()
    model = page.get_by_role("combobox", name="Model")
    model.click()
    page.get_by_role("option", name="old Old one").click()
    expect(model).to_have_value("old")
