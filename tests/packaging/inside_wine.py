"""What the Windows CPython of `prove_wine` runs besides the agent itself.

Usage: python -m tests.packaging.inside_wine imports
       python -m tests.packaging.inside_wine run-until-told WORD...
"""

import importlib
import pkgutil
import signal
import subprocess
import sys

import agent
import collectors


def import_all() -> int:
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
    return 0


def run_until_told(*words: str) -> int:
    """Run the agent; at the first line on stdin send it Ctrl-Break and give its exit code."""
    if sys.platform != "win32":
        raise SystemExit("this runs on Windows")
    agent_process = subprocess.Popen(
        (sys.executable, "-m", "agent", *words),
        stdin=subprocess.DEVNULL,
        creationflags=subprocess.CREATE_NEW_PROCESS_GROUP,
    )
    sys.stdin.readline()
    agent_process.send_signal(signal.CTRL_BREAK_EVENT)
    return agent_process.wait(30)


if __name__ == "__main__":
    sys.exit(import_all() if sys.argv[1] == "imports" else run_until_told(*sys.argv[2:]))
