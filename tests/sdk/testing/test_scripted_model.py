"""The scripted model as a server: order of turns, faults, keys, recordings, closing."""

import gzip
import json
import signal
import subprocess
import sys
import threading
from pathlib import Path

import httpx
import pytest

from binderclip.sdk.testing.scripted_model import (
    Failure,
    Repeat,
    Script,
    ScriptedModel,
    Shell,
    Turn,
)
from tests.sdk.testing.scripted_model_client import (
    WIRES,
    ask,
    body,
    events,
    parse_events,
    path,
    said,
)


def texts(model: ScriptedModel, count: int) -> list[str]:
    return [said("chat", ask(model, "chat").json()) for _ in range(count)]


def test_turns_come_in_order_and_the_last_text_is_repeated() -> None:
    with ScriptedModel([Turn(text="a", times=2), Turn(text="b")]) as model:
        assert texts(model, 5) == ["a", "a", "b", "b", "b"]
        assert [request.turn for request in model.requests] == [0, 0, 1, 1, 1]


def test_calls_are_not_repeated_when_the_script_is_over() -> None:
    with ScriptedModel([Turn(text="a", calls=(Shell("ls"),))]) as model:
        assert texts(model, 2) == ["a", "The script has no more turns."]


def test_side_requests_get_the_aside_and_take_no_turn() -> None:
    script = Script((Turn(text="main"),), aux=Turn(text="title"), aux_words=("memories",))
    with ScriptedModel(script) as model:
        assert said("chat", ask(model, "chat", tools=[]).json()) == "title"
        assert said("chat", ask(model, "chat", messages=["write memories"]).json()) == "title"
        assert said("chat", ask(model, "chat").json()) == "main"
        assert [request.turn for request in model.requests] == [None, None, 0]


def test_without_an_aside_every_request_takes_a_turn() -> None:
    with ScriptedModel(Script((Turn(text="a"), Turn(text="b")), aux=None)) as model:
        assert said("chat", ask(model, "chat", tools=[]).json()) == "a"
        assert said("chat", ask(model, "chat").json()) == "b"


@pytest.mark.parametrize(
    ("wire", "field", "word"),
    [
        ("anthropic", "type", "rate_limit_error"),
        ("responses", "code", "rate_limit_exceeded"),
        ("chat", "code", "rate_limit_exceeded"),
        ("gemini", "status", "RESOURCE_EXHAUSTED"),
    ],
)
def test_a_failure_has_the_envelope_of_its_wire_and_then_recovers(
    wire: str, field: str, word: str
) -> None:
    refused = Failure(429, "slow down", headers={"Retry-After": "7"})
    with ScriptedModel([Turn(failure=refused), Turn(text="ok")]) as model:
        response = ask(model, wire, stream=True)
        assert (response.status_code, response.headers["retry-after"]) == (429, "7")
        assert response.json()["error"][field] == word
        assert response.json()["error"]["message"] == "slow down"
        assert said(wire, ask(model, wire).json()) == "ok"


def test_a_failure_can_last_for_ever_and_have_any_body() -> None:
    page = Failure(502, body="<html>bad gateway</html>", headers={"content-type": "text/html"})
    with ScriptedModel([Turn(failure=page, times="forever"), Turn(text="never")]) as model:
        for response in [ask(model, "chat") for _ in range(3)]:
            assert (response.status_code, response.text) == (502, "<html>bad gateway</html>")
            assert response.headers["content-type"] == "text/html"


def test_a_failure_can_have_a_body_of_its_own_shape() -> None:
    with ScriptedModel([Turn(failure=Failure(400, body={"detail": "x"}))]) as model:
        assert ask(model, "anthropic").json() == {"detail": "x"}


@pytest.mark.parametrize("wire", WIRES)
def test_an_error_inside_the_stream_ends_it(wire: str) -> None:
    failure = Failure(503, "overloaded")
    turn = Turn(text="abcdef", piece_size=2, failure=failure, fail_after=1)
    with ScriptedModel([turn]) as model:
        response = ask(model, wire, stream=True)
        whole = ask(model, wire).json()
    assert response.status_code == 200
    assert '"ab"' in response.text
    assert '"cd"' not in response.text
    last = events(response)[-1]
    assert last.get("response", last)["error"]["message"] == "overloaded"
    assert said(wire, whole) == "abcdef"


