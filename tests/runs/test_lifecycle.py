"""A run from start to end, with real processes."""

from __future__ import annotations

import json
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from binderclip.contract.entry import EntryRecord, System, apply
from binderclip.contract.session import ResumeDecision
from binderclip.plugins.registry import load_adapter
from binderclip.runs import lifecycle
from binderclip.runs.execute import cancel
from binderclip.runs.recover import take_over
from binderclip.runs.retell import retell
from binderclip.sdk import (
    Assistant,
    Call,
    CliAdapter,
    CliConfig,
    Command,
    Init,
    JsonParser,
    Manifest,
    Secret,
)
from binderclip.store.fileview import is_driven
from binderclip.store.transcripts import read_transcript
from binderclip.supervisor.launch import Capture
from tests.runs.conftest import Heard, Ran, Runs

PROCESS = load_adapter("process")


def bash(runs: Runs, script: str, **options: Any) -> Ran:
    return runs.run(PROCESS, command="bash", args=["-c", script], **options)


def test_a_successful_run_goes_through_its_states_in_order(runs: Runs) -> None:
    ran = bash(runs, "echo one; echo two")
    assert ran.heard.states == ["starting", "running", "finalizing", "succeeded"]
    assert ran.heard.texts() == ["one", "two"]
    assert ran.result.summary == "one\ntwo"
    assert ran.result.exit_code == 0
    assert ran.outcome.coverage is not None
    assert (ran.outcome.coverage.lines, ran.outcome.coverage.unknown) == (2, 0)


def test_the_stored_transcript_is_what_the_listener_heard(runs: Runs) -> None:
    """D2: live and stored records are the same."""
    ran = bash(runs, "for i in $(seq 500); do echo line $i; done; echo oops >&2")
    assert ran.stored() == ran.heard.seen
    assert len(ran.heard.texts()) == 500


def test_a_transcript_made_again_from_the_bytes_is_the_same(runs: Runs) -> None:
    """D2, T2: a transcript is a function of the kept bytes."""
    ran = bash(runs, "printf 'a\\nz'; printf 'b' >&2; sleep 0.05; printf 'ażółć\\n'; exit 4")
    (ran.directory / "outcome.json").unlink()
    again = Heard()
    outcome = take_over(runs.home, ran.drive.run_id, load_adapter, again)
    assert again.seen == ran.heard.seen == ran.stored()
    assert outcome.result == ran.result


def test_the_prompt_travels_on_stdin_and_not_in_argv(runs: Runs) -> None:
    """A10."""
    ran = bash(runs, "cat; echo; tr '\\0' ' ' < /proc/$$/cmdline", prompt="the secret plan")
    said = ran.heard.texts()
    assert said[0] == "the secret plan"
    assert "secret plan" not in said[1]


def test_the_child_sees_the_allow_list_and_the_run_s_own_variables_only(runs: Runs) -> None:
    """H5, A7: printed by the child itself."""
    hostile = {"SERVER_DATABASE_URL": "postgres://x", "NODE_OPTIONS": "--inspect", "LC_ALL": "C"}
    ran = bash(runs, "env -0", env=hostile)
    names = {line.split(b"=")[0].decode() for line in ran.log().split(b"\0") if line}
    allowed = {"PATH", "LC_ALL"}
    own = {
        "PAPERCLIP_AGENT_ID",
        "PAPERCLIP_COMPANY_ID",
        "PAPERCLIP_RUN_ID",
        "PAPERCLIP_WAKE_REASON",
    }
    shell = {"PWD", "SHLVL", "_", "OLDPWD"}
    assert names - shell == allowed | own


def test_secrets_of_the_environment_never_reach_log_or_transcript(runs: Runs) -> None:
    """D8."""
    value = "sk-very-secret-0123456789"
    ran = _with_own_env(runs, value)
    everything = b"".join(path.read_bytes() for path in ran.directory.rglob("*") if path.is_file())
    assert value.encode() not in everything
    assert ran.heard.texts()[0] == "key is " + "*" * len(value)


