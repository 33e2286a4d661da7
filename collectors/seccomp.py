"""A filter of system calls for a collector's process (seccomp(2)). It is permanent.

Landlock does not refuse the calls listed here. The filter also applies to all threads and programs
that the process starts later. Installing it needs no privileges if ``no_new_privs`` is set.
"""

import ctypes
import errno
import os
import struct
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Architecture:
    """The numbers of an architecture: its AUDIT_ARCH (linux/audit.h) and its system calls.

    The calls in ``refused`` always fail with EPERM. ``foreign_from`` is the first number of the
    system calls of another interface to the same kernel (x32), or None. A call with this number or
    a higher number fails, too.
    """

    audit_number: int
    prlimit64: int
    clone: int
    unshare: int
    refused: Mapping[str, int]
    foreign_from: int | None = None


_SINCE_LINUX_5: Final = {  # these have the same number on every architecture
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427,
    "fchmodat2": 452, "setxattrat": 463,
}  # fmt: skip
_CLONE3: Final = 435
ARCHITECTURES: Final = {
    "x86_64": Architecture(
        audit_number=0xC000003E,
        prlimit64=302,
        clone=56,
        unshare=272,
        refused={
            "chmod": 90, "fchmod": 91, "fchmodat": 268,
            "setxattr": 188, "lsetxattr": 189, "fsetxattr": 190, **_SINCE_LINUX_5,
        },
        foreign_from=0x40000000,
    ),
    "aarch64": Architecture(
        audit_number=0xC00000B7,
        prlimit64=261,
        clone=220,
        unshare=97,
        refused={
            "fchmod": 52, "fchmodat": 53,
            "setxattr": 5, "lsetxattr": 6, "fsetxattr": 7, **_SINCE_LINUX_5,
        },
    ),
}  # fmt: skip
"""Sources: asm/unistd_64.h of x86, and asm-generic/unistd.h. setxattr(2) is refused because it
can set an access control list, and this also changes the file's mode (acl(5))."""

_BITS: Final = 64
_CLONE_NEWUSER: Final = 0x10000000
_PR_SET_SECCOMP: Final = 22
_SECCOMP_MODE_FILTER: Final = 2

# Offsets in struct seccomp_data (linux/seccomp.h), and instruction codes of classic BPF
# (linux/bpf_common.h)
_NUMBER, _ARCH, _FIRST_ARGUMENT = 0, 4, 16
_LOAD, _EQUAL, _AT_LEAST, _HAS_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06

_INSTRUCTION: Final = struct.Struct("=HBBI")
Instruction = tuple[int, int, int, int]
"""A code, the jumps if the condition is true and if it is false, and an operand."""

# SECCOMP_RET_ALLOW, and SECCOMP_RET_ERRNO with the error that the call returns (linux/seccomp.h)
_ALLOW: Final[Instruction] = (_RETURN, 0, 0, 0x7FFF0000)
_REFUSE: Final[Instruction] = (_RETURN, 0, 0, 0x00050000 | errno.EPERM)
_NOT_IMPLEMENTED: Final[Instruction] = (_RETURN, 0, 0, 0x00050000 | errno.ENOSYS)


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def filter_this_thread() -> None:
    """Refuse certain system calls of this thread, and of all threads and programs it starts.

    The calls set limits of other processes (prlimit(2)), create user namespaces, use io_uring, or
    change the mode of a file. Call `landlock.forbid_new_privileges` first. Raises OSError with a
    readable reason if the system has no such filter.
    """
    if sys.platform != "linux":
        raise OSError(errno.ENOSYS, "only Linux has seccomp filters")
    machine, bits = os.uname().machine, 8 * struct.calcsize("P")
    architecture = ARCHITECTURES.get(machine)
    if architecture is None or bits != _BITS:
        message = f"the system-call filter does not support {machine} with {bits} bits"
        raise OSError(errno.ENOSYS, message)
    code = assemble(instructions(architecture, os.getpid()))
    program = _Program(len(code) // _INSTRUCTION.size, code)
    libc = ctypes.CDLL(None, use_errno=True)
    mode, zero = ctypes.c_ulong(_SECCOMP_MODE_FILTER), ctypes.c_ulong(0)
    if libc.prctl(_PR_SET_SECCOMP, mode, ctypes.byref(program), zero, zero) != 0:
        number = ctypes.get_errno()
        is_missing = number in {errno.EINVAL, errno.ENOSYS}
        message = "this kernel has no seccomp filters" if is_missing else os.strerror(number)
        raise OSError(number, message)


def instructions(architecture: Architecture, pid: int) -> Sequence[Instruction]:
    """Return the filter for the process ``pid``.

    prlimit(2) is allowed only if its first argument is ``pid``, or 0 for the calling process.
    """
    first_argument: Instruction = (_LOAD, 0, 0, _FIRST_ARGUMENT)
    only_own_limits = [
        first_argument, (_EQUAL, 2, 0, 0), (_EQUAL, 1, 0, pid), _REFUSE, _ALLOW,
    ]  # fmt: skip
    no_user_namespace = [first_argument, (_HAS_BIT, 0, 1, _CLONE_NEWUSER), _REFUSE, _ALLOW]
    body: list[Instruction] = [
        (_LOAD, 0, 0, _ARCH), (_EQUAL, 1, 0, architecture.audit_number), _REFUSE,
        (_LOAD, 0, 0, _NUMBER),
    ]  # fmt: skip
    if architecture.foreign_from is not None:
        body += [(_AT_LEAST, 0, 1, architecture.foreign_from), _REFUSE]
    body += _for_call(architecture.prlimit64, only_own_limits)
    body += _for_call(architecture.clone, no_user_namespace)
    body += _for_call(architecture.unshare, no_user_namespace)
    # The flags of clone3(2) are in memory, which a filter cannot read. So clone3 fails as if the
    # kernel did not know it. C libraries then use clone(2).
    body += _for_call(_CLONE3, [_NOT_IMPLEMENTED])
    for number in architecture.refused.values():
        body += _for_call(number, [_REFUSE])
    return [*body, _ALLOW]


def assemble(program: Sequence[Instruction]) -> bytes:
    """Return the instructions as an array of struct sock_filter (linux/filter.h)."""
    return b"".join(_INSTRUCTION.pack(*instruction) for instruction in program)


def _for_call(number: int, block: list[Instruction]) -> list[Instruction]:
    """Return instructions that run ``block`` for one system call. The block ends with a return."""
    return [(_EQUAL, 0, len(block), number), *block]
