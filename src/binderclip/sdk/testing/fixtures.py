"""Recorded output of a runtime and what must come out of it: `fixtures/<case>/` of an adapter.

A case holds `stdout.txt`, `stderr.txt`, perhaps `cmd.json` (how the process ended), and
`expected.json`, which a person has reviewed.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from binderclip.contract.entry import Entry
from binderclip.contract.run import ExecutionResult
from binderclip.contract.wire import to_plain
from binderclip.sdk.adapter import Adapter
from binderclip.sdk.testing.replay import Replay, replay
from binderclip.sdk.values import as_string_array

HOST_FIELDS = ("ts", "id", "seq", "attempt", "stream", "offset")
WRITTEN_ENTRIES = 200
WRITTEN_BYTES = 100 * 1024
WRITTEN_TEXT = 4000
LOG_TAILS = ("stdoutTail", "stderrTail")


@dataclass(frozen=True, slots=True)
class Case:
    """One recording; `given` in its `expected.json` may name the session it resumed or a reason."""

    folder: Path
    stdout: bytes
    stderr: bytes
    exit_code: int | None
    signal: str | None
    expected: dict[str, Any] | None
    argv: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def given(self) -> dict[str, Any]:
        return dict((self.expected or {}).get("given") or {})

    def replayed(self, adapter: Adapter, **options: Any) -> Replay:
        """Replay the recording as it was, or with other output or chunks."""
        usual: dict[str, Any] = {
            "stdout": self.stdout,
            "stderr": self.stderr,
            "exit_code": self.exit_code,
            "signal": self.signal,
            "argv": self.argv,
            **self.given,
        }
        return replay(adapter, **{**usual, **options})


def read_case(folder: Path) -> Case:
    """A case from its folder; only `stdout.txt` must be there."""
    command = _json_file(folder / "cmd.json") or {}
    stderr = folder / "stderr.txt"
    return Case(
        folder=folder,
        stdout=(folder / "stdout.txt").read_bytes(),
        stderr=stderr.read_bytes() if stderr.is_file() else b"",
        exit_code=command.get("exit_code", None if command.get("signal") else 0),
        signal=command.get("signal"),
        expected=_json_file(folder / "expected.json"),
        argv=tuple(as_string_array(command.get("argv"))),
    )


def cases_of(adapter: Adapter) -> list[Case]:
    """All cases of an adapter's folder, by name."""
    found = sorted((adapter.folder / "fixtures").glob("*/stdout.txt"))
    return [read_case(path.parent) for path in found]


def plain_entry(entry: Entry) -> dict[str, Any]:
    """An entry as a parser made it, without what the host adds."""
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(entry))
    return {key: value for key, value in plain.items() if key not in HOST_FIELDS}


def observed(adapter: Adapter, case: Case) -> dict[str, Any]:
    """The content of `expected.json` as the adapter stands now."""
    seen = case.replayed(adapter)
    told: dict[str, Any] = {"given": case.given} if case.given else {}
    entries = [plain_entry(entry) for entry in seen.entries]
    if len(entries) > WRITTEN_ENTRIES or len(_canonical(entries)) > WRITTEN_BYTES:
        told["entriesDigest"] = digest_of(entries)
    else:
        told["entries"] = entries
    told["result"] = _shortened(_written(seen.result))
    told["coverage"] = to_plain(seen.coverage)
    told["unknownSession"] = seen.builder.parser.facts.unknown_session
    return told


def digest_of(entries: list[dict[str, Any]]) -> dict[str, Any]:
    """What stands for entries that are too many to read: their number and a hash."""
    digest = hashlib.sha256(_canonical(entries)).hexdigest()
    return {"count": len(entries), "sha256": digest}


def differences(expected: dict[str, Any], seen: Replay) -> list[str]:
    """Every way in which a replay is not what its case expects, in words."""
    entries = [plain_entry(entry) for entry in seen.entries]
    wrong: list[str] = []
    if expected.get("entries") is not None:
        wrong += _entry_differences(expected["entries"], entries)
    digest = expected.get("entriesDigest")
    if digest is not None and digest != digest_of(entries):
        wrong.append(f"entriesDigest: expected {digest}, got {digest_of(entries)}")
    wrong += _subset("result", expected.get("result") or {}, _all_fields(seen.result))
    coverage = to_plain(seen.coverage)
    wrong += _subset("coverage", expected.get("coverage") or {}, coverage)
    unknown = seen.builder.parser.facts.unknown_session
    if bool(expected.get("unknownSession")) != unknown:
        wrong.append(f"unknownSession: got {unknown}")
    return wrong


def _entry_differences(expected: list[Any], got: list[dict[str, Any]]) -> list[str]:
    for at, (one, other) in enumerate(zip(expected, got, strict=False)):
        if one != other:
            return [f"entry {at}: expected {_brief(one)}, got {_brief(other)}"]
    if len(expected) != len(got):
        extra = (expected + got)[min(len(expected), len(got))]
        return [f"{len(expected)} entries expected, got {len(got)}; the first other: {extra}"]
    return []


def _subset(place: str, expected: Any, got: Any) -> list[str]:
    """What is expected must be there; what else is there does not matter."""
    if isinstance(expected, dict) and set(expected) == {"sha256", "characters"}:
        return [] if isinstance(got, str) and _text_digest(got) == expected else [f"{place}: other"]
    if isinstance(expected, dict) and isinstance(got, dict):
        inner = (_subset(f"{place}.{key}", expected[key], got.get(key)) for key in expected)
        return [line for lines in inner for line in lines]
    if expected == got:
        return []
    return [f"{place}: expected {_brief(expected)}, got {_brief(got)}"]


def _all_fields(result: ExecutionResult) -> dict[str, Any]:
    names = {field.name: field.encode_name for field in msgspec.structs.fields(result)}
    return {wire: to_plain(getattr(result, name)) for name, wire in names.items()}


def _written(result: ExecutionResult) -> dict[str, Any]:
    plain: dict[str, Any] = {"errorCode": None, **to_plain(result)}
    told = plain.pop("resultJson", None) or {}
    kept = {key: value for key, value in told.items() if key not in LOG_TAILS}
    return {**plain, "resultJson": kept} if kept else plain


def _shortened(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _shortened(inner) for key, inner in value.items()}
    return _text_digest(value) if isinstance(value, str) and len(value) > WRITTEN_TEXT else value


def _text_digest(text: str) -> dict[str, Any]:
    data = text.encode("utf-8", "surrogatepass")
    return {"characters": len(text), "sha256": hashlib.sha256(data).hexdigest()}


def _canonical(entries: list[dict[str, Any]]) -> bytes:
    lines = (json.dumps(entry, sort_keys=True, separators=(",", ":")) for entry in entries)
    return "".join(f"{line}\n" for line in lines).encode()


def _brief(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 600 else f"{text[:600]}… ({len(text)} characters)"


def _json_file(path: Path) -> dict[str, Any] | None:
    if not path.is_file():
        return None
    content: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return content
