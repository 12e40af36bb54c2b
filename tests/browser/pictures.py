"""Takes pictures of every page, both widths and themes, into a folder, to be looked at."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import httpx
from playwright.sync_api import Browser, Page, sync_playwright

from tests.browser import stories
from tests.browser.conftest import CHROMIUM, LONG
from tests.browser.stage import Stage
from tests.workspaces.conftest import commit, plain_git

WIDTHS = {1280: 800, 390: 844}
SCHEMES = ("light", "dark")
DRAWN = "main h1, main [role=row], main .slot"
WORK = """
import pathlib
file = pathlib.Path("load.py")
file.write_text('''def load(path, size=1 << 20):
    with open(path) as file:
        while piece := file.read(size):
            yield piece
''')
pathlib.Path("test_load.py").write_text("from load import load\\n")
"""
CALL = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "npm test"}}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": "12 passed"}
PASTED = [
    {
        "type": "assistant",
        "message": {"content": [{"type": "text", "text": "I run the **tests**."}]},
    },
    {"type": "assistant", "message": {"content": [CALL]}},
    {"type": "user", "message": {"content": [RESULT]}},
]


def furnished(stage: Stage) -> dict[str, str]:
    """Runs, agents and tasks worth looking at; the addresses of the pages by their names."""
    whole = stage.tell(stories.whole_story(0.2), "Fix the flaky test in orders/")
    short = stage.tell(stories.short_story(), "What is here?")
    long = stage.tell(stories.long_story(LONG), "Go through all parts")
    broken = [stories.begun(), *stories.shell("make", "no rule", bad=True, code=2)]
    failed = stage.tell([*broken, stories.ended("No rule.", bad=True), {"exit": 1}], "Build it")
    empty = stage.call("run", "--adapter", "process", "--json", "--", "true")
    live = [stories.begun(), stories.said("Porting, file by file …"), {"wait": 600}]
    running = stage.tell(live, "Port the importer", live=True)
    agent, task = _agent_and_task(stage)
    worked, skilled = _worked(stage), _skilled(stage)
    return {
        "runs": "/runs",
        "run": f"/runs/{whole}",
        "run-details": f"/runs/{whole}?panel=details",
        "run-history": f"/runs/{whole}?panel=history",
        "run-raw": f"/runs/{whole}?panel=raw",
        "run-changes": f"/runs/{_run_of(stage, worked)}?panel=changes",
        "run-empty": f"/runs/{empty}",
        "run-missing": "/runs/01a00000-0000-7000-8000-000000000000",
        "run-short": f"/runs/{short}",
        "run-long": f"/runs/{long}",
        "run-failed": f"/runs/{failed}",
        "run-live": f"/runs/{running}",
        "agents": "/agents",
        "agent": f"/agents/{agent}",
        "agent-new": "/agents/new",
        "agent-config": f"/agents/{agent}?tab=config",
        "agent-budget": f"/agents/{agent}?tab=budget",
        "agent-skills": f"/agents/{skilled}?tab=skills",
        "tasks": "/tasks",
        "board": "/tasks?view=board",
        "task": f"/tasks/{task}",
        "task-changes": f"/tasks/{worked}",
        "workspaces": "/workspaces",
        "workspace": f"/workspaces/{_workspace_of(stage, worked)}",
        "adapters": "/adapters",
        "adapter": "/adapters",
        "playground": "/adapters/playground?type=claude_local",
        "costs": "/costs",
        "costs-tokens": "/costs?by=model&of=tokens&days=90",
        "settings": "/settings",
        "settings-end": "/settings",
        "nothing-fits": "/runs?status=lost",
    }


def empty(stage: Stage) -> dict[str, str]:
    """What somebody sees first."""
    names = ("runs", "agents", "tasks", "workspaces", "costs")
    return {f"empty-{name}": f"/{name}" for name in names}


def _worked(stage: Stage) -> str:
    """A task whose agent left changes in a worktree."""
    place = stage.folder / "importer"
    place.mkdir()
    plain_git(place, "init", "-q", "-b", "main")
    commit(place, "first", **{"load.py": "def load(path):\n    return open(path).read()\n"})
    config = {"command": sys.executable, "args": ["-c", WORK], "cwd": str(place)}
    with httpx.Client(base_url=stage.address) as api:
        body = {"name": "Porter", "adapterType": "process", "adapterConfig": config}
        agent = api.post("/api/agents", json=body).json()["id"]
        wish = {"title": "Read files in pieces", "assigneeAgentId": agent}
        task: str = api.post("/api/issues", json=wish).json()["id"]
        (run,) = api.get(f"/api/runs?issueId={task}").json()["items"]
        with api.stream("GET", f"/api/runs/{run['id']}/stream") as stream:
            next(line for line in stream.iter_lines() if line == "event: end")
    return task


def _run_of(stage: Stage, task: str) -> str:
    """The last run of a task."""
    found = httpx.get(f"{stage.address}/api/runs?issueId={task}").json()
    run: str = found["items"][0]["id"]
    return run


def _workspace_of(stage: Stage, task: str) -> str:
    found = httpx.get(f"{stage.address}/api/workspaces?issueId={task}").json()["items"]
    return str(found[0]["id"])


def _skilled(stage: Stage) -> str:
    config = {"model": "sonnet", "cwd": str(stage.cwd)}
    body = {"name": "Reviewer", "adapterType": "claude_local", "adapterConfig": config}
    body |= {"role": "reads what others wrote"}
    return str(httpx.post(f"{stage.address}/api/agents", json=body).json()["id"])


def _playground(page: Page) -> None:
    page.get_by_label("Standard output").fill("\n".join(map(json.dumps, PASTED)) + "\nodd line")
    page.get_by_role("button", name="Parse").click()
    page.get_by_text("Read by").wait_for()


def _adapter(page: Page) -> None:
    page.get_by_role("button", name="Claude Code").click()
    page.get_by_role("button", name="Test environment").click()
    page.locator(".verdict").wait_for()


def _settings_end(page: Page) -> None:
    page.get_by_role("button", name="Add a machine").click()
    page.get_by_role("heading", name="Retention").scroll_into_view_if_needed()


STEPS: dict[str, Callable[[Page], None]] = {
    "playground": _playground,
    "adapter": _adapter,
    "settings-end": _settings_end,
}


def _agent_and_task(stage: Stage) -> tuple[str, str]:
    with httpx.Client(base_url=stage.address) as api:
        config = {"command": "echo", "args": ["hello"], "cwd": str(stage.cwd)}
        named = {"name": "Fixer", "adapterType": "process", "adapterConfig": config}
        agent = api.post("/api/agents", json=named).json()["id"]
        token = {"authorization": f"Bearer {(stage.home / 'token').read_text().strip()}"}
        limits = {"budget": {"usd": 20, "runs": 10}, "runBudget": {"minutes": 30}}
        api.patch(f"/api/agents/{agent}", json=limits, headers=token)
        machine = {"name": "builder", "kind": "ssh", "config": {"host": "10.0.0.7", "user": "ci"}}
        api.post("/api/environments", json=machine, headers=token)
        api.put("/api/secrets/DEPLOY_KEY", json={"value": "kept-and-never-shown"}, headers=token)
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
                STEPS.get(name, lambda _: None)(page)
                page.screenshot(path=target / f"{name}-{width}-{scheme}.png")
                taken += 1
            context.close()
    return taken


def main(target: Path, wanted: Sequence[str] = ()) -> None:
    """All pages, or those whose names begin so."""
    target.mkdir(parents=True, exist_ok=True)
    taken = 0
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for furnish in (empty, furnished):
            with tempfile.TemporaryDirectory() as folder:
                stage = Stage(Path(folder))
                stage.open()
                try:
                    pages = furnish(stage)
                    chosen = {
                        name: path
                        for name, path in pages.items()
                        if not wanted or name.startswith(tuple(wanted))
                    }
                    taken += take(browser, stage, chosen, target)
                    if "run-live" in pages:
                        address = f"{stage.address}/api{pages['run-live']}/cancel"
                        httpx.post(address, json={"kill": True})
                finally:
                    stage.close()
        browser.close()
    sys.stdout.write(f"pictures: {taken} in {target}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else ".cache/pictures"), sys.argv[2:])
