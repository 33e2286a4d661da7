"""docs/deployment.md and the recipes agree with the code."""

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.adapters.connectivity import gateway, name_servers
from agent.adapters.service_manager.launchd import LaunchdService
from agent.adapters.service_manager.windows.service import HOST_WORD
from agent.config.model import Network
from collectors.application.windows.script import read_sections
from collectors.network.mdns import sockets as mdns
from collectors.network.questions.questions import ALLOWED
from collectors.network.questions.snmp import PORT as SNMP_PORT
from collectors.shared.addresses import PRINT_PORTS
from collectors.shared.arp.pace import CONNECTIONS_PER_S, DATAGRAMS_PER_S
from collectors.shared.arp.priming import DISCARD_PORT
from tests.packaging.scripts import packaging_script
from tests.paths import ROOT

DOCUMENT = (ROOT / "docs/deployment.md").read_text()
RECIPES = ROOT / "packaging/recipes"
STARTERS = {"run_command", "start_command", "run_program", "_output_of"}
"""The functions that start a program of the system."""
NAME_IN_SCRIPTS = "GetValue('DisplayName') -eq 'Venue agent'"


def table(heading: str) -> list[list[str]]:
    """Return the rows of the table whose header begins with ``heading``."""
    _, _, rest = DOCUMENT.partition(f"\n| {heading} |")
    lines = rest.split("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def row(start: str, protocol: str) -> list[str]:
    """Search the table of packets. Return the only row whose first cell begins with ``start``, and
    whose third cell begins with ``protocol``.
    """
    (match,) = (
        each for each in table("who")
        if each[0].startswith(start) and each[2].startswith(protocol)
    )  # fmt: skip
    return match


def numbers(text: str) -> list[int]:
    return [int(each) for each in re.findall(r"\d+", text)]


def test_scan_ports_are_those_of_the_configuration() -> None:
    assert tuple(numbers(row("network report", "TCP 22")[2])) == Network().ports


def test_queried_ports_are_those_of_the_allow_list() -> None:
    web, tls = row("network report", "TCP 80")[2].split(";")
    assert numbers(web) == sorted(port for port, kind in ALLOWED.items() if kind == "web")
    assert numbers(tls) == sorted(port for port, kind in ALLOWED.items() if kind == "web-tls")
    ipp = [cells for cells in table("who") if cells[2] == "TCP 631" and "IPP" in cells[3]]
    assert [numbers(each[2]) for each in ipp] == [
        [port for port, kind in ALLOWED.items() if kind == "ipp"]
    ]


def test_ports_of_arp_icmp_dns_snmp_mdns_and_printing_are_those_of_the_code() -> None:
    assert numbers(row("network report", f"UDP {DISCARD_PORT}")[2]) == [DISCARD_PORT]
    assert numbers(row("daemon, when calls fail", "ICMP")[2]) == [
        gateway._UDP_PORT, *gateway._TCP_PORTS,
    ]  # fmt: skip
    assert numbers(row("daemon, when calls fail; app", "UDP")[2]) == [name_servers.DNS_PORT]
    assert numbers(row("network report, only with", "UDP")[2]) == [SNMP_PORT]
    multicast = row("network report", f"UDP {mdns.PORT}")
    assert multicast[1].startswith(f"{mdns.GROUP_V4}, {mdns.GROUP_V6}")
    assert numbers(row("network report", "TCP 631, 9100")[2]) == list(PRINT_PORTS[:3])


def test_rates_are_those_of_the_code() -> None:
    assert f"At most {DATAGRAMS_PER_S:.0f} datagrams a second" in DOCUMENT
    assert f"At most {CONNECTIONS_PER_S:.0f} connections a second" in DOCUMENT


def started_programs() -> Iterator[str]:
    """Yield the name of each program that the code starts, if the name is a literal in the code."""
    for folder in ("agent/doctor", "collectors"):
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call) and node.args:
                    name = getattr(node.func, "id", getattr(node.func, "attr", ""))
                    first = node.args[0]
                    words = first.elts if isinstance(first, ast.Tuple) else [first]
                    if name in STARTERS and words and isinstance(words[0], ast.Constant):
                        yield str(words[0].value)
            if path.name == "smart.py":  # passes the result of a function instead of a literal
                yield "smartctl"


def test_started_programs_are_listed_and_no_others() -> None:
    listed = {name for cells in table("program") for name in re.findall(r"`([\w.]+)`", cells[0])}
    assert listed == set(started_programs())