def _with_own_env(runs: Runs, value: str) -> Ran:
    drive = runs.drive(
        PROCESS,
        command="bash",
        args=["-c", 'echo "key is $MY_API_KEY"; printf %s "$MY_API_KEY" | base64'],
    )
    assert drive.request is not None
    drive.request.config["env"] = {"MY_API_KEY": value}
    return Ran(drive, lifecycle.run(drive))


def test_a_missing_command_blocks_the_run_and_says_what_to_do(runs: Runs) -> None:
    """E3: nothing is started, and the run says why."""
    ran = runs.run(PROCESS, command="no-such-program-here")
    assert ran.outcome.state == "failed"
    assert ran.result.error_code == "preflight_failed"
    assert "no-such-program-here" in ran.result.error_message
    assert runs.home.attempts(ran.drive.run_id) == []


def test_a_script_whose_interpreter_is_missing_is_told_apart(runs: Runs) -> None:
    """A9: found by the spawn, not by the checks."""
    script = runs.cwd / "broken"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    ran = runs.run(PROCESS, command=str(script))
    assert ran.outcome.state == "failed"
    assert ran.result.error_code == "command_not_found"


def test_a_run_over_its_time_is_timed_out_and_keeps_what_it_said(runs: Runs) -> None:
    """A11."""
    ran = bash(runs, "echo begun; sleep 600", timeoutSec=0.5, graceSec=1)
    assert ran.outcome.state == "timed_out"
    assert ran.result.timed_out is True
    assert ran.result.error_code == "timeout"
    assert ran.heard.texts() == ["begun"]


def test_a_silent_run_is_stopped_by_the_idle_limit(runs: Runs) -> None:
    """A11."""
    ran = bash(runs, "echo begun; sleep 600", idleTimeoutSec=0.5, graceSec=1)
    assert ran.outcome.state == "timed_out"
    assert ran.result.error_code == "idle_timeout"


def test_a_cancelled_run_names_who_and_why(runs: Runs) -> None:
    drive = runs.drive(PROCESS, command="bash", args=["-c", "echo begun; sleep 600"])
    heard = drive.listener
    assert isinstance(heard, Heard)
    timer = threading.Thread(target=_cancel_when_begun, args=(heard,))
    timer.start()
    ran = Ran(drive, lifecycle.run(drive))
    timer.join()
    assert ran.outcome.state == "cancelled"
    assert ran.result.error_message == "Cancelled by ada: enough."


def _cancel_when_begun(heard: Heard) -> None:
    while not heard.seen:
        time.sleep(0.01)
    cancel(heard.attempts[0], "ada", "enough")


def test_leftover_daemons_are_ended_and_named(runs: Runs) -> None:
    ran = bash(runs, "(setsid sleep 543 &) ; echo done")
    assert ran.outcome.state == "succeeded"
    notes = [entry.text for entry in ran.heard.entries if isinstance(entry, System)]
    assert any("sleep 543" in note for note in notes)
    assert not _alive(ran.drive.run_id)


def _alive(run_id: str) -> list[str]:
    marker = f"PAPERCLIP_RUN_ID={run_id}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and marker in (entry / "environ").read_bytes():
                found.append(entry.name)
        except OSError:
            continue
    return found


def test_a_detached_run_is_driven_by_whoever_comes_next(runs: Runs) -> None:
    drive = runs.drive(PROCESS, command="bash", args=["-c", "echo hello"])
    assert lifecycle.detach(drive) is None
    assert not is_driven(runs.home, drive.run_id)
    heard = Heard()
    outcome = take_over(runs.home, drive.run_id, load_adapter, heard)
    assert outcome.state == "succeeded"
    assert heard.texts() == ["hello"]


def test_taking_over_a_finished_run_changes_nothing(runs: Runs) -> None:
    """D5: finalize is idempotent."""
    ran = bash(runs, "echo once")
    before = (ran.directory / "outcome.json").read_bytes()
    assert take_over(runs.home, ran.drive.run_id, load_adapter) == ran.outcome
    assert (ran.directory / "outcome.json").read_bytes() == before


