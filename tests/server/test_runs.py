"""Runs over HTTP: what they printed, in pages, by search, by bytes."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from binderclip.contract.ids import new_id
from binderclip.server.pages import KEPT
from tests.server.conftest import UP, Served

SCRIPT = "seq 1 500; echo 'Needle in a \"haystack\"'; echo oops >&2"


@pytest.fixture(scope="module")
def run(served: Served) -> Any:
    return served.ran(SCRIPT)


def test_a_woken_agent_runs_and_its_run_tells_state_result_and_history(run: Any) -> None:
    """R2: a wake leads to a run that ends."""
    assert run["status"] == "succeeded"
    assert run["result"]["exitCode"] == 0
    assert run["wakeReasons"] == ["manual"]
    assert [change["state"] for change in run["history"]][-1] == "succeeded"
    assert run["attemptDetails"][0]["exit"]["exitCode"] == 0


def test_pages_of_any_size_add_up_to_all_entries(served: Served, run: Any) -> None:
    whole = served.get(f"/api/runs/{run['id']}/transcript?limit=1000")
    assert whole["total"] == len(whole["entries"]) == 502
    assert [entry["seq"] for entry in whole["entries"]] == list(range(502))
    joined: list[Any] = []
    while len(joined) < whole["total"]:
        page = served.get(f"/api/runs/{run['id']}/transcript?from={len(joined)}&limit=37")
        joined += page["entries"]
    assert joined == whole["entries"]


def test_a_page_beyond_the_end_is_empty(served: Served, run: Any) -> None:
    page = served.get(f"/api/runs/{run['id']}/transcript?from=5000")
    assert (page["entries"], page["total"], page["complete"]) == ([], 502, True)


def test_the_outline_counts_what_the_pages_hold(served: Served, run: Any) -> None:
    outline = served.get(f"/api/runs/{run['id']}/outline")
    assert outline["total"] == sum(outline["kinds"].values()) == 502
    assert outline["kinds"]["stderr"] == 1
    assert sum(b["entries"] for b in outline["attempts"][0]["buckets"]) == 502
    assert outline["cursor"].startswith("1.502.")


def test_search_finds_words_of_any_case_by_position(served: Served, run: Any) -> None:
    path = f"/api/runs/{run['id']}/search"
    found = served.get(path, params={"q": 'A "HAYSTACK'})
    (match,) = found["matches"]
    entry = served.get(f"/api/runs/{run['id']}/entries/{match['id']}")
    assert entry["text"] == 'Needle in a "haystack"'
    assert entry["seq"] == match["seq"]
    assert found["next"] is None


def test_search_stops_at_its_limit_and_goes_on_from_there(served: Served, run: Any) -> None:
    path = f"/api/runs/{run['id']}/search"
    first = served.get(path, params={"q": "9", "limit": 10})
    rest = served.get(path, params={"q": "9", "limit": 1000, "from": first["next"]})
    numbers = [n for n in range(1, 501) if "9" in str(n)]
    assert len(first["matches"]) + len(rest["matches"]) == len(numbers)


def test_search_can_be_narrowed_to_kinds(served: Served, run: Any) -> None:
    path = f"/api/runs/{run['id']}/search"
    assert not served.get(path, params={"q": "oops", "kind": "assistant"})["matches"]
    assert served.get(path, params={"q": "oops", "kind": "stderr,system"})["matches"]
    served.get(path, 422, params={"q": "oops", "kind": "nonsense"})


def test_the_log_is_the_exact_bytes(served: Served, run: Any) -> None:
    response = served.client.get(f"/api/runs/{run['id']}/log")
    expected = "".join(f"{n}\n" for n in range(1, 501)) + 'Needle in a "haystack"\n'
    assert response.content == expected.encode()
    assert response.headers["content-length"] == str(len(expected))
    errors = served.client.get(f"/api/runs/{run['id']}/log?stream=stderr")
    assert errors.content == b"oops\n"


@pytest.mark.parametrize(
    ("asked", "status", "first", "last"),
    [
        ("bytes=0-9", 206, 0, 9),
        ("bytes=100-", 206, 100, 1914),
        ("bytes=-7", 206, 1908, 1914),
        ("bytes=1900-9999", 206, 1900, 1914),
        ("bytes=0-1,5-6", 200, 0, 1914),
        ("lines=1-2", 200, 0, 1914),
    ],
)
def test_ranges_of_a_log(
    served: Served, run: Any, asked: str, status: int, first: int, last: int
) -> None:
    path = f"/api/runs/{run['id']}/log"
    whole = served.client.get(path).content
    response = served.client.get(path, headers={"range": asked})
    assert response.status_code == status
    assert len(whole) == 1915
    assert response.content == whole[first : last + 1]
    if status == 206:
        assert response.headers["content-range"] == f"bytes {first}-{last}/1915"


@pytest.mark.parametrize("asked", ["bytes=1915-", "bytes=9999-10000", "bytes=-0", "bytes=9-3"])
def test_a_range_outside_is_416(served: Served, run: Any, asked: str) -> None:
    response = served.client.get(f"/api/runs/{run['id']}/log", headers={"range": asked})
    assert response.status_code == 416
    assert response.headers["content-range"] == "bytes */1915"
    assert response.json()["error"]["code"] == "range_not_satisfiable"


def test_a_range_for_an_older_state_gets_the_whole(served: Served, run: Any) -> None:
    path = f"/api/runs/{run['id']}/log"
    tag = served.client.get(path).headers["etag"]
    headers = {"range": "bytes=0-3", "if-range": tag}
    assert served.client.get(path, headers=headers).status_code == 206
    assert served.client.get(path, headers={**headers, "if-range": '"x"'}).status_code == 200


@pytest.mark.parametrize("path", ["", "/transcript", "/outline", "/log"])
def test_what_a_client_holds_already_is_not_sent_again(served: Served, run: Any, path: str) -> None:
    place = f"/api/runs/{run['id']}{path}"
    tag = served.client.get(place).headers["etag"]
    again = served.client.get(place, headers={"if-none-match": f'"other", {tag}'})
    assert (again.status_code, again.content) == (304, b"")


def test_lines_come_in_pages_with_numbers_and_streams(served: Served, run: Any) -> None:
    first = served.get(f"/api/runs/{run['id']}/lines?limit=300")
    second = served.get(f"/api/runs/{run['id']}/lines?from=300&limit=300")
    lines = first["lines"] + second["lines"]
    assert [line["n"] for line in lines] == list(range(502))
    assert [line["text"] for line in lines if line["stream"] == "stderr"] == ["oops"]
    assert (first["complete"], second["complete"]) == (False, True)
    middle = served.get(f"/api/runs/{run['id']}/lines?from=200&limit=5")["lines"]
    assert middle == lines[200:205]


def test_a_long_text_is_cut_in_lists_and_whole_by_its_id(served: Served) -> None:
    """T1b: more than 64 KiB of text is cut, with its size told."""
    run = served.ran("head -c 200000 /dev/zero | tr '\\0' x; echo")
    (entry,) = served.get(f"/api/runs/{run['id']}/transcript")["entries"]
    assert entry["truncated"] == {"bytes": 200000}
    assert len(entry["text"]) == 64 * 1024
    whole = served.get(f"/api/runs/{run['id']}/entries/{entry['id']}")
    assert hashlib.md5(whole["text"].encode()).digest() == hashlib.md5(b"x" * 200000).digest()
    assert "truncated" not in whole


def test_a_run_of_the_command_line_appears_with_its_files(served: Served, waiting: Any) -> None:
    """Design, section 6: a running server shows a `binderclip run` by reading its files."""
    words = [sys.executable, "-c", UP, "run", "--adapter", "process", "--", "echo", "by hand"]
    env = {"BINDERCLIP_HOME": str(served.home.path), "PATH": "/usr/bin:/bin"}
    subprocess.run(words, env=env, check=True, capture_output=True, timeout=60)
    run_id = next(served.home.run_ids())
    (entry,) = served.get(f"/api/runs/{run_id}/transcript")["entries"]
    assert entry["text"] == "by hand"
    listed = waiting(lambda: [r for r in served.get("/api/runs")["items"] if r["id"] == run_id])
    assert listed[0]["agentId"] == "cli"


def test_runs_are_listed_newest_first_in_pages_and_by_filter(served: Served) -> None:
    ids = [served.ran("true")["id"] for _ in range(3)]
    first = served.get("/api/runs?limit=2")
    assert [run["id"] for run in first["items"]] == [ids[2], ids[1]]
    second = served.get(f"/api/runs?limit=2&cursor={first['next']}")
    assert second["items"][0]["id"] == ids[0]
    assert {run["status"] for run in served.get("/api/runs?status=succeeded")["items"]} == {
        "succeeded"
    }
    assert served.get("/api/runs?adapterType=claude_local") == {"items": [], "next": None}
    agent = first["items"][0]["agentId"]
    assert [r["id"] for r in served.get(f"/api/runs?agentId={agent}")["items"]] == [ids[2]]


def test_a_working_agent_is_cancelled(served: Served, waiting: Any) -> None:
    agent = served.agent("sleeper", "echo up; sleep 600")
    run_id = served.post(f"/api/agents/{agent}/wakeup", {}, 202)["runId"]
    waiting(lambda: served.get(f"/api/runs/{run_id}/transcript")["entries"])
    served.post(f"/api/runs/{run_id}/cancel", {"reason": "enough"}, 202)
    ended = served.ended(run_id)
    assert ended["status"] == "cancelled"
    assert "enough" in ended["errorMessage"]
    over = served.post(f"/api/runs/{run_id}/cancel", {}, 409)
    assert over["error"]["code"] == "run_over"


@pytest.mark.parametrize(
    "path",
    ["", "/transcript", "/outline", "/search?q=x", "/entries/1o0.0", "/log", "/lines", "/stream"],
)
def test_a_run_that_does_not_exist_is_not_found(served: Served, path: str) -> None:
    refused = served.get(f"/api/runs/{new_id()}{path}", 404)
    assert refused["error"]["code"] == "not_found"
    served.get(f"/api/runs/nonsense{path}", 422)


@pytest.mark.parametrize("entry", ["1o99999.0", "9o0.0", "nonsense", "1o0.9"])
def test_an_entry_that_does_not_exist_is_not_found(served: Served, run: Any, entry: str) -> None:
    served.get(f"/api/runs/{run['id']}/entries/{entry}", 404)


def test_the_pages_of_a_long_run_are_indexed_before_anybody_asks(
    served: Served, waiting: Callable[[Callable[[], Any]], Any]
) -> None:
    """D2: the first viewer of a long run does not wait for its index."""
    long = served.ran("seq -f 'a line of a rather long run, number %g' 20000")
    (attempt,) = served.home.run_dir(long["id"]).glob("attempt-*")
    waiting((attempt / KEPT).is_file)
    assert served.get(f"/api/runs/{long['id']}/outline")["total"] == 20_000
