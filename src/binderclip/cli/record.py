"""`binderclip record`: run a command and keep what it printed as a fixture of an adapter.

The command gets this process's environment; values of secret variables are masked in what is kept.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from binderclip.cli.run import WithCommand
from binderclip.contract.wire import iso_time
from binderclip.plugins.registry import load_adapter
from binderclip.sdk.adapter import SHORTEST_SECRET, Adapter
from binderclip.sdk.checks import version_of
from binderclip.sdk.env import is_secret_name

MASK = "***"
_GRACE_SECONDS = 10


@click.command("record", cls=WithCommand)
@click.option("--adapter", "-a", metavar="TYPE", help="Whose fixture it is: a type or a path.")
@click.option("--name", "-n", required=True, metavar="CASE", help="What the fixture shows.")
@click.option("--out", metavar="DIR", help="Where its folder is made; the adapter's own fixtures.")
@click.option("--timeout", type=click.FloatRange(min=0), metavar="SEC", help="Stop it after this.")
@click.pass_context
def command(
    ctx: click.Context, adapter: str | None, name: str, out: str | None, timeout: float | None
) -> None:
    """Run a command and keep its output as a fixture, with secrets masked.

    The folder holds stdout.txt, stderr.txt and cmd.json: command line, exit code or signal,
    version, times. The command line follows `--`:

    \\b
    binderclip record -a ./my_agent --name plain -- my-agent --json "say hello"
    """
    words: tuple[str, ...] = ctx.meta.get("words", ())
    if not words:
        raise click.UsageError("The command to record follows `--`.")
    loaded = load_adapter(adapter) if adapter else None
    folder = _folder(loaded, name, out)
    told = _recorded(words, folder, loaded, timeout)
    click.echo(f"Recorded {folder} ({_ending(told)}).")
    if loaded is None:
        click.echo(f"See it: binderclip replay --adapter TYPE {folder / 'stdout.txt'}")
        return
    where = shlex.quote(str(loaded.folder))
    click.echo(f"See it: binderclip replay --adapter {adapter} {folder / 'stdout.txt'}")
    click.echo("If all of it is right, keep that as what tests expect, and as known events:")
    click.echo(f"  python -m binderclip.sdk.testing.expect {where} {name}")
    click.echo(f"  python -m binderclip.sdk.testing.shapes {where}")


def _folder(adapter: Adapter | None, name: str, out: str | None) -> Path:
    if Path(name).name != name or name in ("", ".", ".."):
        raise click.UsageError(f"--name is one word for a folder, not {name!r}.")
    if out is not None:
        parent = Path(out)
    elif adapter is not None:
        parent = adapter.folder / "fixtures"
    else:
        raise click.UsageError("Say where to: --adapter TYPE or --out DIR.")
    folder = parent / name
    if folder.exists():
        raise click.UsageError(f"{folder} is there already; choose another --name.")
    folder.mkdir(parents=True)
    return folder


def _recorded(
    words: Sequence[str], folder: Path, adapter: Adapter | None, timeout: float | None
) -> dict[str, Any]:
    secrets = _secrets(os.environ, adapter)
    begin = time.time()
    with (folder / "stdout.txt").open("wb") as out, (folder / "stderr.txt").open("wb") as err:
        code, number = _run(words, out.fileno(), err.fileno(), timeout)
    for stream in ("stdout.txt", "stderr.txt"):
        _mask(folder / stream, secrets)
    told = {
        "argv": [_masked(word, secrets) for word in words],
        "cwd": "$CWD",
        "exit_code": code,
        "signal": number,
        "version": _version(words[0], adapter),
        "started_at": iso_time(begin),
        "wall_seconds": round(time.time() - begin, 1),
    }
    (folder / "cmd.json").write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return told


def _version(program: str, adapter: Adapter | None) -> str | None:
    """Asked of the runtime alone: another program might do anything when it is called again."""
    if adapter is None or Path(program).name != adapter.manifest.command:
        return None
    return version_of(Path(program), os.environ)


def _run(
    words: Sequence[str], out: int, err: int, timeout: float | None
) -> tuple[int | None, str | None]:
    """Run to the end in a group of its own, straight into files; Ctrl-C and time end it."""
    try:
        process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True
        )
    except OSError as problem:
        raise click.ClickException(f"{words[0]} cannot be started: {problem.strerror}.") from None
    try:
        process.wait(timeout)
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        _end(process)
    code = process.returncode
    return (code, None) if code >= 0 else (None, signal.Signals(-code).name)


def _end(process: subprocess.Popen[bytes]) -> None:
    for sent in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, sent)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE_SECONDS)
            return


def _secrets(env: Mapping[str, str], adapter: Adapter | None) -> list[str]:
    named = adapter.manifest.secret_env if adapter else ()
    values = {
        value
        for name, value in env.items()
        if (name in named or is_secret_name(name)) and len(value.encode()) >= SHORTEST_SECRET
    }
    # A secret that holds another one goes first.
    return sorted(values, key=len, reverse=True)


def _mask(path: Path, secrets: Sequence[str]) -> None:
    data = path.read_bytes()
    clean = data
    for secret in secrets:
        for form in (secret, json.dumps(secret)[1:-1]):
            clean = clean.replace(form.encode(), MASK.encode())
    if clean != data:
        path.write_bytes(clean)


def _masked(word: str, secrets: Sequence[str]) -> str:
    for secret in secrets:
        word = word.replace(secret, MASK)
    return word


def _ending(told: Mapping[str, Any]) -> str:
    return told["signal"] or f"exit code {told['exit_code']}"