def test_a_transcript_that_cannot_be_written_does_not_end_the_run(runs: Runs) -> None:
    drive = runs.drive(PROCESS, command="bash", args=["-c", "echo still here"])
    attempt = runs.home.make_attempt_dir(drive.run_id, 1)
    (attempt / "transcript.jsonl.next").mkdir()
    (attempt / "transcript.jsonl").touch()
    ran = Ran(drive, lifecycle.run(drive))
    assert ran.outcome.state == "succeeded"
    assert ran.heard.texts() == ["still here"]
    assert any("transcript is incomplete" in notice for notice in ran.heard.notices)


def test_scratch_files_are_removed_when_the_run_is_over(runs: Runs) -> None:
    ran = bash(runs, "true")
    assert not (ran.directory / "attempt-1" / "scratch").exists()


class TalkConfig(CliConfig):
    api_token: Secret | None = None


class TalkParser(JsonParser):
    def parse_event(self, event: dict[str, Any], ts: str) -> Any:
        if event.get("type") == "init":
            self.facts.session_id = event["session"]
            return (Init(ts=ts, model="m", session_id=event["session"]),)
        if event.get("type") == "say":
            self.facts.final_text = event["text"]
            return (Assistant(ts=ts, text=event["text"]),)
        if event.get("type") == "end":
            self.facts.ended = "success"
            return ()
        return None

    def parse_stderr(self, line: str, ts: str) -> None:
        if line.startswith("no such session"):
            self.facts.unknown_session = True


class Talk(CliAdapter):
    """A runtime with sessions, spoken by a few lines of shell."""

    manifest = Manifest(id="talk", label="Talk", command="bash")
    Config = TalkConfig

    def command(self, call: Call) -> Command:
        session = (call.session or {}).get("sessionId", "")
        script = """
        if [ "$1" = gone ]; then echo "no such session: $1" >&2; exit 1; fi
        echo '{"type":"init","session":"'${1:-fresh-1}'"}'
        echo '{"type":"say","text":"session '${1:-none}'"}'
        echo '{"type":"end"}'
        """
        return Command(("bash", "-c", script, "talk", session))

    def create_parser(self) -> TalkParser:
        return TalkParser()


def resumed(session: str) -> ResumeDecision:
    return ResumeDecision(
        action="resume", reason="a test", params={"sessionId": session}, display_id=session
    )


def test_a_stored_session_is_resumed(runs: Runs) -> None:
    """S1."""
    ran = runs.run(Talk(), session=resumed("abc-1"))
    assert ran.heard.texts() == ["session abc-1"]
    assert ran.result.session_params["sessionId"] == "abc-1"
    assert ran.result.session_params["cwd"] == str(runs.cwd)


def test_an_unknown_session_is_retried_once_afresh(runs: Runs) -> None:
    """A6, S4: one fresh attempt, clearSession, both attempts kept."""
    ran = runs.run(Talk(), session=resumed("gone"))
    assert ran.outcome.state == "succeeded"
    assert ran.result.clear_session is True
    assert ran.result.session_params["sessionId"] == "fresh-1"
    assert runs.home.attempts(ran.drive.run_id) == [1, 2]
    assert ran.log("stderr", 1) == b"no such session: gone\n"
    entries = ran.heard.entries
    assert [entry.seq for entry in entries] == list(range(len(entries)))
    assert apply([], [*ran.stored(1), *ran.stored(2)]) == entries


def test_a_retried_run_that_was_taken_over_clears_its_session_as_well(runs: Runs) -> None:
    """S4, D5: whoever finishes it comes to the same result."""
    ran = runs.run(Talk(), session=resumed("gone"))
    (ran.directory / "outcome.json").unlink()
    again = take_over(runs.home, ran.drive.run_id, lambda type: Talk())
    assert again.result == ran.result
    assert again.result is not None and again.result.clear_session is True


