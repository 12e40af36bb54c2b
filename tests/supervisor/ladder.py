"""Runs a program as a supervisor without a cgroup would, kills its tree and says what is left.

Arguments: source root, marker, command.
"""

from __future__ import annotations

import os
import signal
import sys

sys.path.insert(0, sys.argv[1])

from binderclip.supervisor import kernel
from binderclip.supervisor.spawn import Program, spawn
from binderclip.supervisor.tree import Tree

marker, command = sys.argv[2], sys.argv[3:]
kernel.become_subreaper()
signal.signal(signal.SIGCHLD, lambda *_: None)
tree = Tree(marker, None, os.getppid())
name, _, value = marker.partition("=")
reader, writer = os.pipe()
null = os.open(os.devnull, os.O_RDWR)
program = Program(command, {"PATH": os.environ.get("PATH", os.defpath), name: value}, "/")
tree.own(spawn(program, (null, writer, 2)))
os.read(reader, 1)
left = tree.kill()
sys.stdout.write(f"left: {len(left)}, status seen: {tree.status is not None}\n")
