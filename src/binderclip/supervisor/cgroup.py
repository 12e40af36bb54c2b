"""A cgroup per attempt, where one may be made: its members are known and die in one write."""

from __future__ import annotations

import os


class Cgroup:
    """A cgroup v2 directory; its sub-groups belong to it."""

    def __init__(self, path: str) -> None:
        self.path = path

    @classmethod
    def make(cls, name: str) -> Cgroup | None:
        """A new group below the one we are in, or None where that is not allowed."""
        parent = _own_directory()
        if parent is None:
            return None
        path = os.path.join(parent, name)
        try:
            os.mkdir(path, 0o755)
        except OSError:
            return None
        return cls(path)

    def members(self) -> list[int]:
        """Pids of all processes in the group and its sub-groups."""
        pids: list[int] = []
        for directory in self._directories():
            try:
                with open(os.path.join(directory, "cgroup.procs")) as file:
                    pids.extend(int(line) for line in file)
            except OSError:
                continue
        return pids

    def kill(self) -> bool:
        """SIGKILL every member at once, forks included; False where the kernel cannot."""
        try:
            with open(os.path.join(self.path, "cgroup.kill"), "w") as file:
                file.write("1")
        except OSError:
            return False
        return True

    def remove(self) -> bool:
        """Remove the empty group; False while something is in it."""
        try:
            for directory in reversed(self._directories()):
                os.rmdir(directory)
        except FileNotFoundError:
            return True
        except OSError:
            return False
        return True

    def _directories(self) -> list[str]:
        return [directory for directory, _, _ in os.walk(self.path)]


def _own_directory() -> str | None:
    mount = _mount()
    if mount is None:
        return None
    root, place = mount
    own = _own_path()
    if own is None or not own.startswith(root):
        return None
    directory = os.path.normpath(os.path.join(place, os.path.relpath(own, root)))
    return directory if os.access(directory, os.W_OK) else None


def _mount() -> tuple[str, str] | None:
    try:
        with open("/proc/self/mountinfo") as file:
            for line in file:
                fields, _, kind = line.partition(" - ")
                if kind.startswith("cgroup2 "):
                    root, place = fields.split()[3:5]
                    return root, place
    except OSError:
        return None
    return None


def _own_path() -> str | None:
    try:
        with open("/proc/self/cgroup") as file:
            return next((line[3:].strip() for line in file if line.startswith("0::")), None)
    except OSError:
        return None
