import io
import re
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from agent.presentation.plain_text import plain
from agent.presentation.terminal.report import report_view
from agent.wire.payloads.application import ApplicationPayload
from agent.wire.payloads.network import NetworkPayload
from tests.fixtures.payloads import (
    application_snapshot,
    bare_report,
    empty_report,
    hostile_application,
    hostile_network,
    large_venue,
    small_venue,
)
from tests.sizes import examples

SGR = re.compile(r"\x1b\[[0-9;]*m")
"""A control sequence that sets colours (SGR in ECMA-48)."""
EVERY_PAYLOAD = (
    small_venue(),
    large_venue(),
    empty_report(),
    bare_report(),
    application_snapshot(),
    hostile_network(),
    hostile_application(),
)


def render(
    payload: NetworkPayload | ApplicationPayload, *, width: int = 80, is_terminal: bool = False
) -> str:
    console = Console(
        file=io.StringIO(),
        width=width,
        force_terminal=is_terminal,
        color_system="truecolor" if is_terminal else None,
        legacy_windows=False,
    )
    console.print(report_view(payload))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("payload", EVERY_PAYLOAD)
def test_no_line_is_wider_than_the_terminal(payload: NetworkPayload | ApplicationPayload) -> None:
    assert max(cell_len(line) for line in render(payload).splitlines()) <= 80


@pytest.mark.parametrize("width", [50, 60, 200])
@pytest.mark.parametrize("payload", [small_venue(), application_snapshot(), hostile_network()])
def test_a_report_fits_every_terminal_width(
    payload: NetworkPayload | ApplicationPayload, width: int
) -> None:
    assert max(cell_len(line) for line in render(payload, width=width).splitlines()) <= width


def test_values_are_complete_and_unbroken_at_fifty_columns() -> None:
    payload = small_venue()
    lines = [line.strip() for line in render(payload, width=50).splitlines()]
    words = " ".join(lines)
    for printer in payload.printers:
        assert printer.reason in words
    assert payload.network_map is not None
    for host in payload.network_map.hosts:
        assert host.address in words.split()
        assert host.mac_address is None or host.mac_address in words.split()
    for link in payload.network_map.interfaces:
        assert link.mac_address is None or link.mac_address in words.split()


@pytest.mark.parametrize("payload", EVERY_PAYLOAD)
def test_colours_are_the_only_control_sequences(
    payload: NetworkPayload | ApplicationPayload,
) -> None:
    output = SGR.sub("", render(payload, is_terminal=True))
    unsafe = {c for c in output if c != "\n" and unicodedata.category(c) in {"Cc", "Cf", "Cs"}}
    assert unsafe == set()


def test_colours_are_those_of_the_terminals_theme() -> None:
    used_codes = {
        code
        for codes in SGR.findall(render(small_venue(), is_terminal=True))
        for code in codes[2:-1].split(";")
    }
    assert not used_codes & {"38", "48"}, "fixed colours do not suit both dark and light terminals"
    assert {"31", "32"} <= used_codes


def test_untrusted_markup_is_displayed_as_text() -> None:
    output = "".join(render(hostile_network(), width=300).split())
    assert "[boldred]markup[/boldred]" in output
    assert ":smile:" in output


def test_a_long_reason_is_displayed_in_full() -> None:
    payload = small_venue()
    assert payload.printers
    reason = " ".join(f"word{number}" for number in range(140))
    printer = payload.printers[0].model_copy(update={"reason": reason})
    output = render(payload.model_copy(update={"printers": (printer,)}))
    assert reason in " ".join(output.split())


def test_printers_come_first() -> None:
    output = render(small_venue())
    assert output.index("Printers 3") < output.index("Hosts 12")
    assert "3 printers: 1 unreachable, 1 moved, 1 reachable" in output


@pytest.mark.parametrize("width", [50, 80])
def test_findings_are_printed_above_all_facts(width: int) -> None:
    output = render(application_snapshot(), width=width)
    order = [output.index(word) for word in ("is stuck", "Findings 4", "problem ", "Location ")]
    assert order == sorted(order)


def test_facts_that_do_not_apply_are_summarized_in_one_line() -> None:
    output = render(application_snapshot())
    assert "2 facts do not apply to this machine" in output
    assert "no battery" not in output


def test_every_host_is_listed() -> None:
    payload = large_venue(250)
    lines = render(payload).splitlines()
    listed = {words[0] for words in map(str.split, lines) if words}
    assert {host.address for host in payload.network_map.hosts} <= listed


def test_a_host_is_displayed_in_two_lines() -> None:
    lines = [line.rstrip() for line in render(small_venue()).splitlines()]
    at = lines.index("192.168.1.30       Menu board · screen or kiosk · Chromecast · Seiko Epson")
    assert lines[at + 1] == "00:26:ab:00:00:1e  plays casts (8008) · 9.4 ms"


def test_a_snapshot_is_displayed_in_groups() -> None:
    output = render(application_snapshot())
    assert output.index("Operating system") < output.index("Print queues")
    for line in ("4 d 15 h", "7.6 GiB", "the mount does not answer", "Could not be read 4"):
        assert line in output


@given(st.text(max_size=80))
@settings(max_examples=examples(20))
def test_a_table_with_any_name_fits_the_terminal(name: str) -> None:
    payload = small_venue()
    assert payload.printers
    printer = payload.printers[0].model_copy(update={"name": name, "reason": name})
    output = render(payload.model_copy(update={"printers": (printer,)}))
    assert max(cell_len(line) for line in output.splitlines()) <= 80
    assert plain(output) == " ".join(output.split())
