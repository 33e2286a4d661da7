"""Confines a collector's process: it can read and run files only at the paths listed here.

A collector parses untrusted input from the network, with the rights of the account that runs it.
To contain a defect in a parser, the process confines itself after it has imported its own modules,
before it reads untrusted bytes and before it has a second thread. From then on the process, and
every program that it runs, can open only the paths listed here. The lists leave out the state
directory, the API key (also in /run/credentials), the configuration, home directories and disks.

Landlock does not refuse stat(2), following links, or connecting to network sockets and to Unix
sockets that have a path.
"""

import ctypes
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from collectors.contract import Confinement
from collectors.landlock import READ, Access, Rule, forbid_new_privileges, restrict_this_thread
from collectors.seccomp import filter_this_thread
from collectors.unprivileged import leave_root

PROGRAMS: Final = (
    "/usr/bin", "/usr/sbin", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libx32", "/usr/libexec",
    "/usr/local/lib", "/usr/share", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32",
    "/nix/store", "/gnu/store",
)  # fmt: skip
"""Programs of the system, their libraries and data. They come from packages and hold no secrets."""

KERNEL: Final = ("/proc", "/sys")
"""The kernel's view of the machine. /proc shows the environment, memory and files of a process only
to a process that may trace it. A confined process may trace only its own child processes."""

SETTINGS: Final = (
    # operating system, machine id, time zone and locale
    "/etc/os-release", "/etc/lsb-release", "/etc/debian_version", "/etc/machine-id",
    "/etc/localtime", "/etc/timezone", "/etc/locale.conf", "/etc/locale.alias",
    "/etc/default/locale", "/var/lib/dbus/machine-id",
    # resolution of names, addresses, users and groups
    "/etc/resolv.conf", "/etc/hosts", "/etc/hostname", "/etc/host.conf", "/etc/nsswitch.conf",
    "/etc/gai.conf", "/etc/services", "/etc/protocols", "/etc/networks", "/etc/ethers",
    "/etc/passwd", "/etc/group", "/etc/mdns.allow",
    "/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager/resolv.conf",
    "/run/connman/resolv.conf", "/run/netconfig/resolv.conf",
    # trusted certificates and TLS settings; not /etc/ssl/private, which holds keys
    "/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/ssl/cert.pem", "/etc/ca-certificates",
    "/etc/pki/tls/certs", "/etc/pki/tls/cert.pem", "/etc/pki/tls/openssl.cnf",
    "/etc/ssl/ca-bundle.pem", "/var/lib/ca-certificates", "/usr/local/share/ca-certificates",
    "/etc/pki/ca-trust/extracted", "/etc/crypto-policies", "/etc/gnutls/config", "/etc/pkcs11",
    # the dynamic loader, and the programs that collectors run
    "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/ld.so.preload",
    "/etc/ld-musl-x86_64.path", "/etc/ld-musl-aarch64.path", "/etc/selinux/config",
    "/etc/cups/client.conf", "/etc/cups/lpoptions", "/etc/smart_drivedb.h",
    "/var/lib/smartmontools",
    # policies of the kiosk's browser
    "/etc/chromium/policies", "/etc/chromium-browser/policies", "/etc/opt/chrome/policies",
    "/etc/opt/edge/policies",
    # packages that need a restart, state of the clock, devices, logins
    "/run/reboot-required", "/run/reboot-required.pkgs", "/run/systemd/timesync",
    "/run/udev/data", "/run/utmp",
    "/dev/urandom", "/dev/random", "/dev/zero",
)  # fmt: skip
"""The settings and state that collectors read. They are single paths, because /etc, /run and /var
also hold secrets of other programs."""

LEASES: Final = (
    "/run/systemd/netif/leases/*", "/var/lib/dhcp/dhclient*.lease*",
    "/var/lib/dhclient/dhclient*.lease*", "/var/lib/dhcpcd/*.lease",
    "/var/lib/dhcpcd5/dhcpcd-*.lease", "/var/db/dhcpcd/*.lease",
)  # fmt: skip
"""The leases of DHCP clients. The process may list their directories and read these files, but no
other files there, because those may hold secrets."""

NULL_DEVICE: Final = "/dev/null"
"""The only path to which the process can write. Programs that it runs get this path as their
standard input."""


def confine_this_process() -> Confinement:
    """Confine this process permanently as far as the system can. Returns the result of Landlock.

    A process of root also becomes a process of an ordinary user, and a filter refuses some system
    calls. If one of these two steps fails, the process continues without it, and writes the reason
    to stderr. Call this function while the process has one thread, because other threads that
    already run are not confined.
    """
    if sys.platform != "linux":
        return Confinement("not-offered", "this operating system offers no such confinement")
    confinement = Confinement("confined")
    try:
        forbid_new_privileges()  # the filter of system calls needs it, too
        restrict_this_thread(rules())
    except OSError as error:
        confinement = Confinement("refused", error.strerror or str(error))
    try:
        leave_root(module_directories())
    except OSError as error:
        sys.stderr.write(f"the collector still runs as root: {error.strerror}\n")
    drop_capabilities()
    try:
        filter_this_thread()
    except OSError as error:
        sys.stderr.write(f"the collector runs without a filter of system calls: {error.strerror}\n")
    return confinement


def drop_capabilities() -> None:
    """Drop the capabilities of root (capset(2)), also for all child processes.

    With them a confined process of root could still load a kernel module or read the machine's
    memory. An error is ignored: if the system-call filter of a systemd unit refuses capset(2), the
    process has no capabilities anyway.
    """
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    none = (ctypes.c_uint32 * 6)()
    ctypes.CDLL(None, use_errno=True).capset(header, none)


def rules() -> Iterator[Rule]:
    """Yield a rule for each path that the process may open."""
    for path in PROGRAMS:
        yield Rule(path, READ | Access.EXECUTE)
    for path in (*KERNEL, *SETTINGS, *module_directories()):
        yield Rule(path, READ)
    for pattern in LEASES:
        directory, name = Path(pattern).parent, Path(pattern).name
        yield Rule(str(directory), Access.READ_DIR)
        yield from (Rule(str(path), Access.READ_FILE) for path in directory.glob(name))
    yield Rule(NULL_DEVICE, Access.READ_FILE | Access.WRITE_FILE)


def module_directories() -> tuple[str, ...]:
    """Return the directories of this interpreter's modules and of the collectors.

    They may be in a home directory or a checkout. `sys.path` is not used: it names the root of a
    checkout, which may contain a state directory.
    """
    if getattr(sys, "frozen", False):
        return (str(Path(sys.executable).resolve().parent),)
    installed = sysconfig.get_paths()
    paths = {installed[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    # An interpreter outside the system's directories brings libraries for its extension modules.
    paths |= {f"{prefix}/{lib}" for prefix in (sys.prefix, sys.base_prefix) for lib in _LIBRARIES}
    paths.add(str(Path(__file__).parent))
    return tuple(sorted(paths))


_CAPABILITY_VERSION_3: Final = 0x20080522  # linux/capability.h
_LIBRARIES: Final = ("lib", "lib64")
