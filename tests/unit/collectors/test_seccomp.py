"""Tests the instructions of the seccomp filter for both architectures. The tests interpret them and
do not load them into the kernel.
"""

import errno
from collections.abc import Sequence

import pytest

from collectors.seccomp import ARCHITECTURES, Architecture, Instruction, instructions

PID = 4711
ALLOWED, REFUSED, UNKNOWN = 0x7FFF0000, 0x50000 | errno.EPERM, 0x50000 | errno.ENOSYS
"""Results of a filter (seccomp(2)): the call runs, or it fails with EPERM or ENOSYS."""
CLONE_NEWUSER, CLONE_NEWNET, CLONE_THREAD = 0x10000000, 0x40000000, 0x10000
CLONE3 = 435

X86_64 = ARCHITECTURES["x86_64"]
AARCH64 = ARCHITECTURES["aarch64"]
both_architectures = pytest.mark.parametrize("architecture", [X86_64, AARCH64])


def verdict(program: Sequence[Instruction], number: int, argument: int, arch: int) -> int:
    """Return the result of the filter for a system call with this number and first argument.

    The function runs classic BPF as the kernel does (bpf(4)): each jump is relative to the next
    instruction.
    """
    # The offsets of struct seccomp_data: nr, arch, and the lower half of the first argument.
    data = {0: number, 4: arch, 16: argument & 0xFFFFFFFF}
    loaded, position = 0, 0
    while True:
        code, if_true, if_false, operand = program[position]
        position += 1
        if code == 0x06:  # BPF_RET
            return operand
        if code == 0x20:  # BPF_LD
            loaded = data[operand]
            continue
        is_true = {
            0x15: loaded == operand,  # BPF_JEQ
            0x35: loaded >= operand,  # BPF_JGE
            0x45: bool(loaded & operand),  # BPF_JSET
        }[code]
        position += if_true if is_true else if_false


def result_of(architecture: Architecture, number: int, argument: int = 0) -> int:
    program = instructions(architecture, PID)
    return verdict(program, number, argument, architecture.audit_number)


@both_architectures
def test_prlimit_is_allowed_only_for_the_process_itself(architecture: Architecture) -> None:
    for own in (0, PID):
        assert result_of(architecture, architecture.prlimit64, own) == ALLOWED
    for other in (1, PID - 1, PID + 1, -1):
        assert result_of(architecture, architecture.prlimit64, other) == REFUSED


@both_architectures
def test_a_new_user_namespace_is_refused_and_other_flags_are_allowed(
    architecture: Architecture,
) -> None:
    for number in (architecture.clone, architecture.unshare):
        assert result_of(architecture, number, CLONE_NEWUSER) == REFUSED
        assert result_of(architecture, number, CLONE_NEWUSER | CLONE_NEWNET) == REFUSED
        assert result_of(architecture, number, CLONE_THREAD) == ALLOWED
        assert result_of(architecture, number, CLONE_NEWNET) == ALLOWED
    assert result_of(architecture, CLONE3) == UNKNOWN, (
        "the C library must use clone instead of clone3"
    )


@both_architectures
def test_calls_with_unchecked_arguments_are_refused_or_allowed_by_number(
    architecture: Architecture,
) -> None:
    checked = {architecture.prlimit64, architecture.clone, architecture.unshare, CLONE3}
    for number in set(range(600)) - checked:
        expected = REFUSED if number in architecture.refused.values() else ALLOWED
        assert result_of(architecture, number) == expected


def test_calls_of_another_architecture_are_refused() -> None:
    for architecture, other in ((X86_64, AARCH64), (AARCH64, X86_64)):
        program = instructions(architecture, PID)
        assert verdict(program, 0, 0, other.audit_number) == REFUSED
    # An x32 program calls chmod(2) with this number.
    assert result_of(X86_64, 0x40000000 + 90) == REFUSED


@both_architectures
def test_each_call_of_the_filter_has_its_own_number(architecture: Architecture) -> None:
    numbers = [architecture.prlimit64, architecture.clone, architecture.unshare, CLONE3]
    numbers += architecture.refused.values()
    assert len(numbers) == len(set(numbers))
