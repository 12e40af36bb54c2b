"""`python -m binderclip.supervisor`: what `launch` runs in a fresh interpreter."""

import sys

from binderclip.supervisor.main import main

main(sys.argv[1:])
