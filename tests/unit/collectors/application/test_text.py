"""Untrusted strings are cut to a maximum length, and names of users are removed."""

from collectors.application.readers.disk_space import without_owner
from collectors.application.readers.peripherals import fingerprint
from collectors.application.source import Origin
from collectors.contract import TEXT_MAX


def test_a_long_text_value_is_cut() -> None:
    assert Origin("s").available("k", "x" * TEXT_MAX * 3).value == "x" * TEXT_MAX


def test_a_list_is_bounded() -> None:
    assert len(Origin("s").available("k", ("x",) * 10_000).value) == 256


def test_user_names_in_paths_are_replaced() -> None:
    assert without_owner("/home/anna/data") == "/home/*/data"
    assert without_owner("/media/anna/STICK") == "/media/*/STICK"
    assert without_owner("/run/media/anna/STICK") == "/run/media/*/STICK"
    assert without_owner("/Users/anna") == "/Users/*"
    assert without_owner("/srv/home/anna") == "/srv/home/anna"


def test_a_fingerprint_is_stable_and_hides_its_input() -> None:
    assert fingerprint("A1234 ") == fingerprint("A1234")
    assert fingerprint("A1234") != fingerprint("A1235")
    assert "A1234" not in fingerprint("A1234")
