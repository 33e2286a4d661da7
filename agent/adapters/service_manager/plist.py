"""The launchd property list of the agent (launchd.plist(5))."""

import plistlib
from typing import Final

LABEL: Final = "com.venue-agent.daemon"
LOG: Final = "/Library/Logs/venue-agent.log"


def daemon_plist(command_line: tuple[str, ...], config: str) -> bytes:
    """Return the property list of a LaunchDaemon that runs ``command_line``.

    It runs as root in the system domain: daemons there are exempt from Local Network privacy,
    which would deny an agent of a person's session every address but the gateway's.
    """
    return plistlib.dumps(
        {
            "Label": LABEL,
            "ProgramArguments": [*command_line, "run", "--config", config],
            "RunAtLoad": True,
            # Exit code 2 is a wrong configuration, but launchd knows only success and failure.
            "KeepAlive": {"SuccessfulExit": False},
            "ThrottleInterval": 10,
            "ExitTimeOut": 15,
            "ProcessType": "Background",
            "LowPriorityIO": True,
            "Umask": 0o077,
            "StandardOutPath": LOG,
            "StandardErrorPath": LOG,
            "EnvironmentVariables": {"LANG": "C.UTF-8"},
            "SoftResourceLimits": {"NumberOfFiles": 1024},
        }
    )
