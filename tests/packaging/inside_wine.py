"""What the Windows CPython of `prove_wine` runs besides the agent itself.

Usage: python -m tests.packaging.inside_wine imports
       python -m tests.packaging.inside_wine hold-the-desktop
       python -m tests.packaging.inside_wine run-until-told WORD...
"""

import ctypes
import importlib
import pkgutil
import signal
import subprocess
import sys

import agent
import collectors


def import_all() -> None:
    """Import every module of the agent and the collectors; say how many there are."""
    names = [
        module.name
        for package in (agent, collectors)
        for module in pkgutil.walk_packages(package.__path__, package.__name__ + ".")
        if not module.name.endswith("__main__")
        # The demo needs the reference service, which is not there.
        and module.name != "agent.cli.demo"
    ]
    for name in names:
        importlib.import_module(name)
    print(sys.platform, len(names))


def hold_the_desktop() -> None:
    """Keep Wine's desktop until stdin closes; write a line when it is there.

    Wine makes it a process that inherits the Unix descriptors of the first program that draws, and
    lives on: whoever reads that program's stderr to its end would wait for the desktop.
    """
    if sys.platform == "win32":
        print(ctypes.windll.user32.GetDesktopWindow(), flush=True)
        sys.stdin.read()


def run_until_told(*words: str) -> int:
    """Run the agent; at the first line on stdin send it Ctrl-Break and give its exit code."""
    if sys.platform != "win32":
        return 1
    ctypes.windll.kernel32.AllocConsole()
    process = subprocess.Popen(
        (sys.executable, "-m", "agent", *words),
        stdin=subprocess.DEVNULL,
        creationflags=subprocess.CREATE_NEW_PROCESS_GROUP,
    )
    sys.stdin.readline()
    process.send_signal(signal.CTRL_BREAK_EVENT)
    return process.wait(30)


if __name__ == "__main__":
    if sys.argv[1] == "imports":
        import_all()
    elif sys.argv[1] == "hold-the-desktop":
        hold_the_desktop()
    else:
        sys.exit(run_until_told(*sys.argv[2:]))
