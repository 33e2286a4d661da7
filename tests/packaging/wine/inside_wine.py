"""Helper commands of `verify_wine` that run in its Windows CPython.

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
    """Import all modules of the agent and the collectors. Print the platform and the number of
    modules.
    """
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
    """Create Wine's desktop, print a line, and wait until stdin closes.

    Wine's desktop is a process. It inherits the Unix file descriptors of the first program that
    uses it, and runs longer than that program. A reader of the program's stderr would therefore
    wait until the desktop ends. To prevent this, this command runs before the tested programs. The
    desktop then inherits the descriptors of this command. The caller reads only the first line of
    this command's output.
    """
    if sys.platform == "win32":
        print(ctypes.windll.user32.GetDesktopWindow(), flush=True)
        sys.stdin.read()


def replace_while_read() -> None:
    """Replace a file while a reader has it open. Windows refuses this until the file is closed."""
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
