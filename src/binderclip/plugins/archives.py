"""Archives are looked at before any tool unpacks them: no entry may lead outside (P5)."""

from __future__ import annotations

import base64
import hashlib
import stat
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from binderclip.contract.errors import AdapterLoadError

LARGEST = 2 * 1024**3
MOST_ENTRIES = 200_000


def check_archive(path: Path) -> None:
    """Refuse an archive with an entry that escapes its folder, is a link, or is far too large."""
    try:
        entries = list(_zip_entries(path) if path.suffix == ".whl" else _tar_entries(path))
    except (tarfile.TarError, zipfile.BadZipFile, OSError, EOFError) as problem:
        raise AdapterLoadError(f"{path.name} is no archive: {problem}") from problem
    for name, _, special in entries:
        parts = PurePosixPath(name.replace("\\", "/"))
        if parts.is_absolute() or ".." in parts.parts or special:
            what = f"is a {special}" if special else "leads outside of its folder"
            raise AdapterLoadError(
                f"{path.name} is refused: its entry {name!r} {what}.",
                hint="Nothing was unpacked. Ask its author for an archive without it.",
            )
    if sum(size for _, size, _ in entries) > LARGEST or len(entries) > MOST_ENTRIES:
        raise AdapterLoadError(f"{path.name} is refused: it would unpack to more than 2 GiB.")


def integrity_of(path: Path) -> str:
    """The archive's hash as npm writes it."""
    digest = hashlib.sha512(path.read_bytes()).digest()
    return f"sha512-{base64.b64encode(digest).decode()}"


def integrity_of_folder(folder: Path) -> str:
    """One hash over the names and contents of a folder's files."""
    digest = hashlib.sha512()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            digest.update(str(path.relative_to(folder)).encode() + b"\0")
            digest.update(hashlib.sha512(path.read_bytes()).digest())
    return f"sha512-{base64.b64encode(digest.digest()).decode()}"


def size_of(folder: Path) -> int:
    """Bytes of all files below a folder."""
    paths = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return sum(path.stat().st_size for path in paths)


def _tar_entries(path: Path) -> Iterator[tuple[str, int, str]]:
    with tarfile.open(path) as archive:
        for entry in archive:
            special = "" if entry.isfile() or entry.isdir() else "link or device"
            yield entry.name, entry.size, special


def _zip_entries(path: Path) -> Iterator[tuple[str, int, str]]:
    with zipfile.ZipFile(path) as archive:
        for entry in archive.infolist():
            mode = entry.external_attr >> 16
            yield entry.filename, entry.file_size, "link" if stat.S_ISLNK(mode) else ""
