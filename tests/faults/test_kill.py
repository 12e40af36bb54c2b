"""kill -9 of each process at each step: what was kept, how it ended, nothing run twice (D1)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.faults.conftest import BINDERCLIP, Account, kill, kill_pid, until


def test_a_run_that_nobody_disturbs_is_whole(account: Account) -> None:
    run = account.run(gates=1)
    account.at_gate()
    account.open_gate()
    output, _ = run.communicate(timeout=60)
    assert run.returncode == 0, output.decode()
    assert account.outcome()["state"] == "succeeded"
    account.assert_whole(400)


def test_killing_the_cli_leaves_the_agent_working_and_runs_finishes_its_record(
    account: Account,
) -> None:
    run = account.run(gates=1)
    account.at_gate()
    kill(run)
    account.open_gate()
    account.finished()
    assert account.list_until_over() == "succeeded"
    account.assert_whole(400)


def test_runs_leaves_a_working_agent_alone(account: Account) -> None:
    run = account.run(gates=1)
    account.at_gate()
    kill(run)
    assert "running" in account.ask("runs")
    assert not (account.directory / "outcome.json").exists()
    account.open_gate()
    account.finished()
    assert account.list_until_over() == "succeeded"
    account.assert_whole(400)


def test_killing_the_cli_while_output_streams_loses_no_line(account: Account) -> None:
    run = account.run(lines=20_000, gates=1)
    until(lambda: len(account.log()) > 50_000 if account.starts() else False, "output streams")
    kill(run)
    account.at_gate()
    account.open_gate()
    account.finished()
    assert account.list_until_over() == "succeeded"
    account.assert_whole(40_000)


def test_killing_the_supervisor_makes_the_driver_start_another(account: Account) -> None:
    run = account.run(gates=1)
    account.at_gate()
    first = account.meta()["supervisor"]["pid"]
    kill_pid(first)
    until(lambda: account.meta()["supervisor"]["pid"] != first, "another supervisor is in charge")
    account.open_gate()
    output, _ = run.communicate(timeout=60)
    # The runtime's own end marker says success, so the unknown exit status does not matter.
    assert run.returncode == 0, output.decode()
    assert account.outcome()["state"] == "succeeded"
    assert account.outcome()["result"]["exitCode"] is None
    account.assert_whole(400)


def test_a_supervisor_killed_with_a_silent_agent_that_then_dies_gives_lost(
    account: Account,
) -> None:
    run = account.run(gates=1)
    account.at_gate()
    first = account.meta()["supervisor"]["pid"]
    kill_pid(first)
    kill_pid(account.meta()["child"]["pid"])
    run.communicate(timeout=60)
    assert run.returncode == 1
    assert account.outcome()["state"] == "lost"
    account.assert_whole(200)


def test_killing_cli_and_supervisor_leaves_a_run_that_watch_takes_over(account: Account) -> None:
    run = account.run(gates=1)
    account.at_gate()
    kill(run)
    kill_pid(account.meta()["supervisor"]["pid"])
    watch = account.cli("watch", account.run_id)
    until(account.supervisor_alive, "watch has put a supervisor in charge")
    account.open_gate()
    output, _ = watch.communicate(timeout=60)
    assert watch.returncode == 0, output.decode()
    assert account.outcome()["state"] == "succeeded"
    account.assert_whole(400)


def test_killing_everything_ends_as_lost_with_every_byte_kept(account: Account) -> None:
    run = account.run(gates=1)
    account.at_gate()
    kill(run)
    kill_pid(account.meta()["supervisor"]["pid"])
    kill_pid(account.meta()["child"]["pid"])
    assert account.list_until_over() == "lost"
    account.assert_whole(200)


def test_a_cli_killed_before_the_spawn_leaves_a_run_that_never_ran(account: Account) -> None:
    (account.place / "die-at").write_text("command")
    run = account.run()
    run.communicate(timeout=60)
    assert run.returncode == -9
    assert account.list_until_over() == "lost"
    assert account.starts() == 0
    assert account.living() == []


def test_a_cli_killed_between_exit_and_result_loses_no_result(account: Account) -> None:
    (account.place / "die-at").write_text("conclude")
    run = account.run(gates=0)
    run.communicate(timeout=60)
    assert run.returncode == -9
    assert not (account.directory / "outcome.json").exists()
    assert account.list_until_over() == "succeeded"
    assert account.outcome()["result"]["summary"] == "done"
    account.assert_whole(200)


def test_a_supervisor_killed_before_the_spawn_ends_the_run_as_lost(account: Account) -> None:
    run = account.run(prefix=_dying_supervisor("spawn"))
    output, _ = run.communicate(timeout=60)
    assert run.returncode == 1, output.decode()
    assert account.outcome()["state"] == "lost"
    assert account.starts() == 0
    assert account.living() == []


def test_a_supervisor_killed_between_exit_and_exit_record_loses_nothing(account: Account) -> None:
    run = account.run(gates=0, prefix=_dying_supervisor("exit"))
    output, _ = run.communicate(timeout=60)
    assert run.returncode == 0, output.decode()
    assert account.outcome()["state"] == "succeeded"
    account.assert_whole(200)


def test_racing_drivers_finish_an_abandoned_run_once(account: Account) -> None:
    run = account.run(gates=1)
    account.at_gate()
    kill(run)
    watchers = [account.cli("watch", account.run_id) for _ in range(4)]
    account.open_gate()
    outputs = [watcher.communicate(timeout=60)[0].decode() for watcher in watchers]
    assert [watcher.returncode for watcher in watchers] == [0, 0, 0, 0], outputs
    states = [change["state"] for change in account.outcome()["history"]]
    assert states.count("succeeded") == 1
    account.assert_whole(400)


def test_a_watcher_killed_while_it_drives_is_followed_by_another(account: Account) -> None:
    run = account.run(gates=2)
    account.at_gate(1)
    kill(run)
    first = account.cli("watch", account.run_id)
    until(lambda: account.directory.joinpath("driver.lock").exists(), "there is a driver lock")
    second = account.cli("watch", account.run_id)
    account.open_gate(1)
    account.at_gate(2)
    kill(first)
    account.open_gate(2)
    output, _ = second.communicate(timeout=60)
    assert second.returncode == 0, output.decode()
    account.assert_whole(600)


def _dying_supervisor(point: str) -> tuple[str, ...]:
    """The command line of a `binderclip` whose first supervisor kills itself at a point."""
    script = Path(__file__).with_name("dying_supervisor.py")
    return (sys.executable, str(script), point)


def test_the_cli_under_test_is_the_installed_one() -> None:
    done = subprocess.run([BINDERCLIP, "--version"], capture_output=True, check=True)
    assert b"binderclip" in done.stdout
