"""Runs against a real endpoint: what is sent, what is logged, what comes out, what is cancelled."""

from __future__ import annotations

import json
import signal
from pathlib import Path

from tests.adapters.http.endpoint import Attempt, Endpoint, Handler, in_turn, reply, run, stream


def test_the_usual_payload_tells_who_asks_and_what(tmp_path: Path, endpoint: Endpoint) -> None:
    """A10: prompt and context travel in the body; an object stays an object."""
    endpoint.on("POST /wake", reply(body=b'{"text":"done"}'))
    ran = run(tmp_path, 'say "hi"\n{{agentId}}', url=f"{endpoint.url}/wake")
    (asked,) = endpoint.seen
    assert asked.json == {
        "agentId": "a1",
        "runId": "r1",
        "prompt": 'say "hi"\n{{agentId}}',
        "context": {"promptText": 'say "hi"\n{{agentId}}', "issueIds": ["i1", "i2"]},
    }
    assert asked.headers["content-type"] == "application/json"
    assert (ran.stdout, ran.result.summary, ran.result.error_code) == (
        b'{"text":"done"}',
        "done",
        None,
    )
    assert (ran.result.exit_code, ran.result.result_json) == (0, {"httpStatus": 200})


def test_values_never_break_out_of_the_payload(tmp_path: Path, endpoint: Endpoint) -> None:
    endpoint.on("POST /", reply())
    template = {"a": ["x {{prompt}}", 1, None], "b": {"c": "{{missing}}"}, "{{prompt}}": True}
    run(tmp_path, '","evil":"', url=f"{endpoint.url}/", payloadTemplate=template)
    assert endpoint.seen[0].json == {
        "a": ['x ","evil":"', 1, None],
        "b": {"c": ""},
        "{{prompt}}": True,
    }


def test_url_headers_and_method_come_from_the_config(tmp_path: Path, endpoint: Endpoint) -> None:
    endpoint.on("GET /runs/r1?q=a%2Fb%3Fc%26d", reply(body=b"fine", kind="text/plain"))
    ran = run(
        tmp_path,
        "a/b?c&d",
        url=f"{endpoint.url}/runs/{{{{runId}}}}?q={{{{prompt}}}}",
        method="GET",
        headers={"X-Run": "{{runId}}", "X-Odd": "ü {{context.promptText}}"},
    )
    (asked,) = endpoint.seen
    assert (asked.body, asked.headers["x-run"]) == (b"", "r1")
    assert ran.result.summary == "fine"


def test_the_token_is_sent_and_shown_nowhere(tmp_path: Path, endpoint: Endpoint) -> None:
    """D8: not in argv, environment, meta or result, also when the endpoint echoes it."""
    secret = "tok-0123456789abcdef"
    endpoint.on("POST /", reply(body=b'{"text":"you said Bearer ' + secret.encode() + b'"}'))
    attempt = Attempt(tmp_path, {"url": f"{endpoint.url}/", "authToken": secret})
    plan = attempt.plan()
    assert secret not in repr((plan.argv, plan.env, plan.meta))
    assert secret in plan.secrets
    ran = attempt.finish(attempt.start())
    assert endpoint.seen[0].headers["authorization"] == f"Bearer {secret}"
    kept = [path.read_text() for path in sorted(ran.directory.iterdir())]
    assert len(kept) == 2
    assert [text for text in kept if secret in text] == []
    meta = json.loads((ran.directory / "invocation.json").read_bytes())
    assert meta["context"]["headers"] == {"Authorization": "***"}
    assert (meta["command"], meta["prompt"]) == ("POST", "do it")


def test_a_token_in_another_header_is_sent_as_it_is(tmp_path: Path, endpoint: Endpoint) -> None:
    endpoint.on("POST /", reply())
    run(tmp_path, url=f"{endpoint.url}/", authToken="abcdefgh", authHeader="X-Api-Key")
    assert endpoint.seen[0].headers["x-api-key"] == "abcdefgh"


