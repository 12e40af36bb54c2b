"""What adapter authors import is exactly what `__all__` says."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType

import binderclip.sdk


def test_all_names_what_is_importable() -> None:
    """D4: one public namespace."""
    public = {
        name
        for name, value in vars(binderclip.sdk).items()
        if not name.startswith("_") and not isinstance(value, ModuleType)
    }
    assert public == set(binderclip.sdk.__all__)
    assert len(binderclip.sdk.__all__) == len(set(binderclip.sdk.__all__))


def test_importing_the_sdk_does_not_start_asyncio() -> None:
    """D11: start-up counts; only code that runs a child needs an event loop."""
    look = "import sys, binderclip.sdk; print({'asyncio', 'sqlalchemy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
