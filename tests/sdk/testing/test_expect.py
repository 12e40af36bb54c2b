"""`python -m binderclip.sdk.testing.expect` writes what an adapter does today, for review."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from binderclip.sdk.loading import load_adapter_from
from binderclip.sdk.testing.expect import main
from binderclip.sdk.testing.fixtures import differences, read_case
from binderclip.sdk.testing.replay import replay

SAMPLE = Path(__file__).parent / "sample_agent"


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    """A copy that a test may change."""
    return Path(shutil.copytree(SAMPLE, tmp_path / "sample_agent"))


def test_written_expectations_are_those_that_are_kept(
    sample: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The four reviewed cases come out byte by byte as they are."""
    for path in sample.glob("fixtures/*/expected.json"):
        path.unlink()
    assert main([str(sample)]) == 0
    for path in SAMPLE.glob("fixtures/*/expected.json"):
        again = sample / path.relative_to(SAMPLE)
        assert again.read_text() == path.read_text()
    assert capsys.readouterr().out.count("expected.json") == 4


def test_one_case_can_be_named(sample: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path in sample.glob("fixtures/*/expected.json"):
        path.unlink()
    assert main([str(sample), "plain"]) == 0
    written = [path.parent.name for path in sample.glob("fixtures/*/expected.json")]
    assert written == ["plain"]
    assert "error None" in capsys.readouterr().out


def test_what_was_given_is_kept(sample: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A case that resumed a session, or ran into a limit, says so in `given`."""
    target = sample / "fixtures" / "plain" / "expected.json"
    given = {"session": {"sessionId": "old"}, "reason": "timeout"}
    target.write_text(json.dumps({"given": given}))
    assert main([str(sample), "plain"]) == 0
    told = json.loads(target.read_text())
    assert (told["given"], told["result"]["errorCode"]) == (given, "timeout")
    assert told["result"]["resultJson"]["sessionReplaced"]["asked"] == "old"
    assert "error timeout" in capsys.readouterr().out


def test_many_entries_are_kept_as_a_digest(
    sample: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Over 200 entries or 100 KB nobody reviews them one by one."""
    case = sample / "fixtures" / "plain"
    big = json.dumps({"type": "say", "text": "x" * 5000})
    (case / "stdout.txt").write_text(f"{big}\n" * 300 + '{"type":"end"}\n')
    assert main([str(sample), "plain"]) == 0
    told = json.loads((case / "expected.json").read_text())
    assert (told["entriesDigest"]["count"], "entries" in told) == (300, False)
    assert told["result"]["summary"]["characters"] == 5000
    assert (case / "expected.json").stat().st_size < 2000
    adapter = load_adapter_from(str(sample))
    again = read_case(case)
    assert differences(told, again.replayed(adapter)) == []
    other = replay(adapter, again.stdout.replace(b'xx"', b'xy"', 1))
    assert any("entriesDigest" in line for line in differences(told, other))
    assert "300" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        ([], 2, "ADAPTER_FOLDER"),
        (["--help"], 2, "ADAPTER_FOLDER"),
        ([str(SAMPLE), "nothing"], 2, "No such case: nothing. There are failed, plain"),
        (["/no/such/folder"], 1, "/no/such/folder"),
    ],
)
def test_mistakes_are_told(
    words: list[str], code: int, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == code
    assert told in capsys.readouterr().err


def test_it_runs_as_a_module(sample: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "binderclip.sdk.testing.expect", str(sample), "plain"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "'unknown': 0" in done.stdout
