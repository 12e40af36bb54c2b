"""What axe finds on a page that keeps people from using it."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Page

AXE = Path(__file__).parents[2] / "web/node_modules/axe-core/axe.min.js"


def seriously_wrong(page: Page) -> list[tuple[str, list[str]]]:
    page.evaluate(AXE.read_text("utf-8"))
    found = page.evaluate("axe.run().then((told) => told.violations)")
    return [
        (one["id"], [node["html"][:160] for node in one["nodes"][:3]])
        for one in found
        if one["impact"] in ("serious", "critical")
    ]
