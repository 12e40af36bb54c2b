"""`python -m binderclip.sdk.testing.scripted_model`: serve a script until a signal comes."""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path

from . import ScriptedModel, ScriptError

_SIGNALS = {signal.SIGINT, signal.SIGTERM}


def main(argv: list[str] | None = None) -> int:
    options = _parser().parse_args(argv)
    # Blocked before any thread starts, so that the signal reaches sigwait and nobody else.
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        model = ScriptedModel(
            options.script,
            values={"cwd": str(Path.cwd()), **dict(options.set)},
            require_key=options.require_key,
            port=options.port,
            log=options.log,
        ).start()
    except (ScriptError, OSError) as error:
        sys.stderr.write(f"scripted model: {error}\n")
        return 2
    try:
        sys.stdout.write(f"listening on {model.url}\n")
        sys.stdout.flush()
        signal.sigwait(_SIGNALS)
    finally:
        model.close()
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m binderclip.sdk.testing.scripted_model",
        description="A model on loopback that answers from a script, without any account.",
    )
    add = parser.add_argument
    add("--script", type=Path, required=True, metavar="FILE", help="the script, JSON")
    add("--port", type=int, default=0, help="0 picks a free port")
    add("--set", type=_assignment, action="append", default=[], metavar="NAME=VALUE", help=_SET)
    add("--require-key", metavar="KEY", help="answer 401 to every other key")
    add("--log", type=Path, metavar="FILE", help="append each request as a JSON line, keys masked")
    return parser


_SET = "replaces {NAME} in the script; {cwd} is the current directory unless set"


def _assignment(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name, value


if __name__ == "__main__":
    sys.exit(main())
