import sys

import pytest

from collectors.shared.linux.wireless import access_point_mac, read_access_point


def test_the_address_of_an_access_point_is_read() -> None:
    assert access_point_mac(bytes.fromhex("0211223344ff")) == "02:11:22:33:44:ff"


@pytest.mark.parametrize("raw", ["00" * 6, "ff" * 6, "44" * 6, "", "02"])
def test_addresses_that_are_invalid_or_mean_no_connection_return_none(raw: str) -> None:
    assert access_point_mac(bytes.fromhex(raw)) is None


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has the wireless extensions")
def test_an_interface_without_wifi_has_no_access_point() -> None:
    assert read_access_point("lo") is None
