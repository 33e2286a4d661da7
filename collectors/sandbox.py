"""What a collector's process may read and run, and that it may write nowhere.

A collector parses untrusted input from the network, with the rights of the account that runs it.
To contain a defect in a parser, the process confines itself after it has imported its own modules,
before it reads untrusted bytes and before it has a second thread: it can open only what is named
here, and so can the programs that it runs. Not named are above all the
state directory, the API key (also in /run/credentials), the configuration, homes and disks.

Landlock does not refuse stat, following links, or connecting to sockets.
"""

import ctypes
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from collectors.contract import Confinement
from collectors.landlock import READ, Access, Rule, forbid_new_privileges, restrict_this_thread

PROGRAMS: Final = (
    "/usr/bin", "/usr/sbin", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libx32", "/usr/libexec",
    "/usr/local/lib", "/usr/share", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32",
    "/nix/store", "/gnu/store",
)  # fmt: skip
"""Programs of the system, their libraries and data: the same on every machine, no secrets."""

KERNEL: Final = ("/proc", "/sys")
"""The kernel's view. The environment, memory and files of a process can be read only with the right
to trace it, which a confined process has only for its own processes."""

SETTINGS: Final = (
    # the system, its place and its name
    "/etc/os-release", "/etc/lsb-release", "/etc/debian_version", "/etc/machine-id",
    "/etc/localtime", "/etc/timezone", "/etc/locale.conf", "/etc/locale.alias",
    "/etc/default/locale", "/var/lib/dbus/machine-id",
    # names and addresses
    "/etc/resolv.conf", "/etc/hosts", "/etc/hostname", "/etc/host.conf", "/etc/nsswitch.conf",
    "/etc/gai.conf", "/etc/services", "/etc/protocols", "/etc/networks", "/etc/ethers",
    "/etc/passwd", "/etc/group", "/etc/mdns.allow",
    "/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager/resolv.conf",
    "/run/connman/resolv.conf", "/run/netconfig/resolv.conf",
    # whom to trust; not /etc/ssl/private
    "/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/ssl/cert.pem", "/etc/ca-certificates",
    "/etc/pki/tls/certs", "/etc/pki/tls/cert.pem", "/etc/pki/tls/openssl.cnf",
    "/etc/ssl/ca-bundle.pem", "/var/lib/ca-certificates", "/usr/local/share/ca-certificates",
    "/etc/pki/ca-trust/extracted", "/etc/crypto-policies", "/etc/gnutls/config", "/etc/pkcs11",
    # the loader's, and those of the programs that are run
    "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/ld.so.preload",
    "/etc/ld-musl-x86_64.path", "/etc/ld-musl-aarch64.path", "/etc/selinux/config",
    "/etc/cups/client.conf", "/etc/cups/lpoptions", "/etc/smart_drivedb.h",
    "/var/lib/smartmontools",
    # which policies of the kiosk's browser are set
    "/etc/chromium/policies", "/etc/chromium-browser/policies", "/etc/opt/chrome/policies",
    "/etc/opt/edge/policies",
    # what waits for a restart, and since when the clock is right
    "/run/reboot-required", "/run/reboot-required.pkgs", "/run/systemd/timesync",
    "/run/udev/data", "/run/utmp",
    "/dev/urandom", "/dev/random", "/dev/zero",
)  # fmt: skip
"""Single files, because /etc, /run and /var hold secrets of others as well."""

NOWHERE: Final = "/dev/null"
"""The only place that may be written, as the programs' standard input."""


def confine_this_process() -> Confinement:
    """Confine this process permanently if the system can. Returns the result.

    To be called from the only thread: a thread that already runs would stay free.
    """
    if sys.platform != "linux":
        return Confinement("not-offered", "this operating system offers no such confinement")
    try:
        forbid_new_privileges()
        restrict_this_thread(rules())
        drop_capabilities()
    except OSError as error:
        return Confinement("refused", error.strerror or str(error))
    return Confinement("confined")


def drop_capabilities() -> None:
    """Drop the capabilities of root (capset(2)), also for all child processes.

    Else a confined root could still load a module into the kernel or read the machine's memory.
    If a service's filter of system calls refuses it, the process has no capabilities anyway.
    """
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    none = (ctypes.c_uint32 * 6)()
    ctypes.CDLL(None, use_errno=True).capset(header, none)


def rules() -> Iterator[Rule]:
    """Yield all that is allowed."""
    for path in PROGRAMS:
        yield Rule(path, READ | Access.EXECUTE)
    for path in (*KERNEL, *SETTINGS, *modules()):
        yield Rule(path, READ)
    yield Rule(NOWHERE, Access.READ_FILE | Access.WRITE_FILE)


def modules() -> tuple[str, ...]:
    """Where this interpreter's modules and ours lie, also in a home directory or a checkout.

    Not all of `sys.path`: a checkout may hold a state directory beside the packages.
    """
    if getattr(sys, "frozen", False):
        return (str(Path(sys.executable).resolve().parent),)
    installed = sysconfig.get_paths()
    paths = {installed[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    # Libraries that extension modules are linked to, in an interpreter with a place of its own.
    paths |= {f"{prefix}/{lib}" for prefix in (sys.prefix, sys.base_prefix) for lib in _LIBRARIES}
    paths.add(str(Path(__file__).parent))
    return tuple(sorted(paths))


_CAPABILITY_VERSION_3: Final = 0x20080522  # linux/capability.h
_LIBRARIES: Final = ("lib", "lib64")