def test_options_of_powershell_are_listed() -> None:
    constants = read_sections.__code__.co_consts
    options = next(each for each in constants if isinstance(each, tuple) and "-NoProfile" in each)
    assert " ".join((*options, "-EncodedCommand")) in DOCUMENT


def test_command_lines_and_paths_are_those_of_the_code() -> None:
    build_msi = packaging_script("windows/build_msi.py")
    setup = {each.arguments.split()[0] for each in build_msi.ACTIONS}
    cells = next(each for each in table("process") if "Windows Installer" in each[0])
    assert set(re.findall(r"`(?:.* )?(\w+)`", cells[2])) == setup
    assert f"`venue-agent.exe {HOST_WORD}`" in DOCUMENT
    assert f"`venue-agent.exe {build_msi.SETUP} install`" in DOCUMENT
    assert f"`/{LaunchdService.state_path}`" in DOCUMENT
    assert f"Logs\\{build_msi.SETUP_LOG}" in DOCUMENT
    for name in build_msi.PUBLIC_PROPERTIES:
        assert f"`{name}" in DOCUMENT, name
    unit = (ROOT / "agent/adapters/service_manager/venue-agent.service").read_text()
    assert "ExecStart=/usr/bin/venue-agent run --config /etc/venue-agent/config.toml" in unit
    assert "`venue-agent run --config /etc/venue-agent/config.toml`" in DOCUMENT


def test_scripts_of_intune_name_the_product_and_the_properties_of_the_package() -> None:
    build_msi = packaging_script("windows/build_msi.py")
    install = (RECIPES / "intune/install.ps1").read_text()
    for name in set(build_msi.PUBLIC_PROPERTIES) - {"PURGE"}:
        assert f"{name}=" in install, name
    for file in ("detect.ps1", "uninstall.ps1"):
        assert NAME_IN_SCRIPTS in (RECIPES / "intune" / file).read_text()
    assert NAME_IN_SCRIPTS.endswith(f"'{build_msi.NAME}'")
    assert "PURGE=1" in (RECIPES / "intune/uninstall.ps1").read_text()


@pytest.mark.parametrize(
    ("is_running", "expected"), [(True, "1.2.3 running"), (False, "1.2.3 not running")]
)
def test_extension_attribute_shows_version_and_state(
    tmp_path: Path, is_running: bool, expected: str
) -> None:
    program = stand_in(tmp_path, 'echo "venue-agent 1.2.3"', exit_code=0 if is_running else 1)
    assert jamf("extension_attribute.sh", program) == f"<result>{expected}</result>\n"


def test_extension_attribute_reports_a_missing_program(tmp_path: Path) -> None:
    expected = "<result>not installed</result>\n"
    assert jamf("extension_attribute.sh", tmp_path / "none") == expected


def test_script_of_jamf_configures_the_service_and_deletes_the_key_file(tmp_path: Path) -> None:
    key = tmp_path / "my key"
    key.write_text("key")
    program = stand_in(tmp_path, 'echo "$@"', exit_code=0)
    words = ("/", "mac", "user", "https://ops.example.com", "loc-0001", str(key))
    assert jamf("install.sh", program, *words) == (
        "service install --base-url https://ops.example.com --location loc-0001"
        f" --api-key-file {key}\n"
    )
    assert not key.exists()


def test_script_of_jamf_keeps_the_key_file_after_a_failure(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("key")
    program = stand_in(tmp_path, "true", exit_code=1)
    words = ("/", "mac", "user", "https://ops.example.com", "loc-0001", str(key))
    with pytest.raises(subprocess.CalledProcessError):
        jamf("install.sh", program, *words)
    assert key.exists()


def stand_in(folder: Path, action: str, *, exit_code: int) -> Path:
    """Return a program in place of the agent. It runs ``action``. If its first argument is
    `service`, it ends with ``exit_code``, otherwise with 0.
    """
    program = folder / "venue-agent"
    program.write_text(f'#!/bin/sh\n{action}\n[ "$1" != service ] || exit {exit_code}\n')
    program.chmod(0o755)
    return program


def jamf(name: str, program: Path, *words: str) -> str:
    """Run a script of Jamf with ``program`` in place of the installed agent. Return its output."""
    text = (RECIPES / "jamf" / name).read_text()
    assert "/opt/venue-agent/venue-agent" in text
    command = ("sh", "-c", text.replace("/opt/venue-agent/venue-agent", str(program)), name, *words)
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
