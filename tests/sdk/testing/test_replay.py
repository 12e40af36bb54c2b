"""T2, D2: replaying saved bytes is deterministic and goes the way of a live run."""

from __future__ import annotations

from pathlib import Path

import pytest

from binderclip.contract.entry import Assistant, Stderr, System, apply
from binderclip.contract.run import Usage
from binderclip.sdk import CliAdapter, Manifest
from binderclip.sdk.loading import load_adapter_from
from binderclip.sdk.testing.fixtures import Case, cases_of, differences, read_case
from binderclip.sdk.testing.replay import REPLAY_TS, replay

SAMPLE = Path(__file__).parent / "sample_agent"
ADAPTER = load_adapter_from(str(SAMPLE))
OUTPUT = (
    b'{"type":"begin","session":"s-1","model":"m"}\n'
    b'{"type":"say","text":"Hi."}\n'
    b'{"type":"end","tokens":{"in":5,"out":2}}\n'
)


class Plain(CliAdapter):
    """A program that prints plain lines."""

    manifest = Manifest(id="plain", label="Plain", structured=False)


def test_saved_output_gives_entries_result_and_coverage() -> None:
    """Design 6: the result that `execute` would return."""
    seen = replay(ADAPTER, OUTPUT, b"warning\n", cwd="/w")
    assert [type(entry).__name__ for entry in seen.entries] == ["Init", "Assistant", "Stderr"]
    assert seen.entries == apply([], seen.records)
    assert (seen.result.exit_code, seen.result.error_code) == (0, None)
    assert seen.result.session_params == {"sessionId": "s-1", "cwd": "/w"}
    assert seen.result.usage == Usage(input_tokens=5, output_tokens=2)
    assert (seen.coverage.lines, seen.coverage.unknown) == (3, 0)
    assert seen.builder.failures == []


def test_time_is_fixed_unless_given() -> None:
    """T2: same input, same output."""
    assert {entry.ts for entry in replay(ADAPTER, OUTPUT).entries} == {REPLAY_TS}
    later = "2026-01-01T00:00:00.000Z"
    assert {entry.ts for entry in replay(ADAPTER, OUTPUT, ts=later).entries} == {later}


@pytest.mark.parametrize("chunks", [1, 2, 7, [1, 50, 3], 10**6])
def test_chunks_do_not_matter(chunks: int | list[int]) -> None:
    """T4: whatever the chunks."""
    whole, cut = replay(ADAPTER, OUTPUT), replay(ADAPTER, OUTPUT, chunks=chunks)
    assert (cut.records, cut.result) == (whole.records, whole.result)


def test_how_the_process_ended_counts() -> None:
    """A9: exit code, signal and reason, as the supervisor would tell them."""
    cut = OUTPUT.splitlines()[0]
    assert replay(ADAPTER, cut, exit_code=2).result.error_code == "process_failed"
    assert replay(ADAPTER, cut, reason="idle_timeout").result.error_code == "idle_timeout"
    killed = replay(ADAPTER, cut, signal="SIGKILL").result
    assert (killed.exit_code, killed.signal, killed.error_code) == (None, "SIGKILL", "killed")
    told = replay(ADAPTER, cut, reason="timeout").result.error_message
    assert told == "Stopped after 14400 s (timeoutSec)."


def test_the_resumed_session_is_known() -> None:
    """S5: a run that was asked to resume and got another session says so."""
    result = replay(ADAPTER, OUTPUT, session={"sessionId": "asked"}).result
    assert result.result_json == {"sessionReplaced": {"asked": "asked", "got": "s-1"}}


def test_unstructured_output_has_its_last_lines_as_summary() -> None:
    """T3: plain text, with notices and a last line without a newline."""
    seen = replay(Plain(), b"one\n[binderclip] note\ntwo", b"low\n")
    kinds = [type(entry) for entry in seen.entries]
    assert kinds == [Assistant, System, Assistant, Stderr]
    assert (seen.result.summary, seen.result.error_code) == ("one\ntwo", None)


def test_nothing_printed_is_a_cut_output() -> None:
    seen = replay(ADAPTER, b"")
    assert (seen.entries, seen.result.error_code) == ([], "cut_output")


def test_cases_are_read_from_an_adapters_folder() -> None:
    """Design 2: fixtures/ holds recorded output and the entries expected from it."""
    cases = {case.name: case for case in cases_of(ADAPTER)}
    assert list(cases) == ["failed", "plain", "tools", "unknown_session"]
    assert cases["unknown_session"].exit_code == 3
    assert (cases["plain"].exit_code, cases["plain"].stderr) == (0, b"")


def changed(path: Path, stdout: str) -> Case:
    (path / "stdout.txt").write_text(stdout)
    return read_case(path)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("The answer is 42.", "The answer is 43.", "entry 1: expected"),
        ('"cached":60', '"cached":61', "result.usage.inputTokens: expected 40, got 39"),
        ('"s-1"', '"s-2"', "result.sessionId"),
        ('"type":"say"', '"type":"shout"', "coverage.understood: expected 3, got 2"),
    ],
)
def test_every_difference_is_told_in_words(tmp_path: Path, old: str, new: str, told: str) -> None:
    plain = read_case(SAMPLE / "fixtures" / "plain")
    other = changed(tmp_path, plain.stdout.decode().replace(old, new))
    assert plain.expected is not None
    wrong = differences(plain.expected, other.replayed(ADAPTER))
    assert any(line.startswith(told) for line in wrong), wrong


def test_a_missing_or_an_extra_entry_is_told(tmp_path: Path) -> None:
    plain = read_case(SAMPLE / "fixtures" / "plain")
    longer = changed(tmp_path, plain.stdout.decode() + '{"type":"say","text":"more"}\n')
    assert plain.expected is not None
    wrong = differences(plain.expected, longer.replayed(ADAPTER))
    assert "2 entries expected, got 3" in wrong[0]
