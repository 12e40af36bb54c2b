"""Each wire by raw HTTP: what a turn looks like whole and streamed."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from binderclip.sdk.testing.scripted_model import ScriptedModel, Shell, Tool, Turn, Usage, Write
from tests.sdk.testing.scripted_model_client import SHELL, WIRES, ask, body, events, said

USAGE = Usage(input=10, output=5, cache_read=3, cache_write=2, reasoning=1)
TURN = Turn(
    text="hello wörld",
    thinking="let me see",
    calls=(Shell("ls {cwd}"), Shell("pwd")),
    usage=USAGE,
    piece_size=4,
    times="forever",
)


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel([TURN], values={"cwd": "/w"}) as model:
        yield model


def test_anthropic_whole(model: ScriptedModel) -> None:
    message = ask(model, "anthropic").json()
    thinking, text, first, second = message["content"]
    assert (thinking["thinking"], text["text"]) == ("let me see", "hello wörld")
    assert (first["name"], first["input"]) == ("Bash", {"command": "ls /w"})
    assert first["id"] != second["id"]
    assert (message["model"], message["stop_reason"]) == ("m-1", "tool_use")
    assert message["usage"]["input_tokens"] == 10
    assert message["usage"]["cache_read_input_tokens"] == 3
    assert message["usage"]["cache_creation_input_tokens"] == 2
    assert message["usage"]["output_tokens"] == 5


def test_anthropic_streamed(model: ScriptedModel) -> None:
    response = ask(model, "anthropic", stream=True)
    assert "event: message_start\ndata: {" in response.text
    got = events(response)
    assert [event["type"] for event in got[:2]] == ["message_start", "ping"]
    assert got[0]["message"]["usage"]["cache_read_input_tokens"] == 3
    assert _fields(got, "thinking_delta", "thinking") == "let me see"
    assert _fields(got, "text_delta", "text") == "hello wörld"
    arguments = _fields(got, "input_json_delta", "partial_json")
    assert arguments == '{"command": "ls /w"}{"command": "pwd"}'
    assert got[-2]["delta"]["stop_reason"] == "tool_use"
    assert got[-2]["usage"]["output_tokens"] == 5
    assert got[-1] == {"type": "message_stop"}


def _fields(got: list[dict[str, Any]], kind: str, field: str) -> str:
    deltas = [event["delta"] for event in got if event["type"] == "content_block_delta"]
    return "".join(delta[field] for delta in deltas if delta["type"] == kind)


def test_responses_whole(model: ScriptedModel) -> None:
    response = ask(model, "responses").json()
    reasoning, message, call, _ = response["output"]
    assert reasoning["summary"] == [{"type": "summary_text", "text": "let me see"}]
    assert message["content"][0]["text"] == "hello wörld"
    assert (call["type"], call["name"]) == ("function_call", "exec_command")
    assert json.loads(call["arguments"]) == {"command": "ls /w"}
    assert response["status"] == "completed"
    assert response["usage"] == {
        "input_tokens": 15,
        "input_tokens_details": {"cached_tokens": 3, "cache_write_tokens": 2},
        "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 1},
        "total_tokens": 20,
    }


def test_responses_streamed(model: ScriptedModel) -> None:
    got = events(ask(model, "responses", stream=True))
    assert [event["sequence_number"] for event in got] == list(range(len(got)))
    kinds = [event["type"] for event in got]
    assert kinds[:2] == ["response.created", "response.in_progress"]
    assert kinds[-1] == "response.completed"
    assert kinds.count("response.output_item.done") == 4
    texts = [event["delta"] for event in got if event["type"] == "response.output_text.delta"]
    assert texts == ["hell", "o wö", "rld"]
    added = [event["item"] for event in got if event["type"] == "response.output_item.added"]
    assert [item["type"] for item in added] == ["reasoning", "message"] + ["function_call"] * 2
    assert (added[1]["content"], added[2]["arguments"]) == ([], "")
    assert got[-1]["response"]["usage"]["input_tokens"] == 15


def test_responses_call_the_kinds_of_tools_that_codex_declares() -> None:
    calls = (Write("/w/a", "x\n"), Shell("ls"), Tool("remember", {"x": 1}))
    tools = [
        {"type": "custom", "name": "apply_patch", "format": {"type": "grammar"}},
        {"type": "local_shell"},
        {
            "type": "namespace",
            "name": "memory",
            "tools": [{"type": "function", "name": "remember", "parameters": {}}],
        },
    ]
    with ScriptedModel([Turn(calls=calls)]) as model:
        got = events(ask(model, "responses", stream=True, tools=tools))
    patch, shell, remember = got[-1]["response"]["output"]
    assert patch["type"] == "custom_tool_call"
    assert patch["input"].startswith("*** Begin Patch\n*** Add File: /w/a\n+x\n")
    assert shell["type"] == "local_shell_call"
    assert shell["action"] == {"type": "exec", "env": {}, "command": ["bash", "-lc", "ls"]}
    assert (remember["namespace"], remember["arguments"]) == ("memory", '{"x": 1}')


def test_chat_whole(model: ScriptedModel) -> None:
    completion = ask(model, "chat").json()
    choice = completion["choices"][0]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["content"] == "hello wörld"
    assert choice["message"]["reasoning_content"] == "let me see"
    function = choice["message"]["tool_calls"][0]["function"]
    assert function == {"name": "bash", "arguments": '{"command": "ls /w"}'}
    assert completion["usage"]["prompt_tokens"] == 15
    assert completion["usage"]["prompt_tokens_details"] == {"cached_tokens": 3}
    assert completion["usage"]["completion_tokens_details"] == {"reasoning_tokens": 1}


def test_chat_streamed(model: ScriptedModel) -> None:
    response = ask(model, "chat", stream=True)
    assert response.text.endswith("data: [DONE]\n\n")
    got = events(response)
    assert len({event["id"] for event in got}) == 1
    deltas = [event["choices"][0]["delta"] for event in got if event["choices"]]
    assert "".join(delta.get("content") or "" for delta in deltas) == "hello wörld"
    assert "".join(delta.get("reasoning_content", "") for delta in deltas) == "let me see"
    calls = [delta["tool_calls"][0] for delta in deltas if "tool_calls" in delta]
    assert [call["index"] for call in calls if "id" in call] == [0, 1]
    first = [call["function"]["arguments"] for call in calls if call["index"] == 0]
    assert json.loads("".join(first)) == {"command": "ls /w"}
    assert got[-2]["choices"][0]["finish_reason"] == "tool_calls"
    assert got[-1]["usage"]["total_tokens"] == 20


def test_gemini_whole(model: ScriptedModel) -> None:
    answer = ask(model, "gemini").json()
    candidate = answer["candidates"][0]
    thought, text, first, _ = candidate["content"]["parts"]
    assert thought == {"text": "let me see", "thought": True}
    assert text == {"text": "hello wörld"}
    assert first["functionCall"]["name"] == "run_shell_command"
    assert first["functionCall"]["args"] == {"command": "ls /w"}
    assert (candidate["finishReason"], answer["modelVersion"]) == ("STOP", "g-1")
    assert answer["usageMetadata"] == {
        "promptTokenCount": 15,
        "candidatesTokenCount": 4,
        "totalTokenCount": 20,
        "cachedContentTokenCount": 3,
        "thoughtsTokenCount": 1,
    }


def test_gemini_streamed_as_events_and_as_an_array(model: ScriptedModel) -> None:
    as_events = events(ask(model, "gemini", stream=True))
    url = f"{model.url}/v1beta/models/g-1:streamGenerateContent"
    as_array = httpx.post(url, json=body("gemini"))
    assert as_array.headers["content-type"] == "application/json"
    for frames in (as_events, as_array.json()):
        parts = [part for frame in frames for part in frame["candidates"][0]["content"]["parts"]]
        texts = [part["text"] for part in parts if "text" in part and not part.get("thought")]
        assert "".join(texts) == "hello wörld"
        assert [part["functionCall"]["args"] for part in parts if "functionCall" in part] == [
            {"command": "ls /w"},
            {"command": "pwd"},
        ]
        assert frames[-1]["candidates"][0]["finishReason"] == "STOP"


@pytest.mark.parametrize("wire", WIRES)
def test_a_side_request_that_demands_json_gets_valid_json(wire: str) -> None:
    schema = {"type": "object", "required": ["title"], "properties": {"title": {"type": "string"}}}
    demands: dict[str, dict[str, Any]] = {
        "anthropic": {"output_config": {"format": {"type": "json_schema", "schema": schema}}},
        "responses": {"text": {"format": {"type": "json_schema", "schema": schema}}},
        "chat": {"response_format": {"type": "json_schema", "json_schema": {"schema": schema}}},
        "gemini": {"generationConfig": {"responseJsonSchema": schema}},
    }
    with ScriptedModel([TURN]) as model:
        answer = ask(model, wire, tools=[], **demands[wire]).json()
    assert json.loads(said(wire, answer)) == {"title": "scripted"}


@pytest.mark.parametrize("wire", WIRES)
def test_line_separators_in_a_text_never_split_an_event(wire: str) -> None:
    """T4: lines end at LF and nowhere else, also for clients that split elsewhere."""
    with ScriptedModel([Turn(text="a\u2028b\u0085c\u2029d\ne")]) as model:
        response = ask(model, wire, stream=True)
    assert not {"\u2028", "\u2029", "\u0085"} & set(response.text)
    assert "a\u2028b\u0085c\u2029d\ne" in _strings(events(response))


def _strings(data: Any) -> list[str]:
    if isinstance(data, str):
        return [data]
    parts = data.values() if isinstance(data, dict) else data if isinstance(data, list) else ()
    return [text for part in parts for text in _strings(part)]


def test_tokens_are_counted_by_the_size_of_the_request(model: ScriptedModel) -> None:
    counted = httpx.post(f"{model.url}/v1/messages/count_tokens", json=body("anthropic"))
    assert counted.json()["input_tokens"] > len(json.dumps(SHELL)) // 4
    counted = httpx.post(f"{model.url}/v1beta/models/g-1:countTokens", json=body("gemini"))
    assert counted.json()["totalTokens"] > 0
    assert [request.turn for request in model.requests] == [None, None]


def test_model_lists_name_the_models_of_the_script() -> None:
    script = {"turns": [{"text": "a"}], "models": ["one", "two"]}
    with ScriptedModel(script) as model:
        listed = httpx.get(f"{model.url}/v1/models").json()
        single = httpx.get(f"{model.url}/v1/models/two").json()
        gemini = httpx.get(f"{model.url}/v1beta/models").json()
    assert [entry["id"] for entry in listed["data"]] == ["one", "two"]
    assert single["id"] == "two"
    assert [entry["name"] for entry in gemini["models"]] == ["models/one", "models/two"]
