"""`python -m binderclip.sdk.testing.expect ADAPTER_FOLDER [CASE…]` writes `expected.json`.

What it writes is what the adapter does today: review it before it becomes what it must do.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from binderclip.contract.errors import BinderclipError
from binderclip.sdk.loading import load_adapter_from
from binderclip.sdk.testing.fixtures import cases_of, observed


def main(words: list[str]) -> int:
    """Write the expectations of the named cases, or of all."""
    if not words or words[0].startswith("-"):
        sys.stderr.write(f"{__doc__}\n")
        return 2
    try:
        adapter = load_adapter_from(str(Path(words[0]).absolute()))
    except BinderclipError as problem:
        sys.stderr.write(f"{problem.message}\n")
        return 1
    cases = {case.name: case for case in cases_of(adapter)}
    missing = [name for name in words[1:] if name not in cases]
    if missing:
        sys.stderr.write(f"No such case: {', '.join(missing)}. There are {', '.join(cases)}.\n")
        return 2
    for name in words[1:] or cases:
        told = observed(adapter, cases[name])
        target = cases[name].folder / "expected.json"
        target.write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n", "utf-8")
        sys.stdout.write(f"{target}: {told['coverage']}, error {told['result']['errorCode']}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
