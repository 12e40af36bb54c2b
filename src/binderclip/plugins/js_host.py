"""The child process in which a `ui-parser.js` runs: QuickJS, limits, nothing to reach (U6).

Every load makes a fresh engine; the parser's answers leave it as JSON text, never as objects.
"""

from __future__ import annotations

import json
import os
import re
import resource
import sys
from pathlib import Path
from typing import Any

from binderclip.plugins.host_loop import serve

BOOT = Path(__file__).with_name("js_boot.js")
MEMORY_BYTES = 128 * 1024 * 1024
PROCESS_BYTES = 1024 * 1024 * 1024
STACK_BYTES = 512 * 1024
LOAD_SECONDS = 0.5
BATCH_SECONDS = 0.5
CHARACTERS_A_SECOND = 8_000_000
"""What is added to a batch's time for lines that are long in themselves."""
SELF = "<input>"
_ES = re.compile(r"\bexport\s*(?:[{*]|(?:default|async|function|const|let|var|class)\b)")


class Engine:
    """One fresh QuickJS context with one parser in it."""

    def __init__(self, source: str) -> None:
        self.form = ""
        problem = ""
        for form in ("es", "commonjs"):
            try:
                self.told = self._load(source, form)
                self.form = form
            except Exception as error:
                # The CommonJS error would hide what is wrong with a file in ES form.
                if form == "es" or not _ES.search(source):
                    problem = str(error).strip().split("\n")[0]
                continue
            if self.told["use"]:
                return
        if not self.form or problem:
            raise ValueError(problem or "it could not be loaded")
        raise ValueError("it exports neither createStdoutParser nor parseStdoutLine")

    def batch(self, lines: list[list[str]]) -> str:
        text = json.dumps(lines, ensure_ascii=False)
        self._context.set_time_limit(BATCH_SECONDS + len(text) / CHARACTERS_A_SECOND)
        answer = self._batch(text)
        if not isinstance(answer, str):
            raise ValueError("the parser's answers are no text")
        return answer

    def _load(self, source: str, form: str) -> dict[str, Any]:
        import quickjs  # type: ignore[import-untyped]

        self._context = context = quickjs.Context()
        context.set_memory_limit(MEMORY_BYTES)
        context.set_max_stack_size(STACK_BYTES)
        context.set_time_limit(LOAD_SECONDS)
        context.eval(BOOT.read_text("utf-8"))
        adopt, self._batch = context.get("__adopt"), context.get("__batch")
        context.eval("delete globalThis.__adopt; delete globalThis.__batch; 0")
        if form == "es":
            tail = f"\n;import * as __ns from '{SELF}'; globalThis.__ns = __ns;"
            context.module(source + tail)
            while context.execute_pending_job():
                continue
            if context.eval("typeof globalThis.__ns") == "undefined":
                raise ValueError("its top level was interrupted: it loops, throws or awaits")
        else:
            context.eval(
                "globalThis.__ns = (function () { const module = { exports: {} };\n"
                "(function (module, exports) {\n" + source + "\n}).call("
                "module.exports, module, module.exports);\nreturn module.exports; })();"
            )
        told: dict[str, Any] = json.loads(adopt())
        return told


def main() -> int:
    _limit()
    engine: Engine | None = None

    def answer(method: str, params: dict[str, Any]) -> Any:
        nonlocal engine
        if method == "load":
            engine = Engine(params["source"])
            return {"form": engine.form, **engine.told}
        if method == "parse" and engine is not None:
            return engine.batch(params["lines"])
        raise LookupError(f"there is no method {method} now")

    serve(answer)
    return 0


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        resource.setrlimit(resource.RLIMIT_AS, (PROCESS_BYTES, PROCESS_BYTES))


if __name__ == "__main__":
    os._exit(main())
