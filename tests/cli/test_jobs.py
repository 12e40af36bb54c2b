"""Jobs and exports from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli

ADAPTER = Path(__file__).with_name("talker.py")


def newest_job(cli: Cli) -> dict[str, object]:
    jobs = json.loads(cli("jobs", "list", "--json").stdout)
    assert isinstance(jobs[0], dict)
    return jobs[0]


def test_a_run_is_in_its_job_when_the_command_ends(cli: Cli) -> None:
    """N4: written when the run is finalized, before anybody asks."""
    cli("run", "-a", "process", "--", "echo", "hello")
    (summary,) = cli.home.path.glob("jobs/*/runs/*/run.json")
    kept = json.loads(summary.read_text())
    assert (kept["id"], kept["status"], kept["output"]) == (cli.newest(), "succeeded", "hello")
    assert newest_job(cli)["runs"] == [cli.newest()]


def test_continue_joins_the_job_and_resumes_the_session(cli: Cli) -> None:
    """S1: the last session of this adapter in this directory."""
    cli("run", "-a", str(ADAPTER), "first")
    first = cli.newest()
    out = cli("run", "-a", str(ADAPTER), "--continue", "second").stdout
    assert "session talk-1" in out
    assert newest_job(cli)["runs"] == [first, cli.newest()]


def test_continue_job_needs_no_adapter_and_works_where_the_job_worked(cli: Cli) -> None:
    cli("run", "-a", str(ADAPTER), "first")
    job = str(newest_job(cli)["id"])
    done = cli("run", "--continue-job", job[-8:], "--cwd", str(cli.cwd), "second")
    assert "session talk-1" in done.stdout
    tree = json.loads(cli("jobs", "tree", "--json").stdout)
    assert tree[0]["children"][0]["run"]["prompt"] == "second"
    assert "↳ " in cli("jobs", "tree", job[-8:]).stdout


def test_resume_from_a_checkpoint_that_was_continued_says_so(cli: Cli) -> None:
    cli("run", "-a", str(ADAPTER), "first")
    first = cli.newest()
    cli("run", "--resume-from", f"{first[-8:]}-1", "second")
    out = cli("run", "--resume-from", f"{first[-8:]}-1", "third").stdout
    assert "has gone on since that checkpoint" in out
    (root,) = json.loads(cli("jobs", "tree", "--json").stdout)
    assert [node["run"]["prompt"] for node in root["children"]] == ["second", "third"]
    shown = cli("jobs", "show").stdout
    assert f"checkpoint {first[-8:]}-1" in shown and "3 runs" in shown


def test_a_session_of_another_directory_is_not_resumed_and_the_run_says_so(cli: Cli) -> None:
    """S3."""
    cli("run", "-a", str(ADAPTER), "first")
    job = str(newest_job(cli)["id"])
    other = cli.cwd / "other"
    other.mkdir()
    out = cli("run", "--continue-job", job, "--cwd", str(other), "second").stdout
    assert "another directory" in out and "no session" in out
    assert len(list(cli.home.path.glob(f"jobs/{job}/runs/*"))) == 2


def test_a_job_of_another_adapter_cannot_be_continued(cli: Cli) -> None:
    cli("run", "-a", str(ADAPTER), "first")
    job = str(newest_job(cli)["id"])
    done = cli("run", "-a", "process", "--continue-job", job, "--", "true", code=2)
    assert "was made by talker" in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("run", "no adapter named"),
        ("run", "--continue-job", "deadbeef", "x"),
        ("run", "--resume-from", "deadbeef-1", "x"),
        ("run", "-a", "process", "--continue", "--continue-job", "deadbeef"),
        ("jobs", "show", "deadbeef"),
        ("runs", "export", "deadbeef"),
    ],
)
def test_what_is_not_there_is_wrong_usage(cli: Cli, words: tuple[str, ...]) -> None:
    assert "Traceback" not in cli(*words, code=2).stderr


def test_the_schema_is_printed_as_json(cli: Cli) -> None:
    defined = json.loads(cli("jobs", "schema").stdout)["$defs"]
    assert {"Checkpoint", "Event", "Job"} <= defined.keys()


def test_an_empty_list_tells_the_next_step(cli: Cli) -> None:
    assert "No jobs yet" in cli("jobs").stdout
    assert cli("jobs", "list", "--json").stdout.strip() == "[]"


def test_rebuild_makes_lost_jobs_again(cli: Cli) -> None:
    cli("run", "-a", "process", "--", "echo", "hello")
    files = {path: path.read_bytes() for path in cli.home.path.glob("jobs/**/*") if path.is_file()}
    for path in files:
        path.unlink()
    for transcript in cli.home.path.glob("runs/*/*/attempt-1/transcript.jsonl"):
        transcript.unlink()
    assert cli("jobs", "rebuild").stdout == "1 run in 1 job.\n"
    assert {path: path.read_bytes() for path in files} == files


def test_an_export_goes_to_a_file_or_to_stdout(cli: Cli) -> None:
    cli("run", "-a", "process", "--", "echo", "hello there")
    cli("runs", "export", "-o", "page.html")
    page = (cli.cwd / "page.html").read_text()
    assert "hello there" in page and "Content-Security-Policy" in page
    lines = cli("runs", "export", cli.newest()[-8:], "-f", "entries").stdout.splitlines()
    assert json.loads(lines[0])["entry"]["text"] == "hello there"
    job = str(newest_job(cli)["id"])
    assert "hello there" in cli("runs", "export", job[-8:], "--format", "markdown").stdout


def test_a_refused_export_leaves_no_file_and_names_the_place(cli: Cli) -> None:
    secret = "ghp_" + "a1B2" * 9
    cli("run", "-a", "process", "--", "printf", f"key {secret[:20]}%s", secret[20:])
    done = cli("runs", "export", "-o", "page.html", code=1)
    assert "a GitHub token in" in done.stderr and "--redact" in done.stderr
    assert secret not in done.stderr
    assert list(cli.cwd.iterdir()) == []
    cli("runs", "export", "-o", "page.html", "--redact")
    assert secret not in (cli.cwd / "page.html").read_text()


def test_an_export_into_nowhere_is_told_plainly(cli: Cli) -> None:
    cli("run", "-a", "process", "--", "true")
    assert "cannot be written" in cli("runs", "export", "-o", "no/such/x.html", code=1).stderr
