"""A run or a job as a file to share: whole or refused, and nothing in it can act."""

from __future__ import annotations

import json
from collections.abc import Iterator
from html.parser import HTMLParser

import pytest

from binderclip.contract.entry import Entry
from binderclip.contract.errors import ConfigError, RunNotFound, SecretFound
from binderclip.contract.wire import from_plain
from binderclip.jobs import read_event
from binderclip.jobs.export import FORMATS, Format, export
from binderclip.jobs.history import RunHistory
from binderclip.jobs.store import JobStore
from binderclip.plugins.registry import list_adapters, load_adapter
from binderclip.sdk.testing.fixtures import cases_of
from binderclip.store.home import Home
from binderclip.store.runfile import write_order
from tests.jobs.hostile import HOSTILE, hostile_run
from tests.jobs.recorded import attempt_files, finish, order_for, recorded_run, spoken_run

SECRET = "ghp_" + "a1B2" * 9


def exported(home: Home, id: str, format: Format, **options: bool) -> str:
    return b"".join(export(home, id, format, env={}, **options)).decode()


def lines_of(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


def test_entries_are_the_transcript_s_and_the_result_comes_last(home: Home) -> None:
    order = spoken_run(home, {"kind": "assistant", "text": "hi"}, {"kind": "stderr", "text": "x"})
    *entries, last = lines_of(exported(home, order.id, "entries"))
    assert [line["type"] for line in entries] == ["entry", "entry"]
    assert [from_plain(line["entry"], Entry).id for line in entries] == ["1o0.0", "1o1.0"]
    assert (last["type"], last["runId"], last["status"]) == ("result", order.id, "failed")


def test_events_are_those_of_the_run(home: Home) -> None:
    order = spoken_run(home, {"kind": "assistant", "text": "hi"})
    lines = exported(home, order.id, "events").splitlines()
    assert [read_event(line).value for line in lines] == list(RunHistory(home, order.id).events())


@pytest.mark.parametrize("format", FORMATS)
def test_a_job_is_exported_with_all_its_runs(home: Home, format: Format) -> None:
    first = spoken_run(home, {"kind": "assistant", "text": "number one"})
    second = spoken_run(home, {"kind": "assistant", "text": "number two"}, continues=first.id)
    store = JobStore(home)
    store.record(first.id)
    job = store.record(second.id)
    text = exported(home, job.id, format)
    assert 0 < text.index("number one") < text.index("number two")
    assert "number two" not in exported(home, first.id, format)


def test_a_plan_is_told_once_in_its_last_state(home: Home) -> None:
    items = [{"text": "one", "status": "pending"}]
    plan = {"kind": "tool_call", "name": "Todo", "toolKind": "todo", "toolUseId": "t"}
    order = spoken_run(home, {**plan, "input": {"items": items}})
    path = home.attempt_dir(order.id, 1) / "transcript.jsonl"
    entry = json.loads(path.read_text().splitlines()[1])["entry"]
    entry["input"]["items"][0]["status"] = "completed"
    with path.open("a") as file:
        line = {"type": "replace", "id": entry["id"], "entry": entry}
        file.write(json.dumps(line, separators=(",", ":")) + "\n")
    assert "- [x] one" in exported(home, order.id, "markdown")
    assert exported(home, order.id, "html").count(">one<") == 1


@pytest.mark.parametrize("format", FORMATS)
def test_a_secret_refuses_the_export_and_names_its_place(home: Home, format: Format) -> None:
    """Before the first byte: an export is whole or there is none."""
    order = spoken_run(
        home,
        {"kind": "assistant", "text": "fine"},
        {"kind": "tool_call", "name": "Bash", "input": {"command": f"x {SECRET}"}},
    )
    with pytest.raises(
        SecretFound, match=r"GitHub token in .*1o1\.0, command at character 2"
    ) as no:
        export(home, order.id, format, env={})
    assert SECRET not in str(no.value)
    assert SECRET not in "".join(no.value.fields) and "--redact" in (no.value.hint or "")


def test_a_place_is_named_once_however_often_a_text_is_kept(home: Home) -> None:
    adapter = load_adapter("process")
    order = order_for(adapter)
    write_order(home, order)
    attempt_files(home, order, f"it is {SECRET}\n".encode())
    finish(home, order)
    with pytest.raises(SecretFound) as no:
        export(home, order.id, "markdown", env={})
    places = str(no.value).removeprefix("The export would give away ").rstrip(".").split("; ")
    assert len(places) == len(set(places)) == 2


@pytest.mark.parametrize("format", FORMATS)
def test_redacting_masks_every_secret(home: Home, format: Format) -> None:
    order = spoken_run(
        home,
        {"kind": "assistant", "text": f"use {SECRET} now"},
        {"kind": "tool_result", "toolUseId": "t", "content": SECRET, "isError": False},
        prompt=f"deploy with {SECRET}",
    )
    text = exported(home, order.id, format, redact=True)
    assert SECRET not in text
    assert "***" in text


def test_a_secret_of_the_environment_is_found_by_its_value(home: Home) -> None:
    order = spoken_run(home, {"kind": "assistant", "text": "it is correct-horse-battery"})
    with pytest.raises(SecretFound, match=r"the value of MY_TOKEN in entry 1o0\.0"):
        export(home, order.id, "html", env={"MY_TOKEN": "correct-horse-battery"})


@pytest.mark.parametrize("view", list_adapters(), ids=lambda view: view.type)
def test_no_recording_is_refused(home: Home, view: object) -> None:
    """What agents print every day is no secret."""
    adapter = load_adapter(view.type)  # type: ignore[attr-defined]
    for case in cases_of(adapter)[::3]:
        order = recorded_run(home, adapter, case)
        for format in FORMATS:
            assert exported(home, order.id, format), case.name


def test_only_known_formats_and_ids_are_exported(home: Home) -> None:
    order = spoken_run(home)
    with pytest.raises(ConfigError, match="pdf"):
        export(home, order.id, "pdf", env={})  # type: ignore[arg-type]
    for wrong in ("../../etc/passwd", "", order.id[:-1] + "x"):
        with pytest.raises(RunNotFound):
            export(home, wrong, "html", env={})


class Seen(HTMLParser):
    """Every element and attribute of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: set[str] = set()
        self.attributes: set[tuple[str, str]] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.add(tag)
        self.attributes.update((name, value or "") for name, value in attrs)

    def links(self) -> Iterator[str]:
        return (value for name, value in self.attributes if name in ("href", "src", "action"))


def test_hostile_text_becomes_no_element_and_no_attribute(home: Home) -> None:
    """Everything an agent wrote is text; links lead to the web and nowhere else."""
    page = exported(home, hostile_run(home).id, "html")
    seen = Seen(page)
    allowed = (
        "html head meta title style body main article header footer div p span b h1 h2 h3 pre code "
        "details summary ul ol li a strong em s blockquote table thead tbody tr th td hr br nav"
    )
    assert seen.elements <= set(allowed.split())
    named = "charset http-equiv content name lang class id open href rel target start"
    assert {name for name, _ in seen.attributes} <= set(named.split())
    assert all(link.startswith(("https://", "http://", "mailto:")) for link in seen.links())


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_can_still_be_read(home: Home, text: str) -> None:
    order = spoken_run(
        home, {"kind": "tool_result", "toolUseId": "t", "content": text, "isError": True}
    )
    shown: list[str] = []

    class Text(HTMLParser):
        def handle_data(self, data: str) -> None:
            shown.append(data)

    Text().feed(exported(home, order.id, "html"))
    letters = [char for char in text if char.isalnum() and char.isascii()]
    if "\x1b" not in text:
        assert "".join(letters) in "".join(c for c in "".join(shown) if c.isalnum() and c.isascii())


def test_markdown_cannot_be_broken_out_of(home: Home) -> None:
    order = spoken_run(
        home,
        {"kind": "tool_result", "toolUseId": "t", "content": "````\n# out\n```", "isError": False},
        {"kind": "assistant", "text": "# Heading\n<script>alert(1)</script>"},
    )
    text = exported(home, order.id, "markdown")
    assert "`````text\n````\n# out\n```\n`````" in text
    assert "### Heading" in text and "\n<script" not in text
