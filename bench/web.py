"""The run viewer in Chromium: first entries of a long run, its end, a fast live run, the bundle."""

from __future__ import annotations

import gzip
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import CDPSession, Page, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from binderclip.server.pages import KEPT  # noqa: E402
from tests.browser import stories  # noqa: E402
from tests.browser.conftest import CHROMIUM  # noqa: E402
from tests.browser.stage import Stage  # noqa: E402

LONG = 200_000
LIVE_SECONDS = 60
LINES_PER_SECOND = 2000


def fast_story() -> Iterator[stories.Line]:
    yield stories.begun()
    for number in range(LIVE_SECONDS * LINES_PER_SECOND):
        if number % 100 == 0:
            yield {"wait": 100 / LINES_PER_SECOND}
        yield stories.said(f"Line {number}, told quickly.")
    yield stories.ended("Told.")


COUNT_SLOW_TASKS = """() => {
  window.slowTasks = [0, 0];
  new PerformanceObserver((list) => {
    for (const task of list.getEntries()) {
      window.slowTasks[0] += 1;
      window.slowTasks[1] = Math.max(window.slowTasks[1], task.duration);
    }
  }).observe({ type: 'longtask' });
}"""


def metrics(session: CDPSession) -> dict[str, float]:
    found = session.send("Performance.getMetrics")["metrics"]
    return {one["name"]: one["value"] for one in found}


def long_run(page: Page, session: CDPSession, stage: Stage) -> None:
    run = stage.listed(stage.tell(stories.long_story(LONG), "A long run"))
    indexed(stage, run)
    for turn in ("first visit", "second visit"):
        began = time.perf_counter()
        page.goto(f"{stage.address}/runs/{run}")
        page.locator(".slot").first.wait_for()
        print(f"{LONG} entries, {turn}: first ones drawn in {time.perf_counter() - began:.2f} s")
    began = time.perf_counter()
    page.keyboard.press("End")
    page.get_by_text("The agent finished its work.").wait_for()
    print(f"{LONG} entries: at the end in {time.perf_counter() - began:.2f} s")
    print(f"{LONG} entries: heap {metrics(session)['JSHeapUsedSize'] / 1e6:.0f} MB")


def indexed(stage: Stage, run: str) -> None:
    """Wait as long as the server needs to index a run that ended; nobody has visited it yet."""
    began = time.perf_counter()
    while not list(stage.home.glob(f"runs/*/{run}/attempt-1/{KEPT}")):
        time.sleep(0.02)
    print(f"{LONG} entries: indexed {time.perf_counter() - began:.2f} s after the end")


def live_run(page: Page, session: CDPSession, stage: Stage) -> None:
    run = stage.tell(fast_story(), "A fast run", live=True)
    page.goto(f"{stage.address}/runs/{run}")
    page.locator(".slot").first.wait_for()
    before, began = metrics(session), time.perf_counter()
    page.evaluate(COUNT_SLOW_TASKS)
    page.locator("header", has_text="succeeded").wait_for(timeout=10 * LIVE_SECONDS * 1000)
    after, took = metrics(session), time.perf_counter() - began
    busy = (after["TaskDuration"] - before["TaskDuration"]) / took
    strip = page.get_by_role("scrollbar", name="Timeline of the run")
    last = int(strip.get_attribute("aria-valuemax") or 0)
    missing = LIVE_SECONDS * LINES_PER_SECOND + 1 - last
    slow, longest = page.evaluate("window.slowTasks")
    page.get_by_text(f"Line {LIVE_SECONDS * LINES_PER_SECOND - 1}, told quickly.").wait_for()
    print(
        f"live, {LINES_PER_SECOND} lines/s for {took:.0f} s: main thread busy {busy:.0%}, "
        f"{missing} entries missing, {slow} tasks over 50 ms, the longest {longest:.0f} ms, "
        f"heap {after['JSHeapUsedSize'] / 1e6:.0f} MB"
    )


def main() -> None:
    files = (ROOT / "src/binderclip/server/static/assets").iterdir()
    size = sum(len(gzip.compress(path.read_bytes())) for path in files)
    print(f"bundle: {size / 1000:.0f} kB gzipped")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        stage = Stage(Path(folder))
        stage.open()
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        session = page.context.new_cdp_session(page)
        session.send("Performance.enable")
        try:
            long_run(page, session, stage)
            live_run(page, session, stage)
        finally:
            browser.close()
            stage.close()


if __name__ == "__main__":
    main()
