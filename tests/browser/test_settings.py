"""Settings in a real browser: other machines, secrets, access, what stays."""

from __future__ import annotations

import getpass
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.browser.stage import Stage
from tests.workspaces.sshd import Sshd, running

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]
Open = Callable[..., Page]


@pytest.fixture
def sshd() -> Iterator[Sshd]:
    with running() as daemon:
        yield daemon


def test_a_machine_is_added_tested_over_there_edited_and_removed(
    open_as_person: Open, stage: Stage, sshd: Sshd, tmp_path: Path
) -> None:
    """E4: the checks run on that machine and come back by level, with their fixes."""
    page = open_as_person("/settings")
    page.get_by_role("button", name="Add a machine").click()
    form = page.get_by_role("form", name="New machine")
    expect(form.get_by_role("button", name="Add")).to_be_disabled()
    form.get_by_text("Advanced", exact=False).click()
    values = {
        "Host": "127.0.0.1",
        "User": getpass.getuser(),
        "Port": str(sshd.port),
        "Identity file": str(sshd.directory / "user"),
        "Known hosts file": str(sshd.directory / "known"),
        "Directory of binderclip over there": str(tmp_path / "remote"),
        "Python over there": sys.executable,
    }
    form.get_by_role("textbox", name="Name", exact=True).fill("box")
    for label, value in values.items():
        field = form.get_by_role("textbox", name=label, exact=True)
        field.fill(value)
        field.blur()
    form.get_by_role("button", name="Add").click()
    machine = page.get_by_role("region", name="box")
    expect(machine).to_contain_text(f"{getpass.getuser()}@127.0.0.1:{sshd.port}")
    machine.get_by_label("Programs that runs on box need").fill("no-such-program-anywhere")
    machine.get_by_role("button", name="Test").click()
    expect(machine).to_contain_text("Runs cannot work there yet.", timeout=30_000)
    expect(machine.get_by_role("listitem").first).to_contain_text("no-such-program-anywhere")
    expect(machine).to_contain_text("its key is known")
    machine.get_by_label("Programs that runs on box need").fill("git")
    machine.get_by_role("button", name="Test").click()
    expect(machine).to_contain_text("Runs can work there", timeout=30_000)
    machine.get_by_role("button", name="Edit").click()
    port = machine.get_by_role("textbox", name="Port")
    port.fill("99999")
    port.blur()
    machine.get_by_role("button", name="Save").click()
    expect(machine.locator("#field-port-hint")).to_contain_text("a number from 1 to 65535")
    port.fill("2222")
    port.blur()
    machine.get_by_role("button", name="Save").click()
    expect(machine).to_contain_text(":2222")
    kept = httpx.get(f"{stage.address}/api/environments").json()["items"][0]["config"]
    assert kept["identityFile"] == values["Identity file"]
    machine.get_by_role("button", name="Remove").click()
    expect(page.get_by_text("Agents work on this machine only.")).to_be_visible()


def test_forgetting_a_secret_is_asked_first(open_as_person: Open, stage: Stage) -> None:
    """D8: a value is replaced or forgotten, never shown."""
    page = open_as_person("/settings")
    for value in ("first-value-1", "second-value-2"):
        page.get_by_label("Name of the secret").fill("ONCE")
        page.get_by_label("Value of the secret").fill(value)
        page.get_by_label("Value of the secret").press("Enter")
        expect(page.get_by_label("Value of the secret")).to_have_value("")
    row = page.get_by_role("listitem").filter(has_text="ONCE")
    row.get_by_role("button", name="Forget").click()
    expect(row).to_contain_text("Runs that need it will fail.")
    row.get_by_role("button", name="Forget it").click()
    expect(row).to_have_count(0)


def test_the_page_says_what_this_browser_may_do(
    open_page: Open, open_as_person: Open, stage: Stage
) -> None:
    """R3: with and without the person's token; the browser can forget it."""
    page = open_page("/settings")
    expect(page.get_by_text("without the person's token")).to_be_visible()
    page = open_as_person("/settings")
    expect(page.get_by_text("holds the person's token")).to_be_visible()
    page.get_by_role("button", name="Forget it in this browser").click()
    expect(page.get_by_text("without the person's token")).to_be_visible()
    expect(page.get_by_text("go by themselves")).to_be_visible()
