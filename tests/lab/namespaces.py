"""Network namespaces for the lab: as root, or unprivileged inside a user namespace.

A namespace made here lives as long as the command in it: nothing is named, nothing is left.
"""

import functools
import os
import shutil
import subprocess
from pathlib import Path

_TUN = Path("/dev/net/tun")
_PROBE = "ip link set lo up && ip tuntap add dev probe mode tap && ip link set probe up"


@functools.cache
def namespace_prefix() -> tuple[str, ...]:
    """Return the command prefix that enters a fresh namespace able to hold a TAP device.

    Raises LookupError with the reason where this machine has none.
    """
    for tool in ("ip", "unshare"):
        if shutil.which(tool) is None:
            raise LookupError(f"{tool} is not installed")
    if not _TUN.exists():
        raise LookupError("there is no /dev/net/tun")
    # The user namespace is tried by root, too: it takes the way of most machines.
    ways = [("unshare", "-Urn")]
    if os.geteuid() == 0:
        ways.insert(0, ("unshare", "-n"))
    reasons = []
    for way in ways:
        done = subprocess.run([*way, "sh", "-c", _PROBE], capture_output=True, check=False)
        if done.returncode == 0:
            return way
        reasons.append(f"{' '.join(way)}: {done.stderr.decode(errors='replace').strip()}")
    raise LookupError("; ".join(reasons))


def why_not() -> str | None:
    """Return the reason why no lab can be built here, None where one can."""
    try:
        namespace_prefix()
    except LookupError as error:
        return str(error)
    return None
