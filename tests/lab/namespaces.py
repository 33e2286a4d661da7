"""Creates namespaces for tests: as root, or inside a user namespace, which needs no privileges.

A namespace exists as long as the command in it runs. It has no name, so it disappears when the
command ends.
"""

import functools
import os
import subprocess
import sys

from tests.lab import loopback
from tests.paths import ROOT

LOOPBACK = (sys.executable, "-I", loopback.__file__)
"""The prefix of a command line that brings up the loopback device of a new network namespace."""

_WITHIN_S = 60
_AS_ROOT = ("unshare",)
_WITHOUT_PRIVILEGES = ("unshare", "--map-root-user")


@functools.cache
def entering(*namespaces: str, probe: tuple[str, ...] = ("true",)) -> tuple[str, ...]:
    """Return the prefix that runs a command line in a new network namespace.

    Its only device is loopback, which is up. ``namespaces`` are further options of unshare(1);
    ``probe`` is a command that must succeed in the namespace. Raises LookupError with the reason if
    no namespace can be created.
    """
    # Root may lack the right to create a namespace directly, for example in a container. A user
    # namespace may be permitted nevertheless.
    prefixes = [_AS_ROOT, _WITHOUT_PRIVILEGES] if os.geteuid() == 0 else [_WITHOUT_PRIVILEGES]
    reasons = []
    for prefix in prefixes:
        command_prefix = (*prefix, "--net", *namespaces, *LOOPBACK)
        reason = failure_of(*command_prefix, *probe)
        if reason is None:
            return command_prefix
        reasons.append(reason)
    raise LookupError("; ".join(dict.fromkeys(reasons)))


def entering_without_privileges() -> tuple[str, ...]:
    """Return the prefix of `entering` for an ordinary user. The machine may forbid its use."""
    return (*_WITHOUT_PRIVILEGES, "--net", *LOOPBACK)


def entering_all() -> tuple[str, ...]:
    """Return the prefix that enters all namespaces that a simulated machine needs.

    Raises LookupError like `entering`.
    """
    return entering("--mount", "--pid", "--fork", "--mount-proc", probe=MOUNT_PROBE)


MOUNT_PROBE = ("sh", "-c", "mount --make-rprivate / && mount -t tmpfs tmpfs /run")
TAP_PROBE = ("sh", "-c", "ip tuntap add dev probe mode tap && ip link set probe up")


def namespace_prefix() -> tuple[str, ...]:
    """Return the prefix that enters a new namespace in which a TAP device can be created.

    Raises LookupError with the reason if this machine cannot create such a namespace.
    """
    return entering(probe=TAP_PROBE)


def failure_of(*command: str) -> str | None:
    """Run a command; return None if it succeeded, or its error message."""
    try:
        result = subprocess.run(
            command, capture_output=True, check=False, stdin=subprocess.DEVNULL, cwd=ROOT,
            timeout=_WITHIN_S,
        )  # fmt: skip
    except OSError as error:
        return f"{command[0]}: {error.strerror}"
    except subprocess.TimeoutExpired:
        return f"{command[0]}: did not end within {_WITHIN_S} s"
    if result.returncode == 0:
        return None
    lines = (result.stderr or result.stdout).decode(errors="replace").split("\n")
    # The last line of a traceback is the message.
    return next((line for line in reversed(lines) if line.strip()), f"exit {result.returncode}")
