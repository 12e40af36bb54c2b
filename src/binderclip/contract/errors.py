"""Every exception that binderclip raises on purpose.

    BinderclipError
      ConfigError              bad_config
      AdapterError             plugin_failed
        AdapterNotFound        unknown_adapter
        AdapterLoadError       plugin_failed
        ContractError          plugin_failed
      RunError                 process_failed
        RunNotFound            not_found
        SpawnError             process_failed
          CommandNotFound      command_not_found
          BadWorkingDirectory  bad_config
        RunBusy                busy
        Preflight              preflight_failed
        WorkspaceError         workspace_failed
          RestoreConflict      restore_conflict
      ParserError              parse_failed
      StoreError               store_failed
        StoreTooNew            store_too_new
        NotFound               not_found
        Conflict               conflict
      SecretFound              secret_found

Each has a stable `code`, a message that says what to do next, and its data as fields.
Timeouts, cancellations and failed agents are results of a run, not exceptions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar


class BinderclipError(Exception):
    """Anything binderclip reports; `hint` says what to do, `fields` names what was wrong."""

    code: ClassVar[str] = "error"

    def __init__(
        self, message: str, *, hint: str | None = None, fields: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.fields = dict(fields or {})


class ConfigError(BinderclipError):
    """A configuration value is wrong; `fields` maps each bad field to its problem."""

    code = "bad_config"


class AdapterError(BinderclipError):
    """An adapter cannot be used."""

    code = "plugin_failed"


class AdapterNotFound(AdapterError):
    """No adapter of this type is installed."""

    code = "unknown_adapter"


class AdapterLoadError(AdapterError):
    """An adapter's code could not be loaded."""


class ContractError(AdapterError):
    """An adapter, manifest or parser breaks its contract."""


class RunError(BinderclipError):
    """A run cannot start or go on."""

    code = "process_failed"


class RunNotFound(RunError):
    """No run has this id, or several match its short form."""

    code = "not_found"


class SpawnError(RunError):
    """The agent's process could not be started."""


class CommandNotFound(SpawnError):
    """The command of the runtime is not installed or not on PATH."""

    code = "command_not_found"


class BadWorkingDirectory(SpawnError):
    """The working directory is missing, relative or not a directory."""

    code = "bad_config"


class RunBusy(RunError):
    """Another process drives this run."""

    code = "busy"


class Preflight(RunError):
    """Checks that block found the environment unusable; nothing was started."""

    code = "preflight_failed"


class WorkspaceError(RunError):
    """A run's working directory cannot be prepared, brought back or removed."""

    code = "workspace_failed"


class RestoreConflict(WorkspaceError):
    """Both sides changed the same thing; ours is in place, theirs is kept under a ref."""

    code = "restore_conflict"


class ParserError(BinderclipError):
    """A parser cannot be loaded or gave something that is no entry."""

    code = "parse_failed"


class StoreError(BinderclipError):
    """The data directory or database cannot be used."""

    code = "store_failed"


class StoreTooNew(StoreError):
    """The database was written by a newer binderclip."""

    code = "store_too_new"


class NotFound(StoreError):
    """There is no company, agent, task or other record of this id."""

    code = "not_found"


class Conflict(StoreError):
    """What was asked contradicts what is there; `code` of the instance may say more."""

    code = "conflict"

    def __init__(self, message: str, *, code: str | None = None, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        if code is not None:
            self.code = code  # type: ignore[misc]


class SecretFound(BinderclipError):
    """What was to be exported holds secrets; the message names the places, never the values."""

    code = "secret_found"
