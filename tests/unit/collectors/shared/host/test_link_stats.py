"""Tests which interfaces of a Mac have a carrier, with simulated answers to SIOCGIFMEDIA."""

import errno
import struct

import psutil
import pytest

from collectors.shared.host.link_stats import read_link_stats, with_carriers

UP = psutil._ntp.snicstats(True, psutil.NIC_DUPLEX_UNKNOWN, 0, 1500, "up,broadcast,running")
# The status of each interface with media: 1 is IFM_AVALID, and 2 is IFM_ACTIVE.
STATUS = {b"en0": 1 | 2, b"en1": 1, b"en2": 0}
STATUS_OFFSET = 24  # of ifm_status in struct ifmediareq


def media(request: bytes) -> bytes:
    """Answer SIOCGIFMEDIA as macOS does. Raises OSError for an interface without media, such as a
    tunnel.
    """
    assert len(request) == 44  # as SIOCGIFMEDIA encodes it
    name = request[:16].rstrip(b"\0")
    if name not in STATUS:
        raise OSError(errno.EOPNOTSUPP, "Operation not supported on socket")
    reply = bytearray(request)
    struct.pack_into("=i", reply, STATUS_OFFSET, STATUS[name])
    return bytes(reply)


def test_an_interface_of_macos_without_a_carrier_is_down() -> None:
    stats = with_carriers(dict.fromkeys(("en0", "en1", "en2", "utun0"), UP), media)
    assert {name: state.isup for name, state in stats.items()} == {
        "en0": True,
        "en1": False,
        "en2": True,
        "utun0": True,
    }


@pytest.mark.parametrize("state", [UP, UP._replace(isup=False)])
def test_an_active_carrier_does_not_change_the_state(state: "psutil._ntp.snicstats") -> None:
    assert with_carriers({"en0": state}, media)["en0"] == state


def test_the_states_of_this_machine_are_read() -> None:
    assert read_link_stats() == psutil.net_if_stats()
