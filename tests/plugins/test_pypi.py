"""A Python plugin by its name, from an index on this machine."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from binderclip.contract.errors import AdapterLoadError, ContractError
from binderclip.plugins.service import Plugins

from .conftest import Run
from .test_python_plugins import write_wheel

NAME = "binderclip-adapter-paper"


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Requests are no part of a test's output."""


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of one project in a simple index that pip is told to use."""
    project = tmp_path / "index" / "simple" / NAME
    project.mkdir(parents=True)
    handler = partial(Quiet, directory=str(tmp_path / "index"))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    address = f"http://127.0.0.1:{server.server_address[1]}/simple"
    monkeypatch.setenv("PIP_INDEX_URL", address)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    for name in ("http_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    yield project
    server.shutdown()
    thread.join()
    server.server_close()


def publish(project: Path, version: str) -> None:
    write_wheel(project, NAME, "paper_agent", version)
    links = "".join(f'<a href="{wheel.name}">{wheel.name}</a>' for wheel in project.glob("*.whl"))
    (project / "index.html").write_text(f"<!doctype html><html><body>{links}</body></html>")


def test_a_package_is_installed_by_name_and_upgraded(
    plugins: Plugins, run: Callable[..., Run], index: Path
) -> None:
    """P1, P2: the version asked for, then the newest; the hash of each is kept."""
    publish(index, "1.0")
    publish(index, "1.1")
    first = plugins.install(f"pypi:{NAME}==1.0")
    assert (first.version, first.package_name) == ("1.0", NAME)
    assert run("paper_agent").stdout == b"hello from 1.0\n"
    second = plugins.upgrade("paper_agent")
    assert second.version == "1.1"
    assert second.integrity != first.integrity
    assert run("paper_agent").stdout == b"hello from 1.1\n"
    assert plugins.rollback("paper_agent").version == "1.0"
    assert run("paper_agent").stdout == b"hello from 1.0\n"


def test_a_package_that_is_not_there_changes_nothing(plugins: Plugins, index: Path) -> None:
    publish(index, "1.0")
    with pytest.raises(AdapterLoadError, match="pip failed"):
        plugins.install(f"pypi:{NAME}==9")
    assert plugins.store.records() == []
    assert list(plugins.store.folder.glob("*/*")) == []


def test_a_package_is_loaded_anew_without_the_index(
    plugins: Plugins, run: Callable[..., Run], index: Path
) -> None:
    """P4: what lies on disk is asked by a fresh process."""
    publish(index, "1.0")
    before = plugins.install(f"pypi:{NAME}")
    (index / "index.html").unlink()
    for wheel in index.glob("*.whl"):
        wheel.unlink()
    place = plugins.store.directory_of(before)
    (file,) = place.glob("venv/lib/*/site-packages/binderclip_adapter_paper.py")
    file.write_text(file.read_text().replace('label="Echo"', 'label="Anew, and longer"'))
    assert plugins.describe("paper_agent").label == "Echo"
    assert plugins.reload("paper_agent") == before
    assert plugins.describe("paper_agent").label == "Anew, and longer"
    file.write_text("raise RuntimeError('not today')")
    with pytest.raises(ContractError, match="not today"):
        plugins.reload("paper_agent")
    assert plugins.describe("paper_agent").label == "Anew, and longer"


def test_a_folder_has_the_packages_that_it_asks_for(
    plugins: Plugins, run: Callable[..., Run], index: Path, tmp_path: Path
) -> None:
    """P1: `requirements.txt` beside `adapter.toml`, in an environment of its own."""
    publish(index, "1.0")
    folder = tmp_path / "needy"
    folder.mkdir()
    (folder / "adapter.toml").write_text('id = "needy"\nlabel = "Needy"\nversion = "1"\n')
    (folder / "requirements.txt").write_text(f"{NAME}==1.0\n")
    (folder / "__init__.py").write_text(
        "from importlib.metadata import version\n"
        "from binderclip.sdk import CliAdapter, Command\n"
        "class Needy(CliAdapter):\n"
        "    def command(self, call):\n"
        f"        return Command(['echo', 'has', version('{NAME}')])\n"
        "def create_adapter():\n    return Needy()\n"
    )
    plugins.install(str(folder))
    assert run("needy").stdout == b"has 1.0\n"
