"""The entry point of the packaged executable: the agent, a collector or the Windows service.

The package contains no separate Python interpreter. To run a collector, the agent starts this
executable with the argument `collector`. A collector does not import the agent, which saves time.
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
        # Without this variable, zoneinfo loads Python's build configuration to find these paths.
        os.environ.setdefault("PYTHONTZPATH", "/usr/share/zoneinfo:/usr/lib/zoneinfo:/etc/zoneinfo")
    word = sys.argv[1] if len(sys.argv) > 1 else ""
    if word == COLLECTOR:
        _collect()
    if word == RUN:
        # The watchdog kills a hung daemon with SIGABRT. The log then shows where it hung.
        faulthandler.enable()
    if word == WINDOWS_SERVICE:
        from agent.cli.windows_service import main as windows_service

        return windows_service()
    # Imports create many objects but no garbage. Garbage collection would take a tenth of the time
    # of a short command. Only `run` runs for long, and enables garbage collection again.
    gc.disable()
    from agent.cli.main import main as cli

    return cli()


def _collect() -> None:
    from collectors.__main__ import main as collect

    del sys.argv[1]
    code = collect()
    sys.stdout.flush()
    # A thread of a library can hang in a system call. It must not prevent this process from ending.
    os._exit(code)


if __name__ == "__main__":
    sys.exit(main())
