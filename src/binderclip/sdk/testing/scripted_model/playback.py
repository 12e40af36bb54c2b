"""Keeps the place in a script and makes each turn ready for the request that takes it."""

from __future__ import annotations

import json
import threading

from .exchange import Asked, Reply
from .script import Json, Script, Turn
from .tools import smallest_instance, translate

_EXHAUSTED = Turn(text="The script has no more turns.")


class Playback:
    """Hands out turns in order, safely from many threads; side requests take none."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._lock = threading.Lock()
        self._index = 0
        self._served = 0

    def take(self, asked: Asked, body: Json) -> tuple[Turn, int | None]:
        """The turn that answers this request, and its index unless the request is an aside."""
        aux = self._script.aux
        if aux is not None and (not asked.tools or self._is_aside(body)):
            return aux, None
        with self._lock:
            return self._next()

    def _is_aside(self, body: Json) -> bool:
        sent = json.dumps(body, ensure_ascii=False)
        return any(words in sent for words in self._script.aux_words)

    def _next(self) -> tuple[Turn, int]:
        turns = self._script.turns
        if self._index == len(turns):
            return (_EXHAUSTED if turns[-1].calls else turns[-1]), len(turns) - 1
        index, turn = self._index, turns[self._index]
        self._served += 1
        if self._served == turn.times:
            self._index, self._served = index + 1, 0
        return turn, index


def prepare(turn: Turn, asked: Asked, *, aside: bool) -> Reply:
    """The turn with its calls translated; an aside gets the smallest JSON that it demands."""
    text = str(turn.text)
    if aside and asked.schema is not None:
        text = json.dumps(smallest_instance(asked.schema))
    return Reply(
        text=text,
        thinking=str(turn.thinking),
        uses=tuple(translate(call, asked) for call in turn.calls),
        usage=turn.usage,
        stop=turn.stop,
        piece_size=turn.piece_size,
    )
