"""The page in which a foreign parser runs in the browser; it can reach nothing (U4).

Its policy names its one script by hash: a nonce would be handed on to what that script imports.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

router = APIRouter()
# Parser code never runs in this document, only in the worker: a document has WebRTC.
_SCRIPT = """
addEventListener("message", (event) => {
  if (event.source !== parent || !event.ports.length) return;
  const code = new Blob([event.data], { type: "text/javascript" });
  const worker = new Worker(URL.createObjectURL(code));
  worker.postMessage(null, [event.ports[0]]);
}, { once: true });
"""
_HASH = b64encode(hashlib.sha256(_SCRIPT.encode()).digest()).decode()
PAGE = f'<!doctype html><meta charset="utf-8"><title>Parser</title><script>{_SCRIPT}</script>'
POLICY = (
    "sandbox allow-scripts; default-src 'none'; "
    f"script-src 'sha256-{_HASH}' blob:; worker-src blob:; connect-src 'none'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)


@router.get("/sandbox", include_in_schema=False)
def sandbox() -> HTMLResponse:
    """The empty room; the app hands a parser in through a port."""
    headers = {"content-security-policy": POLICY, "cache-control": "no-cache"}
    return HTMLResponse(PAGE, headers=headers)
