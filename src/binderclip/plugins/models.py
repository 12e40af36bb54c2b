"""The models of an adapter: asked of its runtime, else those that it declares (A3).

Whoever asks waits a few seconds at most; an answer that comes later is there for the next one.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Mapping
from typing import Literal

import msgspec

from binderclip.contract.check import CheckRequest
from binderclip.contract.errors import BinderclipError
from binderclip.contract.manifest import Model
from binderclip.contract.wire import Wire, iso_time
from binderclip.sdk.adapter import Adapter
from binderclip.sdk.checks import CheckCall, check_call

WAIT_SECONDS = 10.0
KEPT_SECONDS = 600.0
FAILED_KEPT_SECONDS = 30.0
MOST_KEPT = 200
ModelSource = Literal["runtime", "declared"]


class ModelList(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """Models to choose from, and where they come from."""

    type: str
    models: tuple[Model, ...]
    source: ModelSource
    """`runtime`: it was asked now or not long ago; `declared`: what the adapter itself names."""
    detected: str | None = None
    """The model that the runtime would use by itself, where that can be known."""
    asked_at: str
    problem: str | None = None
    """Why the runtime's own list is not here."""


def ask_models(
    adapter: Adapter, request: CheckRequest, env: Mapping[str, str], *, now: str, fresh: bool
) -> ModelList:
    """Ask the runtime; a failure is told beside what the adapter declares."""
    models: tuple[Model, ...] = ()
    detected = problem = None
    try:
        call = check_call(adapter, request, env)
        problem = _missing(call, adapter)
        refresh = getattr(adapter, "refresh_models", adapter.list_models)
        models = tuple((refresh if fresh else adapter.list_models)(call))
        detected = adapter.detect_model(call)
    except BinderclipError as failure:
        problem = failure.message
    except Exception as failure:
        problem = f"{adapter.type} failed: {type(failure).__name__}: {failure}"[:500]
    declared = tuple(adapter.manifest.models)
    told = bool(models) and models != declared
    return ModelList(
        type=adapter.type,
        models=models or declared,
        source="runtime" if told else "declared",
        detected=detected,
        asked_at=now,
        problem=None if told else problem,
    )


class ModelLists:
    """Answers that are kept for a while, one question at a time for an adapter and a config."""

    def __init__(self, clock: Callable[[], float], wait: float = WAIT_SECONDS) -> None:
        self._clock = clock
        self._wait = wait
        self._lock = threading.Lock()
        self._known: dict[str, _Question] = {}

    def get(
        self, adapter: Adapter, request: CheckRequest, env: Mapping[str, str], *, refresh: bool
    ) -> ModelList:
        key = _key(adapter, request)
        with self._lock:
            before = self._known.get(key)
            question = before
            if before is None or (before.is_answered and (refresh or self._is_old(before))):
                question = _Question(self._clock(), before.answer if before else None)
                question.ask(adapter, request, env, fresh=refresh)
                self._known[key] = question
                self._forget()
        assert question is not None
        return question.within(self._wait) or _late(adapter, question, self._wait)

    def _forget(self) -> None:
        """Configurations change; those of long ago need no place."""
        answered = [key for key, one in self._known.items() if one.is_answered]
        for key in answered[: max(0, len(self._known) - MOST_KEPT)]:
            del self._known[key]

    def _is_old(self, question: _Question) -> bool:
        failed = question.answer is None or question.answer.problem
        kept = FAILED_KEPT_SECONDS if failed else KEPT_SECONDS
        return self._clock() - question.begun > kept


class _Question:
    """One question to a runtime, in a thread of its own."""

    def __init__(self, begun: float, before: ModelList | None) -> None:
        self.begun = begun
        self.before = before
        self.answer: ModelList | None = None
        self._over = threading.Event()

    @property
    def is_answered(self) -> bool:
        return self._over.is_set()

    def ask(
        self, adapter: Adapter, request: CheckRequest, env: Mapping[str, str], *, fresh: bool
    ) -> None:
        def work() -> None:
            try:
                now = iso_time(self.begun)
                self.answer = ask_models(adapter, request, env, now=now, fresh=fresh)
            finally:
                self._over.set()

        threading.Thread(target=work, name=f"models of {adapter.type}", daemon=True).start()

    def within(self, seconds: float) -> ModelList | None:
        self._over.wait(seconds)
        return self.answer


def _key(adapter: Adapter, request: CheckRequest) -> str:
    """A digest, since the config may hold secrets."""
    config = msgspec.json.encode(request.config, order="deterministic")
    return f"{adapter.origin} {hashlib.sha256(config).hexdigest()}"


def _late(adapter: Adapter, question: _Question, waited: float) -> ModelList:
    known = question.before
    return ModelList(
        type=adapter.type,
        models=known.models if known else tuple(adapter.manifest.models),
        source=known.source if known else "declared",
        detected=known.detected if known else None,
        asked_at=known.asked_at if known else iso_time(question.begun),
        problem=f"{adapter.type} did not tell its models within {waited:g} s; ask again later.",
    )


def _missing(call: CheckCall, adapter: Adapter) -> str | None:
    """Why the runtime itself cannot be asked, if that is so."""
    command = getattr(call.config, "command", None) or adapter.manifest.command
    if not command or call.program is not None:
        return None
    return f"The command {command!r} was not found on PATH."
