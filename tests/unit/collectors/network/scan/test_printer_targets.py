"""Tests which addresses of known printers are contacted in addition to the scanned ones."""

from collectors.network.observations import KnownPrinter
from collectors.network.scan.printer_targets import PRINTERS_MAX, printer_targets
from collectors.network.scan.targets import Target
from collectors.shared.addresses import ipv4_host


def printer(number: int, address: str, port: int | None = 9100) -> KnownPrinter:
    return KnownPrinter(
        f"p{number}", f"Printer {number}", "network", "config", addresses=(address,), port=port
    )


def ports_by_address(
    *known: KnownPrinter, tried: set[tuple[str, int]] | None = None
) -> tuple[dict[str, tuple[int, ...] | None], tuple[str, ...]]:
    """Return the ports to try at each address, and the limitations."""
    targets, limitations = printer_targets(
        known, tried=tried or set(), own={"10.0.0.20"}, exclude=("10.0.9.0/24", "nonsense")
    )
    return {target.address: target.ports for target in targets}, limitations


def test_ports_that_the_scan_tried_are_not_tried_again() -> None:
    tried = {("10.0.0.5", 9100), ("10.0.0.6", 80)}
    result, _ = ports_by_address(printer(1, "10.0.0.5"), printer(2, "10.0.0.6"), tried=tried)
    assert result == {"10.0.0.6": (9100,)}


def test_a_printer_without_a_port_is_tried_on_the_usual_print_ports() -> None:
    result, _ = ports_by_address(
        printer(1, "10.5.0.5", None), printer(2, "10.5.0.6", None), tried={("10.5.0.6", 80)}
    )
    assert result == {"10.5.0.5": (631, 9100, 515)}


def test_public_excluded_and_own_addresses_are_not_contacted() -> None:
    result, limitations = ports_by_address(
        printer(1, "8.8.8.8"),
        printer(2, "10.0.9.9"),
        printer(3, "10.0.0.20"),
        printer(4, "127.0.0.1"),
        printer(5, "fe80::1"),
    )
    assert result == {}
    assert [text.partition(":")[0] for text in limitations] == [
        "printer Printer 1",
        "printer Printer 2",
        "printer Printer 5",
    ]


def test_usb_printers_are_not_contacted_over_the_network() -> None:
    usb = KnownPrinter("u", "USB", "usb", "usb", addresses=("10.0.0.9",))
    assert ports_by_address(usb) == ({}, ())


def test_several_queues_of_one_printer_are_one_target() -> None:
    known = [printer(1, "10.5.0.5"), printer(2, "10.5.0.5"), printer(3, "10.5.0.5", 515)]
    targets, _ = printer_targets(known, tried=set(), own=(), exclude=())
    assert targets == (Target("10.5.0.5", "local", None, (9100, 515)),)


def test_number_of_targets_is_bounded_and_reported() -> None:
    known = [printer(n, f"10.5.{n // 200}.{n % 200 + 1}") for n in range(PRINTERS_MAX + 3)]
    targets, limitations = printer_targets(known, tried=set(), own=(), exclude=())
    assert len(targets) == PRINTERS_MAX
    assert limitations == ("addresses of printers beyond the limit of 64, not tried: 3",)


def test_the_literal_address_of_a_configured_printer_is_parsed() -> None:
    assert ipv4_host("10.0.0.9:9100") == "10.0.0.9"
    assert ipv4_host("10.0.0.9") == "10.0.0.9"
    for other in ("printer.local:9100", "/dev/ttyS0", "02:00:00:00:00:09", "", None):
        assert ipv4_host(other) is None
