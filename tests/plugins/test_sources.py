"""What a person's words for a plugin mean, and which archives are never unpacked."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from binderclip.contract.errors import AdapterLoadError
from binderclip.plugins.archives import check_archive, integrity_of, integrity_of_folder
from binderclip.plugins.fetch import _worst
from binderclip.plugins.sources import read_spec


@pytest.mark.parametrize(
    ("spec", "kind", "name", "version"),
    [
        ("npm:left-pad", "npm", "left-pad", None),
        ("npm:left-pad@1.2.3", "npm", "left-pad", "1.2.3"),
        ("npm:@me/thing", "npm", "@me/thing", None),
        ("npm:@me/thing@^2", "npm", "@me/thing", "^2"),
        ("pypi:binderclip-adapter-x", "pypi", "binderclip-adapter-x", None),
        ("pypi:binderclip-adapter-x==1.0", "pypi", "binderclip-adapter-x", "1.0"),
    ],
)
def test_a_registry_spec_is_read(spec: str, kind: str, name: str, version: str | None) -> None:
    """P1: npm and PyPI by name and version."""
    source = read_spec(spec)
    assert (source.kind, source.name, source.version) == (kind, name, version)
    assert source.spec == spec


@pytest.mark.parametrize("spec", ["npm:", "npm:../x", "npm:-g", "npm:a@$(x)", "pypi:-r", "gone/x"])
def test_a_spec_that_names_nothing_is_refused(spec: str) -> None:
    with pytest.raises(AdapterLoadError):
        read_spec(spec)


@pytest.mark.parametrize(
    ("file", "kind"),
    [
        ("adapter.toml", "python-folder"),
        ("package.json", "npm-folder"),
        ("pyproject.toml", "python-package"),
    ],
)
def test_a_folder_is_known_by_the_file_at_its_top(tmp_path: Path, file: str, kind: str) -> None:
    (tmp_path / file).touch()
    assert read_spec(str(tmp_path)).kind == kind


@pytest.mark.parametrize(
    ("file", "kind"), [("a.py", "file"), ("a-1.tgz", "npm-archive"), ("a-1-py3.whl", "wheel")]
)
def test_a_file_is_known_by_its_ending(tmp_path: Path, file: str, kind: str) -> None:
    (tmp_path / file).touch()
    assert read_spec(str(tmp_path / file)).kind == kind


def tar(path: Path, name: str, **fields: object) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        entry = tarfile.TarInfo(name)
        entry.size = 0 if fields else 2
        for key, value in fields.items():
            setattr(entry, key, value)
        archive.addfile(entry, io.BytesIO(b"hi"))
    return path


@pytest.mark.parametrize("name", ["../evil.js", "/etc/evil", "package/../../evil"])
def test_an_archive_that_escapes_is_refused(tmp_path: Path, name: str) -> None:
    """P5: nothing is unpacked from an archive with a path outside of its folder."""
    with pytest.raises(AdapterLoadError, match="leads outside"):
        check_archive(tar(tmp_path / "evil.tgz", name))


def test_an_archive_with_a_link_is_refused(tmp_path: Path) -> None:
    made = tar(tmp_path / "evil.tgz", "package/x", type=tarfile.SYMTYPE, linkname="/etc/passwd")
    with pytest.raises(AdapterLoadError, match="is a link or device"):
        check_archive(made)


def test_a_wheel_that_escapes_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "evil.whl", "w") as archive:
        archive.writestr("../../evil.py", "")
    with pytest.raises(AdapterLoadError, match="leads outside"):
        check_archive(tmp_path / "evil.whl")


def test_something_else_is_no_archive(tmp_path: Path) -> None:
    (tmp_path / "x.tgz").write_text("nothing")
    with pytest.raises(AdapterLoadError, match="is no archive"):
        check_archive(tmp_path / "x.tgz")


def test_a_good_archive_passes_and_has_a_hash(tmp_path: Path) -> None:
    made = tar(tmp_path / "good.tgz", "package/index.js")
    check_archive(made)
    assert integrity_of(made).startswith("sha512-")


def test_the_hash_of_a_folder_follows_names_and_contents(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1")
    first = integrity_of_folder(tmp_path)
    (tmp_path / "a").write_text("2")
    second = integrity_of_folder(tmp_path)
    (tmp_path / "a").rename(tmp_path / "b")
    assert len({first, second, integrity_of_folder(tmp_path)}) == 3


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (
            "npm error code E404\nnpm error 404 Not Found - GET x\nnpm error 404\n"
            "npm error 404  'y@*' could not be found\nnpm error 404 Note that you can also\n"
            "npm error 404 tarball, folder, http url\nnpm error A complete log of this run: z\n",
            "Not Found - GET x 'y@*' could not be found",
        ),
        ("npm error code ENOTFOUND\nnpm error network no such host\n", "network no such host"),
        ("WARNING: old\nERROR: No matching distribution\n", "No matching distribution"),
        ("Traceback\n  File x\nKeyError: 1\n", "Traceback File x KeyError: 1"),
        ("", "it said nothing"),
    ],
)
def test_a_tools_complaint_is_told_by_what_is_wrong(told: str, said: str) -> None:
    assert _worst(told) == said
