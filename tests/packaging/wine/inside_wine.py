"""Runs in the Windows CPython of `verify_wine`, in addition to the agent.

Usage: python -m tests.packaging.wine.inside_wine imports
       python -m tests.packaging.wine.inside_wine hold-the-desktop
       python -m tests.packaging.wine.inside_wine replace-while-read
"""

import ctypes
import importlib
import pkgutil
import sys
import tempfile
import threading
from pathlib import Path

import agent
import collectors
from agent.adapters.storage.atomic_file import write_atomically


def import_all() -> None:
    """Import every module of the agent and the collectors; print their number."""
    names = [
        module.name
        for package in (agent, collectors)
        for module in pkgutil.walk_packages(package.__path__, package.__name__ + ".")
        if not module.name.endswith("__main__")
    ]
    for name in names:
        importlib.import_module(name)
    print(sys.platform, len(names))


def hold_the_desktop() -> None:
    """Keep Wine's desktop until stdin closes; write a line when the desktop exists.

    Wine's desktop is a process that inherits the Unix descriptors of the first program that draws,
    and outlives it. A reader of that program's stderr would wait for the desktop to end.
    """
    if sys.platform == "win32":
        print(ctypes.windll.user32.GetDesktopWindow(), flush=True)
        sys.stdin.read()


def replace_while_read() -> None:
    """Replace a file while a reader has it open, which Windows forbids until it is closed."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "status.json"
        file.write_bytes(b"old")
        reader = file.open("rb")
        threading.Timer(0.1, reader.close).start()
        write_atomically(file, b"new")
        assert file.read_bytes() == b"new"
    print("replaced")


ACTIONS = {
    "imports": import_all,
    "hold-the-desktop": hold_the_desktop,
    "replace-while-read": replace_while_read,
}

if __name__ == "__main__":
    ACTIONS[sys.argv[1]]()
