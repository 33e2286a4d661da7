"""Tests netlink messages and dumps. One socket of a pair stands for the kernel."""

import errno
import socket
import struct
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.shared.linux import netlink
from collectors.shared.linux.netlink_socket import dump, open_netlink


def message(kind: int, body: bytes) -> bytes:
    """Return a message with its header (struct nlmsghdr), padded to four bytes."""
    return struct.pack("=IHHII", 16 + len(body), kind, 2, 1, 0) + body + bytes(-len(body) % 4)


@pytest.fixture
def program_and_kernel() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Return the socket of the program and the socket that stands for the kernel."""
    program, kernel = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with program, kernel:
        program.settimeout(60)
        yield program, kernel


def test_a_dump_ends_with_its_last_message(
    program_and_kernel: tuple[socket.socket, socket.socket],
) -> None:
    program, kernel = program_and_kernel
    kernel.send(message(20, b"one") + message(7, b"other"))
    kernel.send(message(20, b"two") + message(netlink.NLMSG_DONE, bytes(4)))
    assert dump(program, 22, b"\2\0\0\0", 20) == [b"one", b"two"]
    assert kernel.recv(4096) == struct.pack("=IHHII", 20, 22, 0x301, 1, 0) + b"\2\0\0\0"


def test_a_refused_dump_raises_the_error_of_the_kernel(
    program_and_kernel: tuple[socket.socket, socket.socket],
) -> None:
    program, kernel = program_and_kernel
    kernel.send(message(netlink.NLMSG_ERROR, struct.pack("=i", -errno.EPERM) + bytes(16)))
    with pytest.raises(PermissionError, match="Operation not permitted"):
        dump(program, 22, b"", 20)


def test_an_attribute_is_written_and_read() -> None:
    attributes = netlink.write_attribute(3, b"abcde") + netlink.write_attribute(4 | 0x8000, b"")
    assert len(attributes) == 16
    assert netlink.parse_attributes(attributes) == {3: b"abcde", 4: b""}


def test_a_platform_without_netlink_raises_an_oserror(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(socket, "AF_NETLINK")
    with pytest.raises(OSError, match="no netlink"):
        open_netlink(0)


@given(st.binary(max_size=64))
def test_only_1_2_or_4_bytes_are_parsed_as_a_number(data: bytes) -> None:
    number = netlink.unsigned(data)
    assert (number is None) == (len(data) not in {1, 2, 4})
    netlink.parse_attributes(data)
