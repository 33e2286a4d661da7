import pytest

from agent.presentation.printer_status import status_of, verdict_on
from agent.wire.payloads.network import Printer
from agent.wire.vocabulary import PrinterStatus


def printer(
    status: PrinterStatus, address: str | None = None, matched: str | None = None
) -> Printer:
    return Printer(
        id="p",
        name="P",
        transport="network",
        address=address,
        status=status,
        reason=None,
        matched_endpoint=matched,
    )


REACHABLE = printer("reachable", "10.0.0.1:9100", "10.0.0.1:9100")
UNREACHABLE = printer("unreachable", "10.0.0.1:9100")
MOVED = printer("unreachable", "10.0.0.1:9100", "10.0.0.9:9100")
UNKNOWN = printer("unknown", "/dev/usb/lp0")


def test_a_printer_matched_at_a_different_address_has_moved() -> None:
    assert [status_of(p) for p in (REACHABLE, UNREACHABLE, MOVED, UNKNOWN)] == [
        "reachable",
        "unreachable",
        "moved",
        "unknown",
    ]


def test_a_printer_at_another_port_of_its_host_has_not_moved() -> None:
    assert status_of(printer("unreachable", "10.0.0.1:9100", "10.0.0.1:631")) == "unreachable"


@pytest.mark.parametrize("address", ["bar.local:9100", "[fe80::1]:9100", None, "/dev/usb/lp0"])
def test_a_move_is_only_reported_by_two_addresses_of_one_family(address: str | None) -> None:
    assert status_of(printer("unreachable", address, "10.0.0.9:9100")) == "unreachable"


@pytest.mark.parametrize(
    ("printers", "verdict", "severity"),
    [
        (None, "Printers were not checked.", "muted"),
        ((), "No printer is configured on this machine.", "muted"),
        ((REACHABLE,), "The printer is reachable.", "good"),
        ((MOVED,), "The printer has moved to another address.", "bad"),
        ((MOVED, MOVED), "All 2 printers have moved to another address.", "bad"),
        ((UNKNOWN,), "The printer is in an unknown state.", "warn"),
        ((REACHABLE, REACHABLE), "All 2 printers are reachable.", "good"),
        ((UNKNOWN, REACHABLE), "2 printers: 1 unknown, 1 reachable.", "warn"),
        (
            (REACHABLE, MOVED, UNREACHABLE),
            "3 printers: 1 unreachable, 1 moved, 1 reachable.",
            "bad",
        ),
    ],
)
def test_the_verdict_on_printers_has_its_severity(
    printers: tuple[Printer, ...] | None, verdict: str, severity: str
) -> None:
    assert verdict_on(printers) == (verdict, severity)
