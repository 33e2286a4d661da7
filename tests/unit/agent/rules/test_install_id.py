"""Tests of the install id, which is made from the host name of the machine."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from agent.presentation.machine_name import machine_name
from agent.rules.install_id import install_id_for
from agent.wire.text import LegacyInstallId

UNIQUE = UUID("6f9a2a34-6a2a-4a39-b9b0-1a0c4b6f2f77")
ZERO_WIDTH_JOINER = "\u200d"
"""Kept in names, because it joins emoji. Python does not count it as printable."""


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("till-3", "till-3"),
        ("DESKTOP-4K2P9QX", "DESKTOP-4K2P9QX"),
        ("kasse.berlin.example.com", "kasse.berlin.example.com"),
        ("Bar-iMac.local", "Bar-iMac"),
        (" till\t3\n", "till 3"),
        ("bar\x1b[31m", "bar [31m"),
    ],
)
def test_the_install_id_is_the_host_name_without_a_local_domain(host: str, name: str) -> None:
    assert install_id_for(host, UNIQUE) == name
    assert machine_name(name) == name


@pytest.mark.parametrize(
    "host", ["", " ", "localhost", "LOCALHOST", "localhost.localdomain", "localhost6", "(none)"]
)
def test_a_host_without_a_name_of_its_own_gets_a_random_install_id(host: str) -> None:
    name = install_id_for(host, UNIQUE)
    assert name == f"install-{UNIQUE}"
    assert machine_name(name) is None


def test_a_copied_disk_on_a_host_of_the_same_name_gets_a_different_install_id() -> None:
    assert install_id_for("till", UNIQUE, taken_id="till") == "till-6f9a"
    assert install_id_for("till-2", UNIQUE, taken_id="till") == "till-2"


@given(st.text(max_size=400), st.booleans())
def test_any_host_name_gives_an_install_id_within_the_contract(host: str, is_copy: bool) -> None:
    name = install_id_for(host, UNIQUE)
    second_name = install_id_for(host, UNIQUE, taken_id=name if is_copy else None)
    for install_id in (name, second_name):
        TypeAdapter(LegacyInstallId).validate_python(install_id)
        assert install_id.replace(ZERO_WIDTH_JOINER, "").isprintable()
    if is_copy and machine_name(name):
        assert second_name != name


@pytest.mark.parametrize("install_id", ["", "unenrolled", str(UNIQUE), f"install-{UNIQUE}"])
def test_a_generated_install_id_is_not_a_machine_name(install_id: str) -> None:
    assert machine_name(install_id) is None
