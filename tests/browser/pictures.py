"""Takes pictures of every page, both widths and themes, into a folder, to be looked at."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import httpx
from playwright.sync_api import Browser, sync_playwright

from tests.browser import stories
from tests.browser.conftest import CHROMIUM, LONG
from tests.browser.stage import Stage

WIDTHS = {1280: 800, 390: 844}
SCHEMES = ("light", "dark")
DRAWN = "main h1, main [role=row], main .slot"


def furnished(stage: Stage) -> dict[str, str]:
    """Runs, agents and tasks worth looking at; the addresses of the pages by their names."""
    whole = stage.tell(stories.whole_story(0.2), "Fix the flaky test in orders/")
    short = stage.tell(stories.short_story(), "What is here?")
    long = stage.tell(stories.long_story(LONG), "Go through all parts")
    broken = [stories.begun(), *stories.shell("make", "no rule", bad=True, code=2)]
    failed = stage.tell([*broken, stories.ended("No rule.", bad=True), {"exit": 1}], "Build it")
    stage.open()
    live = [stories.begun(), stories.said("Porting, file by file …"), {"wait": 600}]
    running = stage.tell(live, "Port the importer", live=True)
    agent, task = _agent_and_task(stage)
    return {
        "runs": "/runs",
        "run": f"/runs/{whole}",
        "run-details": f"/runs/{whole}?panel=details",
        "run-history": f"/runs/{whole}?panel=history",
        "run-short": f"/runs/{short}",
        "run-long": f"/runs/{long}",
        "run-failed": f"/runs/{failed}",
        "run-live": f"/runs/{running}",
        "agents": "/agents",
        "agent": f"/agents/{agent}",
        "agent-new": "/agents/new",
        "tasks": "/tasks",
        "board": "/tasks?view=board",
        "task": f"/tasks/{task}",
        "adapters": "/adapters",
        "costs": "/costs",
        "settings": "/settings",
    }


def _agent_and_task(stage: Stage) -> tuple[str, str]:
    with httpx.Client(base_url=stage.address) as api:
        config = {"command": "echo", "args": ["hello"], "cwd": str(stage.cwd)}
        named = {"name": "Fixer", "adapterType": "process", "adapterConfig": config}
        agent = api.post("/api/agents", json=named).json()["id"]
        body = "It takes **four minutes** for a file of 10 MB.\n\n- measure first\n- then change"
        asked = {"title": "Make the importer faster", "body": body, "assigneeAgentId": agent}
        task = api.post("/api/issues", json=asked).json()["id"]
        api.post("/api/issues", json={"title": "Write the release notes", "status": "backlog"})
        api.post(f"/api/issues/{task}/comments", json={"body": "Start with the parser."})
        question = {"kind": "request_confirmation", "title": "Drop support for format v1?"}
        api.post(f"/api/issues/{task}/interactions", json=question)
    return agent, task


def take(browser: Browser, stage: Stage, pages: dict[str, str], target: Path) -> int:
    taken = 0
    for width, height in WIDTHS.items():
        for scheme in SCHEMES:
            context = browser.new_context(
                viewport={"width": width, "height": height},
                color_scheme="dark" if scheme == "dark" else "light",
            )
            page = context.new_page()
            for name, path in pages.items():
                page.goto(stage.address + path)
                page.locator(DRAWN).first.wait_for(state="attached")
                page.wait_for_timeout(300)
                page.screenshot(path=target / f"{name}-{width}-{scheme}.png")
                taken += 1
            context.close()
    return taken


def main(target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        stage = Stage(Path(folder))
        pages = furnished(stage)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            taken = take(browser, stage, pages, target)
        finally:
            browser.close()
            httpx.post(f"{stage.address}/api{pages['run-live']}/cancel", json={"kill": True})
            stage.close()
    sys.stdout.write(f"pictures: {taken} in {target}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else ".cache/pictures"))