def test_a_stream_is_logged_exactly_while_it_comes(tmp_path: Path, endpoint: Endpoint) -> None:
    """D2: bytes as received, the first ones long before the last."""
    first, rest = b'data: {"delta":"H\xc3', b'\xbc"}\r\n\r\ndata: {"delta":"!"}\r\n\r\n'

    def answer(handler: Handler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        handler.chunk(first)
        endpoint.released.wait(60)
        handler.chunk(rest)
        handler.wfile.write(b"0\r\n\r\n")

    endpoint.on("POST /", answer)
    attempt = Attempt(tmp_path, {"url": f"{endpoint.url}/"})
    child = attempt.start()
    assert child.stdout is not None
    begun = child.stdout.read(len(first))
    endpoint.released.set()
    ran = attempt.finish(child)
    assert begun + ran.stdout == first + rest
    assert (ran.result.summary, ran.result.error_code) == ("Hü!", None)


def test_the_result_path_names_the_final_text(tmp_path: Path, endpoint: Endpoint) -> None:
    body = b'{\n "output": [{"text": "wrong"}, {"text": "the answer"}]\n}\n'
    endpoint.on("POST /", reply(body=body))
    ran = run(tmp_path, url=f"{endpoint.url}/", resultPath="output.1.text")
    assert (ran.stdout, ran.result.summary) == (body, "the answer")


def test_the_result_path_reads_the_last_object_of_a_stream(
    tmp_path: Path, endpoint: Endpoint
) -> None:
    endpoint.on("POST /", stream(b'{"n":1}\n{"n":', b"2}\n", kind="application/x-ndjson"))
    assert run(tmp_path, url=f"{endpoint.url}/", resultPath="n").result.summary == "2"


def test_entries_of_the_contract_give_usage_cost_and_session(
    tmp_path: Path, endpoint: Endpoint
) -> None:
    """A5: an endpoint that speaks the contract gets a fully populated result."""
    lines = [
        {"kind": "init", "model": "m-1", "sessionId": "s-1"},
        {
            "kind": "result",
            "text": "all done",
            "inputTokens": 5,
            "outputTokens": 7,
            "cachedTokens": 2,
            "costUsd": 0.25,
            "subtype": "success",
            "isError": False,
            "errors": [],
        },
    ]
    body = "".join(json.dumps(line) + "\n" for line in lines).encode()
    endpoint.on("POST /", stream(body, kind="application/x-ndjson"))
    result = run(tmp_path, url=f"{endpoint.url}/").result
    assert (result.summary, result.model, result.cost_usd) == ("all done", "m-1", 0.25)
    assert result.session_params == {"sessionId": "s-1", "cwd": str(tmp_path)}
    usage = result.usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens, usage.cached_input_tokens) == (5, 7, 2)


def test_an_error_in_a_good_answer_is_a_failure(tmp_path: Path, endpoint: Endpoint) -> None:
    """A9: 200 alone is no success."""
    endpoint.on("POST /", stream(b'event: error\ndata: {"message":"model is gone"}\n\n'))
    result = run(tmp_path, url=f"{endpoint.url}/").result
    assert (result.error_code, result.exit_code) == ("process_failed", 1)
    assert result.error_message == "The endpoint reported: model is gone"


def test_a_long_task_is_polled_to_its_end(tmp_path: Path, endpoint: Endpoint) -> None:
    """Only a changed status is logged; a passing failure of a look is no failure of the task."""
    endpoint.on("POST /tasks", reply(202, b'{"id":"t 1/x","status":"queued"}'))
    endpoint.on(
        "GET /tasks/t%201%2Fx",
        in_turn(
            reply(body=b'{"status":"running"}'),
            reply(503),
            reply(body=b'{"status":"running"}'),
            reply(body=b'{"status":"done","output":"42"}'),
        ),
    )
    ran = run(
        tmp_path,
        url=f"{endpoint.url}/tasks",
        pollUrl=f"{endpoint.url}/tasks/{{{{response.id}}}}",
        pollIntervalSec=0.01,
        resultPath="output",
        authToken="abcdefgh",
    )
    assert ran.stdout.split(b"\n") == [
        b'{"id":"t 1/x","status":"queued"}',
        b'{"status":"running"}',
        b'{"status":"done","output":"42"}',
        b"",
    ]
    assert (ran.result.summary, ran.result.error_code) == ("42", None)
    assert endpoint.seen[-1].headers["authorization"] == "Bearer abcdefgh"
    assert "503" in ran.stderr


