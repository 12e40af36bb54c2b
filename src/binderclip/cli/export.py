"""`binderclip runs export`: a run or job as a file, put in place only when it is whole."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import click

from binderclip.cli import history
from binderclip.cli.recording import job_store, left_out
from binderclip.contract.errors import BinderclipError, RunNotFound, StoreError
from binderclip.jobs.export import Format, export, runs_of
from binderclip.plugins.registry import load_adapter
from binderclip.runs.retell import retell
from binderclip.store.home import Home


def write_export(
    home: Home, named: str | None, format: Format, output: str | None, *, redact: bool
) -> None:
    """Export what a person named to a file or to standard output."""
    found = _find(home, named)
    for run_id in runs_of(home, found):
        history.finish_dead(home, [run_id])
        retell(home, run_id, load_adapter)
    parts = export(home, found, format, redact=redact)
    if output is None or output == "-":
        _to_stdout(parts)
    else:
        size = _to_file(Path(output), parts)
        click.echo(f"{output}: {size:,} bytes", err=True)


def _find(home: Home, named: str | None) -> str:
    """A run, or the job of this id."""
    if not named:
        return history.find(home, None)
    try:
        return home.find_run(named)
    except RunNotFound as no_run:
        store = job_store(home)
        store.catch_up(left_out)
        try:
            return store.find(named)
        except BinderclipError:
            raise no_run from None


def _to_stdout(parts: Iterator[bytes]) -> None:
    out = sys.stdout.buffer
    try:
        for part in parts:
            out.write(part)
        out.flush()
    except BrokenPipeError:
        # Whoever read it has seen enough; what is still buffered has nowhere to go.
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _to_file(path: Path, parts: Iterator[bytes]) -> int:
    size = 0
    try:
        with tempfile.NamedTemporaryFile("wb", dir=path.parent, delete=False) as file:
            try:
                for part in parts:
                    size += file.write(part)
                Path(file.name).rename(path)
            except BaseException:
                Path(file.name).unlink(missing_ok=True)
                raise
    except OSError as problem:
        message = f"{path} cannot be written: {problem.strerror}."
        raise StoreError(message, hint="-o names a file in an existing directory.") from problem
    return size