def test_an_unknown_session_without_one_asked_for_is_a_failure_and_no_loop(runs: Runs) -> None:
    """S4."""
    adapter = Talk()
    adapter.command = lambda call: Command(  # type: ignore[method-assign]
        ("bash", "-c", "echo no such session: zzz >&2; exit 1")
    )
    ran = runs.run(adapter, session=resumed("zzz"))
    assert ran.outcome.state == "failed"
    assert ran.result.error_code == "unknown_session"
    assert runs.home.attempts(ran.drive.run_id) == [1, 2]


def test_a_secret_field_is_masked_and_never_kept(runs: Runs) -> None:
    """D7, D8: neither in run.json nor in the log."""
    adapter = Talk()
    token = "tok-abcdef-123456"
    adapter.command = lambda call: Command(  # type: ignore[method-assign]
        ("bash", "-c", f'printf \'%s\\n\' \'{{"type":"say","text":"{token}"}}\'')
    )
    ran = runs.run(adapter, apiToken=token)
    assert token not in (ran.directory / "run.json").read_text()
    assert ran.heard.texts() == ["*" * len(token)]


@pytest.mark.parametrize(
    ("capture", "told"),
    [
        (Capture("pipe", "pipe"), "up to 256 KiB of stdout and stderr may be missing"),
        (Capture("file", "pipe"), "up to 256 KiB of stderr may be missing"),
        (Capture("file", "file"), "no output is missing"),
    ],
    ids=["pipe", "mixed", "file"],
)
def test_a_transcript_says_what_a_killed_supervisor_may_have_cost(
    runs: Runs, capture: Capture, told: str
) -> None:
    """D1: said where it matters, and only what is true of that capture."""
    ran = runs.run(Talk())
    attempt = ran.directory / "attempt-1"
    for name, changes in (("exit", {"adopted": True}), ("meta", {"capture": capture._asdict()})):
        file = attempt / f"{name}.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | changes))
    (attempt / "transcript.jsonl").unlink()
    assert retell(runs.home, ran.drive.run_id, lambda type: Talk())
    last = list(read_transcript(attempt / "transcript.jsonl"))[-1]
    assert isinstance(last, EntryRecord) and isinstance(last.entry, System)
    assert told in last.entry.text


def test_an_agent_that_exits_0_without_its_end_marker_was_cut(runs: Runs) -> None:
    """A9: the exit code alone decides nothing."""
    adapter = Talk()
    adapter.command = lambda call: Command(  # type: ignore[method-assign]
        ("bash", "-c", """echo '{"type":"say","text":"half"}'""")
    )
    ran = runs.run(adapter)
    assert ran.outcome.state == "failed"
    assert ran.result.error_code == "cut_output"


def test_an_agent_that_dies_after_its_result_has_succeeded(runs: Runs) -> None:
    adapter = Talk()
    adapter.command = lambda call: Command(  # type: ignore[method-assign]
        ("bash", "-c", """echo '{"type":"end"}'; kill -9 $$""")
    )
    ran = runs.run(adapter)
    assert ran.outcome.state == "succeeded"
    assert ran.result.signal == "SIGKILL"


def test_meta_holds_what_rebuilds_the_row(runs: Runs) -> None:
    ran = bash(runs, "true", prompt="do it")
    meta = json.loads((ran.directory / "attempt-1" / "meta.json").read_text())
    assert meta["adapterType"] == "process"
    assert meta["invocation"]["prompt"] == "do it"
    assert meta["wakeReasons"] == ["manual"]
    assert meta["argv"][0].endswith("bash")
    assert meta["limits"]["timeoutSec"] == 14400


def test_a_hundred_thousand_lines_come_through_whole(runs: Runs) -> None:
    script = "import sys\nfor n in range(100000): sys.stdout.write(f'line {n}\\n')"
    ran = runs.run(PROCESS, command=sys.executable, args=["-c", script])
    assert ran.heard.texts() == [f"line {n}" for n in range(100_000)]
    assert ran.log() == "".join(f"line {n}\n" for n in range(100_000)).encode()
