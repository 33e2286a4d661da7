import pytest

from agent.presentation.host_evidence import HostKind
from agent.presentation.host_kind import kind_of
from tests.fixtures.payloads import host


@pytest.mark.parametrize(
    ("name", "ports", "announced", "kind"),
    [
        (None, (9100,), None, "printer"),
        ("front-desk", (80, 631), None, "printer"),
        ("x", (8008,), "_googlecast._tcp.local.", "screen"),
        ("x", (554, 80), None, "camera"),
        ("nas", (22, 445), None, "server"),
        ("Annas-iPhone", (), None, "phone"),
        ("x", (), "_apple-mobdev2._tcp", "phone"),
        ("BRN30055C112233", (80,), None, "printer"),
        ("door-kiosk", (80,), None, "screen"),
        ("something", (), None, "unknown"),
        (None, (), None, "unknown"),
        ("<script>", (), "\x1b[31m", "unknown"),
    ],
)
def test_evidence(
    name: str | None, ports: tuple[int, ...], announced: str | None, kind: HostKind
) -> None:
    found = host(7, name, *ports, mdns=announced)
    assert kind_of(found, is_matched=False, is_gateway=False) == kind


def test_what_is_known_beats_what_is_guessed() -> None:
    printer_like = host(7, "x", 9100)
    assert kind_of(printer_like, is_matched=False, is_gateway=True) == "router"
    local = host(7, "x", 9100, sources=("local", "tcp"))
    assert kind_of(local, is_matched=True, is_gateway=True) == "machine"
    assert kind_of(host(7, "x", 22), is_matched=True, is_gateway=False) == "printer"


def test_a_port_that_refused_is_no_evidence() -> None:
    found = host(7, None, 9100)
    refused = found.services[0].model_copy(update={"reachable": False})
    silent = found.model_copy(update={"services": (refused,)})
    assert kind_of(silent, is_matched=False, is_gateway=False) == "unknown"
