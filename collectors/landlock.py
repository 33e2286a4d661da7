"""The three system calls of Landlock (landlock(7)). They confine a process permanently.

A ruleset lists the rights that it handles. A handled right is refused unless a rule allows it. The
refusal applies to the calling thread, to the threads that it starts later and to all programs that
they run. Which rights a kernel can handle depends on its version of the interface (ABI).
"""

import contextlib
import ctypes
import errno
import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntFlag
from pathlib import Path
from typing import Final


class Access(IntFlag):
    """The rights on files and directories that this module uses by name (linux/landlock.h)."""

    EXECUTE = 1 << 0
    WRITE_FILE = 1 << 1
    READ_FILE = 1 << 2
    READ_DIR = 1 << 3
    MAKE_SYM = 1 << 12
    REFER = 1 << 13
    TRUNCATE = 1 << 14
    IOCTL_DEV = 1 << 15


READ: Final = Access.READ_FILE | Access.READ_DIR
_FILE_RIGHTS: Final = (
    Access.EXECUTE | Access.WRITE_FILE | Access.READ_FILE | Access.TRUNCATE | Access.IOCTL_DEV
)
"""The rights that a rule for a single file can have. All other rights are about directories."""
_HANDLED_SINCE: Final = (
    # An ABI version, and all rights that it can handle: the newest right and all lower bits.
    (5, Access.IOCTL_DEV * 2 - 1),
    (3, Access.TRUNCATE * 2 - 1),
    (2, Access.REFER * 2 - 1),
    (1, Access.MAKE_SYM * 2 - 1),
)
_NETWORK_SINCE: Final = 4  # the first ABI version that can handle rights on TCP ports
_BIND_TCP: Final = 1 << 0
_SCOPES_SINCE: Final = 6  # the first ABI version that can handle the two scopes below
_ABSTRACT_UNIX_SOCKETS: Final = 1 << 0
_SIGNALS: Final = 1 << 1

# These numbers are the same on every architecture that the agent runs on (asm-generic/unistd.h).
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_RULE_PATH_BENEATH: Final = 1
_GET_VERSION: Final = 1 << 0  # a flag of _CREATE_RULESET: return the ABI version
_PR_SET_NO_NEW_PRIVS: Final = 38

_REASONS: Final = {
    errno.ENOSYS: "this kernel has no Landlock, which came with Linux 5.13",
    errno.EOPNOTSUPP: "Landlock is switched off in this kernel (its parameter lsm=)",
    errno.EPERM: "a filter of system calls refuses Landlock",
}


@dataclass(frozen=True, slots=True)
class Rule:
    """The rights that are allowed on a file, or on a directory and everything below it.

    A rule for a path that does not exist is ignored.
    """

    path: str
    access: Access


class _Ruleset(ctypes.Structure):
    _fields_ = (
        ("handled_access_fs", ctypes.c_uint64),
        ("handled_access_net", ctypes.c_uint64),
        ("scoped", ctypes.c_uint64),
    )


class _PathBeneath(ctypes.Structure):
    _layout_ = "ms"  # the layout of a packed structure; Python 3.14 requires it
    _pack_ = 1
    _fields_ = (("allowed_access", ctypes.c_uint64), ("parent_fd", ctypes.c_int32))


def abi_version() -> int:
    """Return the kernel's version of the interface. Raises OSError with a readable reason."""
    return _call(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_GET_VERSION))


def restrict_this_thread(rules: Iterable[Rule]) -> None:
    """Refuse every handled right that no rule allows, for this thread and threads it starts later.

    If the kernel supports it, the thread can also no longer bind TCP ports, and can no longer send
    signals or connect by abstract Unix sockets to processes outside the sandbox. Raises OSError
    with a readable reason if the kernel cannot confine the thread; then nothing is refused.
    """
    abi = abi_version()
    handled_rights = next(rights for since, rights in _HANDLED_SINCE if abi >= since)
    attributes = _Ruleset(
        handled_rights,
        _BIND_TCP if abi >= _NETWORK_SINCE else 0,
        _ABSTRACT_UNIX_SOCKETS | _SIGNALS if abi >= _SCOPES_SINCE else 0,
    )
    # An older kernel accepts a longer structure if the fields that it does not know are zero.
    size = ctypes.c_size_t(ctypes.sizeof(attributes))
    ruleset = _call(_CREATE_RULESET, ctypes.byref(attributes), size, ctypes.c_uint32(0))
    try:
        for rule in rules:
            # A path that is missing, or that this account cannot open, needs no rule.
            with contextlib.suppress(FileNotFoundError, NotADirectoryError, PermissionError):
                _allow(ruleset, rule, handled_rights)
        forbid_new_privileges()
        _call(_RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint32(0))
    finally:
        os.close(ruleset)


def forbid_new_privileges() -> None:
    """Stop programs that are started later from gaining rights, for example by set-user-ID.

    See PR_SET_NO_NEW_PRIVS in prctl(2).
    """
    libc = ctypes.CDLL(None, use_errno=True)
    zero = ctypes.c_ulong(0)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, ctypes.c_ulong(1), zero, zero, zero) != 0:
        raise _error()


def _allow(ruleset: int, rule: Rule, handled_rights: int) -> None:
    descriptor = os.open(rule.path, os.O_PATH | os.O_CLOEXEC)
    try:
        access = rule.access & handled_rights
        if not Path(f"/proc/self/fd/{descriptor}").is_dir():
            access &= _FILE_RIGHTS
        beneath = _PathBeneath(access, descriptor)
        _call(
            _ADD_RULE,
            ctypes.c_int(ruleset),
            ctypes.c_int(_RULE_PATH_BENEATH),
            ctypes.byref(beneath),
            ctypes.c_uint32(0),
        )
    finally:
        os.close(descriptor)


def _call(number: int, *arguments: object) -> int:
    if sys.platform != "linux":
        raise OSError(errno.ENOSYS, "only Linux has Landlock")
    libc = ctypes.CDLL(None, use_errno=True)
    result: int = libc.syscall(ctypes.c_long(number), *arguments)
    if result < 0:
        raise _error()
    return result


def _error() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, _REASONS.get(number, os.strerror(number)))
