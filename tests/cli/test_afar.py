"""`watch --server`: a run of another machine, through every restart of its server (D9)."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Cli
from tests.server.conftest import serving, started


def elsewhere(cli: Cli) -> str:
    """A home of its own, so that nothing can be read from files."""
    return str(cli.cwd / "elsewhere")


def test_a_run_of_another_home_is_watched_by_its_address(cli: Cli) -> None:
    with serving(cli.home.path) as served:
        run = served.ran("echo one; echo two >&2; exit 3")
        home = {"BINDERCLIP_HOME": elsewhere(cli)}
        watched = cli("watch", run["id"][-8:], "--server", served.address, code=1, **home)
        assert "one" in watched.stdout
        assert "two" in watched.stdout
        assert "exit 3" in watched.stdout
        newest = cli("watch", "--server", served.address, "--json", code=1, **home)
        assert '"exitCode":3' in newest.stdout.splitlines()[-1]
        wrong = cli("watch", "--server", served.address, "--token", "wrong", code=1, **home)
        assert "Set BINDERCLIP_TOKEN" in wrong.stderr
        right = {**home, "BINDERCLIP_TOKEN": served.tokens.person}
        cli("watch", "--server", served.address, code=1, **right)
        unknown = cli("watch", "nothing0", "--server", served.address, code=None, **home)
        assert "no run 'nothing0'" in unknown.stderr


def test_a_server_that_is_gone_or_no_address_is_told(cli: Cli) -> None:
    assert "does not answer" in cli("watch", "--server", "http://127.0.0.1:9", code=1).stderr
    assert "is no address" in cli("watch", "--server", "127.0.0.1", code=2).stderr


def test_a_restart_is_not_noticed(cli: Cli, tmp_path: Path) -> None:
    served = started(cli.home.path)
    try:
        go = tmp_path / "go"
        script = f"echo one; while [ ! -e {go} ]; do sleep 0.05; done; echo two"
        agent = served.agent("Ada", script)
        run_id = served.post(f"/api/agents/{agent}/wakeup", {}, 202)["runId"]
        process = cli.start("watch", run_id, "--server", served.address, "--json")
        assert process.stdout is not None
        while b'"one"' not in (line := process.stdout.readline()):
            assert line
        served.process.kill()
        served.stop()
        served = started(cli.home.path, "--port", served.address.rpartition(":")[2])
        go.touch()
        out, err = process.communicate(timeout=60)
        assert (process.returncode, err) == (0, b"")
        assert (out.count(b'"one"'), out.count(b'"two"')) == (0, 1)
    finally:
        served.stop()
