"""Tests of the makers of network devices, which are looked up by MAC address."""

import datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.presentation.hosts.makers import (
    HEADER,
    MAGIC,
    RANDOM_ADDRESS,
    Registry,
    maker_of,
    registry,
)
from tests.packaging.scripts import packaging_script
from tests.sizes import examples

pack = packaging_script("makers.py").pack
DATE = datetime.date(2026, 10, 24)
DIGITS = st.text("0123456789ABCDEF", min_size=9, max_size=9)
NAMES = st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=20)


@pytest.mark.parametrize(
    ("mac", "maker"),
    [
        ("00:26:ab:4c:11:20", "Seiko Epson"),
        ("00-11-62-01-02-03", "Star Micronics"),
        ("B8:27:EB:01:02:03", "Raspberry Pi Foundation"),
        ("48:0b:b2:a1:00:00", "Xiamen Rongta Technology"),  # a medium block of the registry
        ("8c:1f:64:c2:10:00", "SPECIM, Spectral Imaging"),  # a small block of the registry
        ("52:54:00:12:34:56", RANDOM_ADDRESS),
        ("da:a1:19:00:00:01", RANDOM_ADDRESS),
        ("01:00:5e:00:00:fb", ""),
        ("00:00:00:00:00:00", ""),
        ("ff:ff:ff:ff:ff:ff", RANDOM_ADDRESS),
        ("", ""),
        ("00:26:ab", ""),
        ("not an address", ""),
        ("0026ab4c1120", ""),
    ],
)
def test_the_maker_of_a_mac_address_is_returned(mac: str, maker: str) -> None:
    assert maker_of(mac) == maker


def test_the_list_of_makers_has_a_date() -> None:
    assert datetime.date.fromisoformat(registry().date) >= DATE


@given(st.dictionaries(DIGITS, NAMES, max_size=40), st.sampled_from((6, 7, 9)))
@settings(max_examples=examples(60))
def test_each_block_of_the_registry_covers_its_first_and_last_address(
    makers: dict[str, str], length: int
) -> None:
    blocks = {digits[:length]: name for digits, name in makers.items()}
    packed = Registry(pack(DATE, blocks))
    for digits, name in blocks.items():
        for fill in "0F":
            assert packed.maker_of(bytes.fromhex(digits.ljust(12, fill))) == name


@given(st.binary(max_size=200), st.integers(0, 2**32 - 1), st.binary(min_size=6, max_size=6))
@settings(max_examples=examples(100))
def test_any_bytes_are_parsed_or_raise_a_value_error(rest: bytes, count: int, mac: bytes) -> None:
    for packed in (rest, HEADER.pack(MAGIC, b"2026-10-24", count % 20) + rest):
        try:
            makers = Registry(packed)
        except ValueError:
            continue
        assert isinstance(makers.maker_of(mac), str)


@given(st.text(max_size=40))
@settings(max_examples=examples(100))
def test_maker_of_accepts_any_text(text: str) -> None:
    assert isinstance(maker_of(text), str)