@pytest.mark.parametrize("wire", WIRES)
def test_a_connection_can_drop_in_the_middle_of_the_stream(wire: str) -> None:
    with ScriptedModel([Turn(text="abcdef", piece_size=2, cut_after=2)]) as model:
        got = b""
        with (
            pytest.raises(httpx.RemoteProtocolError),
            httpx.stream(
                "POST", model.url + path(wire, stream=True), json=body(wire, stream=True)
            ) as response,
        ):
            for chunk in response.iter_raw():
                got += chunk
    assert b'"cd"' in got
    assert b'"ef"' not in got
    assert parse_events(got.decode())


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(("pieces", "whole_text"), [(0, False), (99, True)])
def test_a_break_comes_before_the_first_piece_or_at_the_latest_after_the_last(
    wire: str, pieces: int, whole_text: bool
) -> None:
    turn = Turn(text="abcdef", failure=Failure(503, "overloaded"), fail_after=pieces)
    with ScriptedModel([turn]) as model:
        response = ask(model, wire, stream=True)
    assert ('"abcdef"' in response.text) is whole_text
    last = events(response)[-1]
    assert last.get("response", last)["error"]["message"] == "overloaded"


def test_an_array_of_frames_stays_valid_json_when_it_fails() -> None:
    turn = Turn(text="abcdef", failure=Failure(503), fail_after=0)
    with ScriptedModel([turn]) as model:
        url = f"{model.url}/v1beta/models/g-1:streamGenerateContent"
        frames = httpx.post(url, json=body("gemini")).json()
    assert [frame["error"]["status"] for frame in frames] == ["UNAVAILABLE"]


def test_a_held_stream_lasts_until_the_client_leaves() -> None:
    turns = [Turn(text="abcdef", piece_size=2, hold_after=1), Turn(text="next")]
    with ScriptedModel(turns) as model:
        url, sent = model.url + path("chat"), body("chat", stream=True)
        with httpx.stream("POST", url, json=sent, timeout=30) as response:
            seen = ""
            for chunk in response.iter_text():
                seen += chunk
                if '"ab"' in seen:
                    break
        assert '"cd"' not in seen
        assert texts(model, 1) == ["next"]


@pytest.mark.parametrize(
    "turn",
    [
        Turn(text="abcdef", piece_size=2, hold_after=1),
        Turn(text="abcdef", piece_size=2, drip=3600),
    ],
)
def test_closing_the_model_ends_answers_that_are_under_way(turn: Turn) -> None:
    model = ScriptedModel([turn]).start()
    ended: list[str] = []

    def listen() -> None:
        try:
            ask(model, "chat", stream=True)
        except httpx.RemoteProtocolError as error:
            ended.append(type(error).__name__)

    client = threading.Thread(target=listen)
    client.start()
    model.wait_for_turns(1)
    model.close()
    client.join()
    assert ended == ["RemoteProtocolError"]


def test_a_drip_and_a_wait_lose_nothing() -> None:
    with ScriptedModel([Turn(text="abcdef", piece_size=1, drip=0.001, wait=0.001)]) as model:
        deltas = [
            event["choices"][0]["delta"] for event in events(ask(model, "chat", stream=True))[:-1]
        ]
    assert "".join(delta.get("content", "") for delta in deltas) == "abcdef"


def test_a_big_text_arrives_whole() -> None:
    text = Repeat("line {n}\n", 100_000)
    with ScriptedModel([Turn(text=text, piece_size=65536)]) as model:
        got = events(ask(model, "anthropic", stream=True))
    pieces = [event["delta"].get("text", "") for event in got if "delta" in event]
    assert "".join(pieces) == str(text)


@pytest.mark.parametrize(
    "headers",
    [{"x-api-key": "right"}, {"Authorization": "Bearer right"}, {"x-goog-api-key": "right"}],
)
def test_only_the_required_key_is_let_in(headers: dict[str, str]) -> None:
    with ScriptedModel([Turn(text="in")], require_key="right") as model:
        assert ask(model, "anthropic").status_code == 401
        wrong = ask(model, "anthropic", headers={"x-api-key": "wrong"}).json()
        assert wrong["error"]["type"] == "authentication_error"
        assert ask(model, "anthropic", headers=headers).status_code == 200
        query = httpx.post(f"{model.url}{path('gemini')}?key=right", json=body("gemini"))
        assert query.status_code == 200


