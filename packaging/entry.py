"""The entry point of the packaged executable: the agent, a collector, the Windows service, or an
action of Windows Installer.

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
WINDOWS_SETUP = "windows-setup"
SETUP_LOG = "venue-agent-setup.log"
LOG_LINES = 20
"""Number of lines of the service's log that are appended to the log of the setup."""


def main() -> int:
    if sys.platform != "win32":
        # Without this variable, zoneinfo loads Python's build configuration to find these paths.
        os.environ.setdefault("PYTHONTZPATH", "/usr/share/zoneinfo:/usr/lib/zoneinfo:/etc/zoneinfo")
    # The package has no plugins of pydantic. Without this variable, pydantic searches for them.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "1")
    command = sys.argv[1] if len(sys.argv) > 1 else ""
    if command == COLLECTOR:
        _collect()
    if command == RUN:
        # The watchdog kills a hung daemon with SIGABRT. The log then shows where it hung.
        faulthandler.enable()
    if command == WINDOWS_SERVICE:
        from agent.cli.windows_service import main as windows_service

        return windows_service()
    if command == WINDOWS_SETUP and sys.platform == "win32":
        return _set_up()
    # Imports create many objects but no garbage. Garbage collection would take a tenth of the time
    # of a short command. Only `run` runs for long, and enables garbage collection again.
    gc.disable()
    from agent.cli.main import main as cli

    return cli()


def _set_up() -> int:
    """Run `venue-agent service` with the arguments after `windows-setup`.

    The output is appended to a log, because Windows Installer shows no output of the programs that
    it runs. Only administrators can write to the directory of this log. The log is deleted after
    `uninstall`, and kept after `undo`, which is `uninstall` for a first installation that failed.
    If the service cannot be installed, the end of the service's own log is appended, because
    `undo --purge` deletes the service's log.
    """
    from contextlib import redirect_stderr, redirect_stdout
    from pathlib import Path

    from agent.cli.main import main as cli

    action = sys.argv[2]
    sys.argv[1:3] = "service", "uninstall" if action == "undo" else action
    setup_log = Path(os.environ["SYSTEMROOT"]) / "Logs" / SETUP_LOG
    setup_log.parent.mkdir(exist_ok=True)
    with setup_log.open("a", encoding="utf-8") as log:
        with redirect_stdout(log), redirect_stderr(log):
            try:
                code = cli()
            except SystemExit as error:  # wrong arguments
                code = 2 if error.code else 0
        log.write(f"{action}: exit code {code}\n")
        service_log = Path(os.environ["PROGRAMDATA"]) / "venue-agent/agent.log"
        if code and action == "install" and service_log.is_file():
            lines = service_log.read_text(encoding="utf-8", errors="replace").splitlines()
            log.writelines(f"agent.log: {line}\n" for line in lines[-LOG_LINES:])
    if action == "uninstall" and not code:
        setup_log.unlink()
    return code


def _collect() -> None:
    from collectors.__main__ import main as collect

    del sys.argv[1]
    code = collect()
    sys.stdout.flush()
    # A thread of a library can hang in a system call. It must not prevent this process from ending.
    os._exit(code)


if __name__ == "__main__":
    sys.exit(main())
