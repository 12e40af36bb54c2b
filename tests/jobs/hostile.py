"""What an agent might print to make a page do something."""

from __future__ import annotations

from binderclip.contract.run import RunOrder
from binderclip.store.home import Home
from tests.jobs.recorded import spoken_run

HOSTILE = (
    "<script>document.title='owned'</script>",
    "<img src=x onerror=\"document.title='owned'\">",
    "</pre></details></style><script>document.title='owned'</script>",
    "'\"><svg onload=document.title='owned'>",
    "[click](javascript:document.title='owned')",
    "[click](JaVa\tScRiPt:alert(1)) [x](&#106;avascript:alert(1)) [y](data:text/html,<b>x)",
    "![pixel](https://127.0.0.1:9/pixel.png) <https://127.0.0.1:9/> [ok](https://example.com/)",
    "[a]: javascript:alert(1)\n\n[a] [file](file:///etc/passwd) [rel](../x) [v](vbscript:x)",
    "<iframe src=https://127.0.0.1:9></iframe><meta http-equiv=refresh content=0;url=//x>",
    "<style>@import 'https://127.0.0.1:9/x.css'</style><link rel=stylesheet href=//x>",
    "<form action=https://127.0.0.1:9><button formaction=javascript:alert(1)>x</button></form>",
    "<!-- --><base href=https://127.0.0.1:9><a href=javascript:alert(1)>x</a>",
    "\x1b[31m<b onclick=alert(1)>red</b>\x1b[0m\x1b]8;;javascript:alert(1)\x07link\x1b]8;;\x07",
    "\x00\x08\x1b[2J\x9b31m \u202egnp.exe \ufeff &lt;script&gt; &#60;script&#62;",
    "```html\n<script>document.title='owned'</script>\n```\n\n`<img src=x onerror=alert(1)>`",
    "| <script>a</script> | b |\n|---|---|\n| [x](javascript:a) | <b>c</b> |",
)


def hostile_run(home: Home) -> RunOrder:
    """A run in which every field that an agent can fill is hostile."""
    entries: list[dict[str, object]] = []
    for at, text in enumerate(HOSTILE):
        id = f"t{at}'\"><script>"
        call = {"kind": "tool_call", "name": text, "title": text, "toolUseId": id}
        entries += [
            {"kind": "init", "model": text, "sessionId": text},
            *({"kind": kind, "text": text} for kind in ("assistant", "thinking", "user")),
            *({"kind": kind, "text": text} for kind in ("stderr", "stdout", "system")),
            {**call, "input": {text: text}},
            {"kind": "diff", "changeType": "add", "text": text, "toolUseId": id, "path": text},
            {"kind": "tool_result", "toolUseId": id, "content": text, "isError": at % 2 == 0},
            {**call, "toolKind": "todo", "input": {"items": [{"text": text, "status": text}]}},
            {"kind": "diff", "changeType": "remove", "text": text},
            {"kind": "assistant", "text": text, "parentToolUseId": id},
        ]
    return spoken_run(home, *entries, prompt="\n".join(HOSTILE))