def test_keys_are_masked_before_they_are_recorded(tmp_path: Path) -> None:
    """H2: what looks like a key is masked, in memory and in the log."""
    log = tmp_path / "requests.jsonl"
    headers = {"x-api-key": "sk-1", "Authorization": "Bearer sk-2", "Cookie": "sk-3", "X-Kept": "v"}
    with ScriptedModel([Turn(text="a")], log=log) as model:
        ask(model, "anthropic", headers=headers)
        httpx.post(f"{model.url}{path('gemini')}?key=sk-4&alt=json", json=body("gemini"))
        first, second = model.requests
    assert first.headers["x-api-key"] == first.headers["authorization"] == "***"
    assert (first.headers["x-kept"], first.wire, first.method) == ("v", "anthropic", "POST")
    assert first.body == body("anthropic")
    assert second.path == "/v1beta/models/g-1:generateContent?key=***&alt=json"
    logged = log.read_text()
    assert "sk-" not in logged
    assert [json.loads(line)["wire"] for line in logged.splitlines()] == ["anthropic", "gemini"]


def test_waiting_for_turns_gives_the_requests_or_says_how_many_came() -> None:
    with ScriptedModel([Turn(text="a")]) as model:
        ask(model, "chat")
        ask(model, "chat", tools=[])
        assert [request.wire for request in model.wait_for_turns(1)] == ["chat"]
        with pytest.raises(TimeoutError, match=r"1 of 2 turns"):
            model.wait_for_turns(2, timeout=0.01)


def test_a_call_that_no_declared_tool_can_do_is_explained_to_the_client() -> None:
    tool = {"type": "function", "function": {"name": "search"}}
    with ScriptedModel([Turn(calls=(Shell("ls"),))]) as model:
        response = ask(model, "chat", tools=[tool])
    assert response.status_code == 400
    assert "it has: search" in response.json()["error"]["message"]


def test_a_request_on_an_unknown_path_is_told_which_there_are() -> None:
    with ScriptedModel([Turn(text="a")]) as model:
        posted = httpx.post(f"{model.url}/v2/chat", json={})
        got = httpx.get(f"{model.url}/favicon.ico")
        assert [request.wire for request in model.requests] == [None, None]
    assert (posted.status_code, got.status_code) == (404, 404)
    assert "/v1/messages" in posted.json()["error"]["message"]


@pytest.mark.parametrize("wire", WIRES)
def test_a_request_of_the_wrong_shape_is_refused_and_recorded(wire: str) -> None:
    with ScriptedModel([Turn(text="a")]) as model:
        response = ask(model, wire, tools=[7])
        assert [request.turn for request in model.requests] == [None]
    assert response.status_code == 400
    assert f"the {wire} wire" in response.json()["error"]["message"]


def test_any_prefix_before_the_wires_own_path_is_fine() -> None:
    with ScriptedModel([Turn(text="a")]) as model:
        response = httpx.post(f"{model.url}/proxy/x/v1/messages?beta=true", json=body("anthropic"))
    assert said("anthropic", response.json()) == "a"


def test_bodies_may_be_compressed_or_chunked_but_must_be_json() -> None:
    packed = gzip.compress(json.dumps(body("chat")).encode())
    with ScriptedModel([Turn(text="a")]) as model:
        url = model.url + path("chat")
        zipped = httpx.post(url, content=packed, headers={"content-encoding": "gzip"})
        chunks = (part for part in (b'{"tools": [], ', b'"model": "m"}'))
        chunked = httpx.post(url, content=chunks)
        broken = httpx.post(url, content=b"{nope")
    assert said("chat", zipped.json()) == "a"
    assert chunked.json()["model"] == "m"
    assert (broken.status_code, broken.json()["error"]["type"]) == (400, "invalid_request_error")


def test_clients_that_want_a_websocket_are_sent_away() -> None:
    headers = {"connection": "Upgrade", "upgrade": "websocket"}
    with ScriptedModel([Turn(text="a")]) as model:
        assert httpx.get(f"{model.url}/v1/responses", headers=headers).status_code == 426


def run_module(*arguments: str, cwd: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "binderclip.sdk.testing.scripted_model", *arguments]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=cwd, stdout=pipe, stderr=pipe, text=True)


def test_the_module_serves_a_script_until_it_is_told_to_stop(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text('[{"text": "{cwd} {name}"}]')
    with run_module("--script", "s.json", "--set", "name=Ada", cwd=tmp_path) as process:
        assert process.stdout is not None
        words = process.stdout.readline().split()
        assert words[:2] == ["listening", "on"]
        answer = httpx.post(f"{words[2]}/v1/messages", json=body("anthropic")).json()
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    assert said("anthropic", answer) == f"{tmp_path.resolve()} Ada"


def test_the_module_refuses_a_bad_script_with_one_line(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text('[{"txt": "a"}]')
    with run_module("--script", "s.json", cwd=tmp_path) as process:
        out, errors = process.communicate(timeout=30)
    assert (process.returncode, out) == (2, "")
    assert errors.startswith("scripted model: s.json: bad script:")
    assert errors.count("\n") == 1
