"""The entry point of the packaged executable: the agent, a collector, or the Windows service.

A packaged agent has no interpreter to start a child with, so the child is this executable with
another first argument. A collector does not import the agent, which saves time.
"""

import faulthandler
import gc
import os
import sys

COLLECTOR = "collector"
RUN = "run"
WINDOWS_SERVICE = "windows-service"


def main() -> int:
    if sys.platform != "win32":
        # Otherwise zoneinfo would load the interpreter's build configuration to find these paths.
        os.environ.setdefault("PYTHONTZPATH", "/usr/share/zoneinfo:/usr/lib/zoneinfo:/etc/zoneinfo")
    word = sys.argv[1] if len(sys.argv) > 1 else ""
    if word == COLLECTOR:
        _collect()
    if word == RUN:
        # The watchdog kills a hung daemon by SIGABRT; the log then shows where it hung.
        faulthandler.enable()
    if word == WINDOWS_SERVICE:
        from agent.cli.windows_service import main as windows_service

        return windows_service()
    # Imports create many objects and no garbage: collecting would take a tenth of a verb's time.
    # Only `run` is long-lived, and enables it.
    gc.disable()
    from agent.cli.main import main as cli

    return cli()


def _collect() -> None:
    from collectors.__main__ import main as collect

    del sys.argv[1]
    code = collect()
    sys.stdout.flush()
    # Threads of a library that hang in a system call must not keep a finished child alive.
    os._exit(code)


if __name__ == "__main__":
    sys.exit(main())
