"""An adapter's metadata and capability flags (A2, C1), readable without importing its code."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Literal

import msgspec

from binderclip.contract.errors import ContractError
from binderclip.contract.wire import Wire

CaptureMode = Literal["file", "pipe"]
UsageTold = Literal["step", "end", "never"]

TYPE_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")


class Model(Wire, frozen=True, kw_only=True, omit_defaults=False):
    id: str
    label: str


class Capture(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """How each stream of the runtime is kept (D1)."""

    stdout: CaptureMode = "file"
    stderr: CaptureMode = "pipe"


class Capabilities(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """What server and web app decide by, never by a list of types (C2)."""

    supports_local_agent_jwt: bool = False
    supports_instructions_bundle: bool = False
    instructions_path_key: str = "instructionsFilePath"
    requires_materialized_runtime_skills: bool = False
    supports_skills: bool = False


class Manifest(Wire, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of `adapter.toml`."""

    id: str
    label: str
    version: str = "1"
    runtime: str = ""
    command: str = ""
    pass_env: tuple[str, ...] = ()
    secret_env: tuple[str, ...] = ()
    capture: Capture = Capture()
    capabilities: Capabilities = Capabilities()
    usage_told: UsageTold = "never"
    structured: bool = True
    models: tuple[Model, ...] = ()
    ui_parser: str | None = None
    ui_parser_version: str | None = None


class AdapterView(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """An adapter as `adapters list --json` and `GET /api/adapters` show it."""

    type: str
    label: str
    source: Literal["builtin", "external"]
    version: str
    state: Literal["ready", "broken", "disabled", "missing"]
    disabled: bool
    models: tuple[Model, ...]
    parser: str
    capabilities: Capabilities
    package_name: str | None = None
    overridden_builtin: bool | None = None
    override_paused: bool | None = None
    problem: str | None = None


def read_manifest(path: Path) -> Manifest:
    """Read an `adapter.toml`; every mistake in it is one `ContractError` that names the file."""
    try:
        data = tomllib.loads(path.read_text("utf-8"))
        manifest = msgspec.convert(data, Manifest)
    except (OSError, tomllib.TOMLDecodeError, msgspec.ValidationError) as problem:
        raise ContractError(f"{path} cannot be used: {problem}") from problem
    if not TYPE_NAME.fullmatch(manifest.id):
        raise ContractError(f"{path}: id {manifest.id!r} must be snake_case, such as my_agent")
    return manifest


def humanised(adapter_type: str) -> str:
    """A label for a type that nobody here knows: `my_k8s_agent` becomes "My K8s Agent" (P6)."""
    return " ".join(word.capitalize() for word in adapter_type.split("_") if word)