def test_a_failed_task_says_why(tmp_path: Path, endpoint: Endpoint) -> None:
    endpoint.on("POST /tasks", reply(body=b'{"id":7}'))
    endpoint.on("GET /tasks/7", reply(body=b'{"status":"failed","error":{"message":"no disk"}}'))
    ran = run(
        tmp_path,
        url=f"{endpoint.url}/tasks",
        pollUrl=f"{endpoint.url}/tasks/{{{{response.id}}}}",
        pollIntervalSec=0.01,
    )
    assert (ran.result.error_code, ran.cause) == ("process_failed", "task_failed")
    assert "no disk" in (ran.result.error_message or "")


def test_polling_gives_up_after_failures_in_a_row(tmp_path: Path, endpoint: Endpoint) -> None:
    endpoint.on("POST /tasks", reply(body=b'{"id":7}'))
    endpoint.on("GET /tasks/7", reply(500))
    ran = run(
        tmp_path,
        url=f"{endpoint.url}/tasks",
        pollUrl=f"{endpoint.url}/tasks/{{{{response.id}}}}",
        pollIntervalSec=0.01,
    )
    assert (ran.result.error_code, endpoint.asked.count("GET /tasks/7")) == ("upstream", 5)


def test_a_value_of_the_answer_stays_inside_its_part_of_the_url(
    tmp_path: Path, endpoint: Endpoint
) -> None:
    """A8: an answer cannot choose where we call next."""
    for number, bad in enumerate(('".."', '{"x":1}', '""', "null", "true")):
        folder = tmp_path / str(number)
        folder.mkdir()
        endpoint.on("POST /tasks", reply(body=b'{"id":' + bad.encode() + b"}"))
        ran = run(
            folder,
            url=f"{endpoint.url}/tasks",
            pollUrl=f"{endpoint.url}/tasks/{{{{response.id}}}}",
            pollIntervalSec=0.01,
        )
        assert ran.result.error_code == "parse_failed"
    assert set(endpoint.asked) == {"POST /tasks"}


def test_a_stopped_run_cancels_at_the_endpoint(tmp_path: Path, endpoint: Endpoint) -> None:
    """A11: SIGTERM reaches the work that runs elsewhere."""
    endpoint.on("POST /tasks", reply(body=b'{"id":"t1"}'))
    endpoint.on("GET /tasks/t1", reply(body=b'{"status":"running"}\n'))
    endpoint.on("DELETE /tasks/t1", reply(204))
    attempt = Attempt(
        tmp_path,
        {
            "url": f"{endpoint.url}/tasks",
            "pollUrl": f"{endpoint.url}/tasks/{{{{response.id}}}}",
            "pollIntervalSec": 0.01,
            "cancelUrl": f"{endpoint.url}/tasks/{{{{response.id}}}}",
            "cancelMethod": "DELETE",
        },
    )
    child = attempt.start()
    assert child.stdout is not None
    child.stdout.readline()
    assert child.stdout.readline() == b'{"status":"running"}\n'
    child.send_signal(signal.SIGTERM)
    ran = attempt.finish(child)
    assert endpoint.asked[-1] == "DELETE /tasks/t1"
    assert ran.result.error_code == "cancelled"
    assert "to cancel" in ran.stderr


def test_a_cancel_without_an_answer_to_name_is_told(tmp_path: Path, endpoint: Endpoint) -> None:
    def answer(handler: Handler) -> None:
        handler.close_connection = True
        reached.set()
        endpoint.released.wait(60)

    reached = type(endpoint.released)()
    endpoint.on("POST /tasks", answer)
    attempt = Attempt(
        tmp_path,
        {
            "url": f"{endpoint.url}/tasks",
            "cancelUrl": f"{endpoint.url}/tasks/{{{{response.id}}}}/cancel",
        },
    )
    child = attempt.start()
    assert reached.wait(60)
    child.send_signal(signal.SIGTERM)
    ran = attempt.finish(child)
    assert endpoint.asked == ["POST /tasks"]
    assert ran.result.error_code == "cancelled"
    assert "was not told to cancel" in ran.stderr
