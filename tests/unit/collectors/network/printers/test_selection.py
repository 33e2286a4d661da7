"""Tests that a user selects a printer by its id, queue, name or address."""

import pytest

from collectors.network.observations import KnownPrinter
from collectors.network.printers.selection import describe_unknown, find_named

KITCHEN = KnownPrinter(
    "cups:kitchen_1", "Küche", "network", "cups", "kitchen.lan:9100",
    host="kitchen.lan", addresses=("192.168.1.50",), port=9100,
)  # fmt: skip
BAR = KnownPrinter("bar", "Bar", "usb", "config", "/dev/usb/lp0")


@pytest.mark.parametrize(
    "text",
    ["cups:kitchen_1", "kitchen_1", "KÜCHE", " Küche ", "kitchen.lan", "kitchen.lan:9100",
     "192.168.1.50"],
)  # fmt: skip
def test_each_name_of_a_printer_selects_it(text: str) -> None:
    assert find_named((BAR, KITCHEN), text) == (KITCHEN,)


@pytest.mark.parametrize("text", ["", "cups", "kitchen", "192.168.1.5", "9100"])
def test_a_part_of_a_name_selects_no_printer(text: str) -> None:
    assert find_named((BAR, KITCHEN), text) == ()


@pytest.mark.parametrize(
    ("known", "text", "message"),
    [
        (
            (KITCHEN, BAR), "kitchen",
            ("this machine has no printer 'kitchen'; did you mean 'kitchen_1'?"
            " Its printers: Küche, Bar"),
        ),
        ((BAR,), "office", "this machine has no printer 'office'. Its printers: Bar"),
        ((), "office", "this machine has no printer 'office', nor any other printer"),
        (
            (BAR,) * 12, "office",
            f"this machine has no printer 'office'. Its printers: {'Bar, ' * 10}2 more",
        ),
    ],
)  # fmt: skip
def test_message_for_an_unknown_name_lists_the_printers(
    known: tuple[KnownPrinter, ...], text: str, message: str
) -> None:
    assert describe_unknown(known, text) == message
