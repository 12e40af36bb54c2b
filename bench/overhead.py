"""A real Codex run through binderclip against the bare CLI, both on the same scripted model.

One run lasts about ten seconds since the model drips; the other is as short as Codex can be.
Needs the CLIs of `script/clis`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

from _measure import BINDERCLIP, alternating, finish, report, scratch, seconds

from binderclip.sdk.testing.scripted_model import ScriptedModel, Turn

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.live.install import known, search_path
from tests.live.runtimes import CODEX

TEN_SECONDS = Turn(text="drop " * 200, piece_size=10, drip=0.1, times="forever")
SHORTEST = Turn(text="Done.", times="forever")
LONG_LIMIT = 1.05
ADDED_LIMIT_MS = 100.0
PROMPT = "Say something."


def main() -> None:
    if not known()[CODEX.name].is_there():
        sys.exit("overhead: run script/clis first")
    with scratch() as directory:
        bare, ours = _times(directory / "long", TEN_SECONDS, rounds=3)
        detail = f"{ours:.2f} s against {bare:.2f} s for the bare CLI"
        report("a run of ten seconds", ours / bare, detail, limit=LONG_LIMIT)
        bare, ours = _times(directory / "short", SHORTEST, rounds=15)
        added = (ours - bare) * 1000
        detail = f"{ours * 1000:.0f} ms against {bare * 1000:.0f} ms"
        report("the shortest run, ms added", added, detail, limit=ADDED_LIMIT_MS)
    finish()


def _times(directory: Path, turn: Turn, rounds: int) -> list[float]:
    """Medians of the bare CLI and of binderclip, taking turns, each in a warm home of its own."""
    work = directory / "work"
    work.mkdir(parents=True)
    with ScriptedModel([turn]) as model:
        env = {
            "PATH": search_path(CODEX.name),
            "HOME": str(directory / "home"),
            "BINDERCLIP_HOME": os.environ["BINDERCLIP_HOME"],
            "LANG": "C.UTF-8",
            **CODEX.env(model.url),
        }
        CODEX.prepare(directory / "home", model.url)
        cases = [_bare(), _ours()]
        for words in cases:
            _run(words, work, env)
        return alternating(rounds, *(partial(_run, words, work, env) for words in cases))


def _run(words: list[str], work: Path, env: dict[str, str]) -> float:
    with (work.parent / "out").open("wb") as out:
        return seconds(words, cwd=work, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=out)


def _bare() -> list[str]:
    """What the adapter runs, without binderclip."""
    codex = shutil.which("codex", path=search_path(CODEX.name)) or "codex"
    bypass = "--dangerously-bypass-approvals-and-sandbox"
    return [codex, "exec", "--json", "--skip-git-repo-check", bypass, PROMPT]


def _ours() -> list[str]:
    config = "dangerouslyBypassApprovalsAndSandbox=true"
    return [BINDERCLIP, "run", "--adapter", CODEX.adapter, "--config", config, PROMPT]


main()
