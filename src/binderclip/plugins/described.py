"""What a plugin says of itself, kept as `plugin.json` in the directory of its version.

Listing and loading read this file alone; the plugin's code runs in processes of its own (P4).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import msgspec

from binderclip.contract.config import ConfigSchema
from binderclip.contract.errors import AdapterLoadError, ContractError
from binderclip.contract.manifest import TYPE_NAME, Capabilities, Capture, Model, UsageTold
from binderclip.contract.session import SessionManagement
from binderclip.contract.wire import Wire
from binderclip.supervisor import documents

PLUGIN_FILE = "plugin.json"
CONTRACT_VERSION = 1
"""The version of the protocol between binderclip and its plugin hosts."""

Language = Literal["python", "npm"]
ParserState = Literal["none", "ready", "refused"]


class ParserReport(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """What is known of a plugin's `ui-parser.js`, and why it is used or not (U1, U5)."""

    state: ParserState = "none"
    reason: str | None = None
    path: str | None = None
    version: str | None = None
    size: int = 0
    sha256: str = ""
    form: str | None = None
    exports: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


class Description(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """A plugin's answer to `describe`, checked, with what the host adds to it."""

    type: str
    label: str
    version: str
    language: Language
    source: str
    """What the host loads: a package's directory, a folder, a file or a module's name."""
    interpreter: str | None = None
    """The plugin's own Python; None for the host's."""
    package_name: str = ""
    contract: int = CONTRACT_VERSION
    doc: str = ""
    models: tuple[Model, ...] = ()
    capabilities: Capabilities = Capabilities()
    session_management: SessionManagement = SessionManagement()
    config: ConfigSchema | None = None
    command: str = ""
    runtime: str = ""
    pass_env: tuple[str, ...] = ()
    secret_env: tuple[str, ...] = ()
    capture: Capture = Capture()
    usage_told: UsageTold = "never"
    structured: bool = True
    methods: tuple[str, ...] = ()
    own_command: bool = False
    """A `CliAdapter`: it builds its command line in the run's own host, skills included."""
    own_parser: bool = False
    """The plugin has a parser in Python, which the host asks before any `ui-parser.js`."""
    builtin_parser: bool = False
    """An override that brings no parser of its own is read by the built-in one (U5)."""
    parser_folder: str | None = None
    parser: ParserReport = ParserReport()
    notes: tuple[str, ...] = ()
    bytes: int = 0
    integrity: str = ""


def understood(answer: Any, **known: Any) -> Description:
    """A `describe` answer as a description; a wrong one is refused with the reason (P5)."""
    if not isinstance(answer, dict):
        raise ContractError(f"The plugin described itself as {type(answer).__name__}, no object.")
    kind = answer.get("type")
    if not isinstance(kind, str) or not TYPE_NAME.fullmatch(kind):
        raise ContractError(
            f"The plugin's type is {kind!r}.", hint="A type is snake_case, such as my_agent."
        )
    contract = answer.get("contract", CONTRACT_VERSION)
    if contract != CONTRACT_VERSION:
        raise ContractError(
            f"{kind} speaks version {contract} of the plugin contract, binderclip version "
            f"{CONTRACT_VERSION}.",
            hint="Install a version of the plugin that was made for this binderclip.",
        )
    missing = [name for name in ("execute",) if name not in answer.get("methods", ())]
    if missing:
        raise ContractError(f"{kind} has no {missing[0]} function, so it can run nothing.")
    try:
        return msgspec.convert({**answer, **known}, Description)
    except msgspec.ValidationError as problem:
        raise ContractError(f"{kind} described itself wrongly: {problem}") from problem


def read_description(directory: Path) -> Description:
    """The description in a version's directory."""
    try:
        data = (directory / PLUGIN_FILE).read_bytes()
        return msgspec.json.decode(data, type=Description)
    except (OSError, msgspec.DecodeError) as problem:
        raise AdapterLoadError(
            f"The plugin in {directory} cannot be read: {problem}",
            hint="Install it again: binderclip adapters reinstall TYPE.",
        ) from problem


def write_description(directory: Path, description: Description) -> None:
    put(directory / PLUGIN_FILE, msgspec.json.format(msgspec.json.encode(description), indent=2))


def put(path: Path, data: bytes) -> None:
    """Write a file whole or not at all, and wait for the disk."""
    documents.put(str(path), data, durable=True)
