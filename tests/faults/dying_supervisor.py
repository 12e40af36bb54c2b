"""`binderclip` whose supervisor kills itself once, at the point that the first word names.

The supervisor is a fresh interpreter, so the program that it is started with gets a line more.
Supervisors that adopt are left as they are.
"""

import sys

from binderclip.cli import main
from binderclip.supervisor import launch

POINTS = {
    "spawn": """
    from binderclip.supervisor import spawn
    spawn.spawn = die
""",
    "exit": """
    from binderclip.supervisor import documents
    write = documents.write_document
    def write_or_die(place, name, *rest):
        die() if name == documents.EXIT else write(place, name, *rest)
    documents.write_document = write_or_die
""",
}
SABOTAGE = """
import os, sys
sys.path.insert(0, sys.argv[1])
def die(*ignored):
    os.kill(os.getpid(), 9)
if sys.argv[2] in ("launch", "spare"):
{point}
"""

launch._COLD = SABOTAGE.format(point=POINTS[sys.argv.pop(1)]) + launch._COLD
main()
